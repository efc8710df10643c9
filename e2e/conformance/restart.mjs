// Wire rules, sections 17.5 and 17.6: kill -9 of the daemon, load, resume, self-heal; close and detach.

import { has, same, saw, soon, thrown, until } from "./checks.mjs";
import { kind, kinds, sdk, text } from "./stage.mjs";

export const flows = [
  ["17.5 kill -9, and a load", killed],
  ["17.5 a resume", resumed],
  ["17.5 a client id that is known no more heals itself", selfHeal],
  ["17.5 a load while a prompt runs", loadedWhileRunning],
  ["17.6 detach", detach],
  ["17.6 close", close],
];

async function killed(stage) {
  await stage.turnd();
  const { proxy } = stage;
  const client = stage.client();
  const session = await stage.open(client);
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  await soon("a prompt", session.prompt(text("before the kill")));
  const done = proxy.last("POST", "/session/*/prompt").answer.promptId;
  await thrown("a failing prompt", session.prompt(text("fail no disk")));
  const failed = proxy.last("POST", "/session/*/prompt").answer.promptId;
  const cut = session.prompt(text("slow 1500"));
  await reader.find("its first words", (event) => kind(event) === "agent_message_chunk" && event.promptId !== done);
  const running = proxy.last("POST", "/session/*/prompt").answer.promptId;
  await stage.kill();
  const error = await thrown("the prompt that ran", cut);
  saw("17.3 the kill rejects what waited on the subscription", error instanceof Error, error);
  await stage.turnd();
  const old = await thrown("a prompt of the old object", session.prompt(text("too early")));
  has("17.5 the old object's prompt is 404 and thrown to the caller", old, { status: 404 });
  same("17.5 as session_not_found", old.body.code, "session_not_found");
  same("17.5 there is no automatic load", proxy.of("POST", "/session/*/load"), []);
  const loaded = await sdk.DaemonSessionClient.load(client, session.sessionId, { workspaceCwd: stage.workspace });
  const call = proxy.last("POST", "/session/*/load");
  same("17.5 a load posts the folder", [call.body, call.status], [{ cwd: stage.workspace }, 200]);
  saw("17.5 with no client id", !("x-qwen-client-id" in call.headers), call.headers);
  const { answer } = call;
  same("17.5 the client takes the id, the cursor and the epoch from it", [loaded.clientId, loaded.lastEventId, loaded.eventEpoch], [answer.clientId, answer.lastEventId, answer.eventEpoch]);
  same("17.5 and the replay", [loaded.replaySnapshot.compactedReplay, loaded.replaySnapshot.liveJournal], [answer.compactedReplay, answer.liveJournal]);
  same("17.5 both parts of it are there", [loaded.replaySnapshotComplete, loaded.hasActivePrompt], [true, false]);
  saw("17.5 and a state", typeof loaded.state === "object", loaded.state);
  const ends = answer.promptTerminals.map((t) => [t.promptId, t.terminal, t.code ?? t.stopReason]);
  const wanted = [[done, "completed", "end_turn"], [failed, "error", "-32603"], [running, "completed", "end_turn"]];
  same("7.2 promptTerminals tell the end of each prompt, also of the one that ran at the kill", ends, wanted);
  const turn = await stage.turn(session.sessionId, running);
  same("9.3 differs from the peer: the poll knows it too", turn.state, "completed");
  const numbers = answer.compactedReplay.map((event) => event.id);
  saw("7.3 differs from the peer: the new life numbers on behind the old one", numbers[0] > session.lastEventId, numbers);
  const row = numbers.map((_, n) => answer.lastEventId - numbers.length + 1 + n);
  same("7.3 in a row up to the load's cursor", numbers, row);
  const echoes = answer.compactedReplay.filter((event) => kind(event) === "user_message_chunk").map((event) => event.data.update._meta.promptId);
  same("7.3 its user chunks name the prompts", echoes, [done, failed, running]);
  saw("7.3 and it ends no turn", !answer.compactedReplay.some((event) => event.type.startsWith("turn_")), kinds(answer.compactedReplay));
  const events = stage.read(loaded);
  await events.find("the end of the replay", (event) => event.type === "replay_complete");
  const stream = proxy.last("GET", "/session/*/events");
  const carried = { "last-event-id": String(answer.lastEventId), "x-qwen-event-epoch": answer.eventEpoch, "x-qwen-client-id": answer.clientId };
  has("17.5 then it subscribes from there", stream.headers, carried);
  same("17.5 as a first subscription", stream.query, "connectReason=initial");
  saw("7.3 and that cursor is clean", !events.events.some((event) => event.type === "state_resync_required"), events.events);
  same("and the session goes on", (await soon("a prompt", loaded.prompt(text("after")))).stopReason, "end_turn");
}

async function resumed(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  await soon("a prompt", session.prompt(text("before")));
  await stage.kill();
  await stage.turnd();
  const again = await sdk.DaemonSessionClient.resume(client, session.sessionId, { workspaceCwd: stage.workspace });
  const call = stage.proxy.last("POST", "/session/*/resume");
  same("17.5 a resume posts the folder", [call.body, call.status], [{ cwd: stage.workspace }, 200]);
  const without = ["compactedReplay", "liveJournal", "promptTerminals"].filter((field) => field in call.answer);
  same("7.2 its answer has neither replay nor terminals", without, []);
  same("17.5 but the cursor to go on from", [again.lastEventId, again.eventEpoch], [call.answer.lastEventId, call.answer.eventEpoch]);
  const reader = stage.read(again);
  const first = await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  same("17.5 which is clean", reader.events.indexOf(first), reader.events.filter((event) => event.id !== undefined).length);
  same("and prompts run", (await soon("a prompt", again.prompt(text("after")))).stopReason, "end_turn");
  const attached = await sdk.DaemonSessionClient.resume(client, session.sessionId, { workspaceCwd: stage.workspace });
  same("7.1 a resume of what is live attaches", attached.attached, true);
}

async function selfHeal(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  await soon("a prompt", session.prompt(text("before")));
  const old = session.clientId;
  await stage.kill();
  await stage.turnd();
  await client.loadSession(session.sessionId, { workspaceCwd: stage.workspace });
  const from = stage.proxy.calls.length;
  const result = await soon("the old object's prompt", session.prompt(text("with the old id")));
  same("17.5 the old object's prompt ends well", result.stopReason, "end_turn");
  const calls = stage.proxy.calls.slice(from);
  const said = ["POST /session/*/prompt", "POST /session/*/resume", "POST /session/*/prompt", "GET /session/*/events"];
  same("17.5 refused, the client resumes and sends it once more", stage.proxy.lines(calls), said);
  const [refused, resume, sent] = calls;
  same("4. the refusal is a 400 invalid_client_id", [refused.status, refused.answer.code, refused.answer.clientId], [400, "invalid_client_id", old]);
  saw("17.5 the resume carries no client id", !("x-qwen-client-id" in resume.headers), resume.headers);
  same("17.5 the new id is adopted", [session.clientId, sent.headers["x-qwen-client-id"]], [resume.answer.clientId, resume.answer.clientId]);
  const { answer } = await (async () => {
    await client.loadSession(session.sessionId, { workspaceCwd: stage.workspace });
    return stage.proxy.last("POST", "/session/*/load");
  })();
  const ran = answer.promptTerminals.map((t) => t.terminal);
  same("17.5 so that code means: not admitted. The prompt ran once", ran, ["completed", "completed"]);
}

async function loadedWhileRunning(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  const { promptId } = await session.submitPrompt(text("stuck"));
  await until("its words", async () => (await client.loadSession(session.sessionId, { workspaceCwd: stage.workspace })).liveJournal.some((e) => kind(e) === "agent_message_chunk"));
  const loaded = await sdk.DaemonSessionClient.load(client, session.sessionId, { workspaceCwd: stage.workspace });
  same("17.5 hasActivePrompt tells that one runs", [loaded.attached, loaded.hasActivePrompt], [true, true]);
  const reader = stage.read(loaded);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  await loaded.cancel();
  same("and its end is heard", (await reader.terminal(promptId)).data.stopReason, "cancelled");
  const journal = loaded.replaySnapshot.liveJournal.filter((event) => event.id !== undefined).map((event) => event.id);
  const live = reader.events.filter((event) => event.id !== undefined).map((event) => event.id);
  same("7.3 what the load gave and what the stream gives meet without a gap", live[0], Math.max(...journal) + 1);
}

async function detach(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  const second = await sdk.DaemonSessionClient.resume(client, session.sessionId, { workspaceCwd: stage.workspace });
  same("6.2 two clients are registered", (await session.status()).clientCount, 2);
  await second.detach();
  const call = stage.proxy.last("POST", "/session/*/detach");
  same("17.6 a detach carries the client id and is 204", [call.headers["x-qwen-client-id"], call.status], [second.clientId, 204]);
  same("6.5 one is left", (await session.status()).clientCount, 1);
  const nameless = new sdk.DaemonSessionClient({ client, session: { ...session.session, clientId: undefined } });
  await nameless.detach();
  same("17.6 without a client id nothing is sent", stage.proxy.of("POST", "/session/*/detach").length, 1);
  await session.detach();
  await until("the session to be gone", async () => (await stage.ask("GET", `/session/${session.sessionId}/status`)).status === 404);
  saw("6.5 with the last client the session goes, nobody reading");
  const loaded = await sdk.DaemonSessionClient.load(client, session.sessionId, { workspaceCwd: stage.workspace }).catch((error) => error);
  same("7.5 one that was never prompted has left nothing to load", loaded.status, 404);
}

async function close(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const running = session.prompt(text("stuck"));
  await reader.find("the first words", (event) => kind(event) === "agent_message_chunk");
  const queued = session.prompt(text("queued"));
  await stage.admitted(2);
  await session.close();
  same("17.6 a close is 204", stage.proxy.last("DELETE", "/session/*").status, 204);
  same("6.6 the running prompt settles as cancelled", (await soon("the running prompt", running)).stopReason, "cancelled");
  const code = (await thrown("the queued prompt", queued)).body;
  same("6.6 differs from the peer: the queued one ends as session_closed and never reaches the agent", code, "session_closed");
  saw("6.6 it was never started", !reader.events.some((event) => event.type === "pending_prompt_started"), kinds(reader.events));
  await soon("the stream's end", reader.over());
  const last = reader.events.at(-1);
  same("6.6 session_closed comes last", [last.type, last.data.reason, last.data.closedBy], ["session_closed", "client_close", session.clientId]);
  await session.close();
  same("17.6 a close of what is closed is 404, and success as well", stage.proxy.last("DELETE", "/session/*").status, 404);
  const gone = await thrown("a prompt", session.prompt(text("too late")));
  same("a prompt after it is session_not_found", [gone.status, gone.body.code], [404, "session_not_found"]);
}
