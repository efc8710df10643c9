// Wire rules, section 17.3: a session client with a subscription; cancels, removals and votes.

import { has, same, saw, soon, thrown } from "./checks.mjs";
import { kind, kinds, sdk, text } from "./stage.mjs";

export const flows = [
  ["17.3 create, subscribe, prompt", subscribed],
  ["17.3 attach to what is there", attached],
  ["17.3 one subscription at a time", oneSubscription],
  ["17.3 cancel", cancel],
  ["17.3 an abort of a subscribed prompt", abort],
  ["17.3 the pending list, and removals", removals],
  ["17.3 votes", votes],
  ["17.3 a heartbeat and the status", glance],
  ["17.3 the subscription ends with prompts waiting on it", subscriptionEnds],
];

async function subscribed(stage) {
  await stage.turnd();
  const { proxy } = stage;
  const session = await stage.open();
  same("17.3 1. a fresh session's cursor is seeded with 0", [session.attached, session.lastEventId], [false, 0]);
  saw("6.1 the create answers no epoch", !("eventEpoch" in proxy.calls[0].answer) && session.eventEpoch === undefined, proxy.calls[0].answer);
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const stream = proxy.last("GET", "/session/*/events");
  same("17.3 2. the first subscription says that it is the first", stream.query, "connectReason=initial");
  has("17.3 2. from 0, with the client id", stream.headers, { "last-event-id": "0", "x-qwen-client-id": session.clientId });
  saw("17.3 2. and no epoch yet", !("x-qwen-event-epoch" in stream.headers), stream.headers);
  same("17.3 2. it is learned from the answer's header", session.eventEpoch, stream.answerHeaders["x-qwen-event-epoch"]);
  const result = await soon("the prompt", session.prompt(text("hello")));
  same("17.3 3. the result is taken from the subscription", result.stopReason, "end_turn");
  const { answer, status } = proxy.last("POST", "/session/*/prompt");
  same("17.3 3. of a 202 with that epoch", [status, answer.eventEpoch], [202, session.eventEpoch]);
  saw("17.3 3. by data.promptId", (await reader.terminal(answer.promptId)).data.promptId === answer.promptId);
  same("17.3 3. and a prompt while subscribed is one request more", proxy.lines(), [
    "POST /session",
    "GET /session/*/events",
    "POST /session/*/prompt",
  ]);
  await reader.stop();
  const own = await soon("a prompt without a subscription", session.prompt(text("again")));
  same("17.3 3. without a subscription it runs", own.stopReason, "end_turn");
  const its = proxy.last("GET", "/session/*/events");
  const cursor = String(proxy.last("POST", "/session/*/prompt").answer.lastEventId);
  same("17.3 3. on a stream of its own, as in 17.2", [its.query, its.headers["last-event-id"], its.headers["x-qwen-client-id"]], ["", cursor, undefined]);
}

async function attached(stage) {
  await stage.turnd();
  const client = stage.client();
  const first = await client.createOrAttachSession({ workspaceCwd: stage.workspace });
  same("6.1 the first of the default scope creates", first.attached, false);
  const second = await sdk.DaemonSessionClient.createOrAttach(client, { workspaceCwd: stage.workspace });
  same("6.1 the second attaches to the same", [second.attached, second.sessionId], [true, first.sessionId]);
  saw("6.1 under a client id of its own", second.clientId !== first.clientId, second.clientId);
  same("17.3 1. its cursor is undefined: live only", second.lastEventId, undefined);
  const told = stage.proxy.last("POST", "/session").answer;
  same("6.1 an attach says whether a prompt runs", told.hasActivePrompt, false);
  const reader = stage.read(second);
  const stream = await stage.proxy.call("the stream", (call) => call.path.endsWith("/events") && call.text !== "");
  saw("17.3 2. and it subscribes without a cursor", !("last-event-id" in stream.headers), stream.headers);
  await soon("a prompt", second.prompt(text("hello")));
  saw("10.3 without a cursor only news comes, and no replay_complete", kinds(reader.events).startsWith("user_message_chunk"), kinds(reader.events));
  const moded = await sdk.DaemonSessionClient.createOrAttach(client, { workspaceCwd: stage.workspace, approvalMode: "default" });
  same("17.3 1. when a mode was asked for, it is 0", [moded.attached, moded.lastEventId], [true, 0]);
  const chosen = "a1b2c3d4-0000-4000-8000-00000000000F";
  const own = await stage.open(client, { sessionId: chosen });
  same("17.8 an id of the caller's own comes back, in lower case", [own.sessionId, own.attached], [chosen.toLowerCase(), false]);
  same("2.2 before it the client looks whether that can be had", stage.proxy.of("GET", "/capabilities").length, 1);
  const again = await thrown("the id a second time", stage.open(client, { sessionId: chosen }));
  has("6.1 a second time it is a conflict", again, { status: 409 });
  has("6.1 with a live one", again.body, { code: "session_id_conflict", conflict: "live", sessionId: chosen.toLowerCase() });
  const asked = await stage.open(client, { sourceType: "bot", sourceId: "b-1" });
  has("6.1 who made a session is kept", asked.session, { sourceType: "bot", sourceId: "b-1", sourcePersisted: true });
}

async function oneSubscription(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const second = await thrown("a second subscription", session.events().next());
  saw("17.3 2. one subscription at a time per object", second instanceof Error, second);
  same("17.3 2. and nothing was sent for the second", stage.proxy.of("GET", "/session/*/events").length, 1);
}

async function cancel(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const running = session.prompt(text("stuck"));
  await reader.find("the first words", (event) => kind(event) === "agent_message_chunk");
  const queued = session.prompt(text("queued one"));
  await stage.admitted(2);
  await session.cancel();
  const call = stage.proxy.last("POST", "/session/*/cancel");
  same("17.3 4. cancel posts {} and gets 204", [call.body, call.status], [{}, 204]);
  const cut = await soon("the running prompt", running);
  same("8.5 the running prompt ends as cancelled; of when, this client hands nothing on", cut, { stopReason: "cancelled" });
  const { promptCancelled } = (await reader.find("its end", (event) => event.type === "turn_complete")).data;
  saw("8.4 the event tells it", promptCancelled.cancelledAt > 0 && promptCancelled.elapsedMs >= 0, promptCancelled);
  same("8.5 the queued one goes on", (await soon("the queued prompt", queued)).stopReason, "end_turn");
  await session.cancel();
  saw("8.5 an idle cancel is 204 too");
  same("8.5 a prompt after it is not cancelled by it", (await soon("a prompt", session.prompt(text("after")))).stopReason, "end_turn");
}

async function abort(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const stop = new AbortController();
  const prompt = session.prompt(text("stuck"), stop.signal);
  await reader.find("the first words", (event) => kind(event) === "agent_message_chunk");
  stop.abort();
  same("17.3 4. the abort of a subscribed prompt rejects at once", (await thrown("the prompt", prompt)).name, "AbortError");
  const call = await stage.proxy.call("the cancel", (call) => call.path.endsWith("/cancel") && call.status !== undefined);
  same("17.3 4. and posts cancel", call.status, 204);
  const { promptId } = stage.proxy.last("POST", "/session/*/prompt").answer;
  same("its end is published all the same", (await reader.terminal(promptId)).data.stopReason, "cancelled");
}

async function removals(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const running = session.prompt(text("stuck"));
  await stage.admitted(1);
  const queued = session.prompt(text("one that waits"));
  await stage.admitted(2);
  const listed = (await session.getPendingPrompts()).pendingPrompts;
  same("8.6 the running prompt is listed first", listed.map((p) => [p.text, p.state]), [["stuck", "running"], ["one that waits", "queued"]]);
  same("8.6 with who sent them", listed.map((p) => p.originatorClientId), [session.clientId, session.clientId]);
  saw("8.6 and since when", listed.every((p) => Number.isInteger(p.queuedAt)), listed);
  const [first, second] = listed.map((p) => p.promptId);
  same("8.6 the queued one is removed", await session.removePendingPrompt(second), { removed: true });
  same("8.6 it ends as cancelled at once, the other still running", (await soon("the removed prompt", queued)).stopReason, "cancelled");
  same("8.6 only once", await session.removePendingPrompt(second), { removed: false });
  same("8.6 an unknown one is no error", await session.removePendingPrompt("nope"), { removed: false });
  same("8.6 the running one is removed", await session.removePendingPrompt(first), { removed: true });
  same("8.6 and ends as cancelled once the agent has settled", (await soon("the running prompt", running)).stopReason, "cancelled");
  same("8.6 then nothing is pending", await session.getPendingPrompts(), { pendingPrompts: [] });
  const about = (promptId) => kinds(reader.events.filter((event) => event.promptId === promptId && event.type !== "session_update"));
  same("8.6 a queued removal leaves the list, then ends", about(second), "pending_prompt_added pending_prompt_completed turn_complete");
  same("8.6 a running one is cancelled, leaves the list, then ends", about(first), "prompt_cancelled pending_prompt_completed turn_complete");
}

async function votes(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const asked = async (prompt) => {
    const question = await reader.find("a question", (event) => event.type === "permission_request" && !seen.has(event.data.requestId));
    seen.add(question.data.requestId);
    return [question.data, prompt];
  };
  const seen = new Set();
  const [question, prompt] = await asked(session.prompt(text("tool echo made > made.txt")));
  same("12.1 a question names its options", question.options.every((o) => o.optionId && o.name && o.kind), true);
  same("6.2 the status shows that it waits", (await session.status()).isWaitingForPermission, true);
  const option = (kind, options) => ({ outcome: { outcome: "selected", optionId: options.find((o) => o.kind === kind).optionId } });
  const allow = option("allow_once", question.options);
  const bad = await thrown("a vote for nothing offered", session.respondToPermission(question.requestId, { outcome: { outcome: "selected", optionId: "nope" } }));
  has("17.3 5. a vote that is refused throws", bad, { status: 400 });
  same("12.2 with its code", bad.body.code, "invalid_option_id");
  same("17.3 5. a vote that counts is true", await session.respondToPermission(question.requestId, allow), true);
  const call = stage.proxy.last("POST", "/permission/*");
  same("17.3 5. the session client uses the older route", [call.body, call.status], [allow, 200]);
  same("17.3 5. a late vote is false", await session.respondToPermission(question.requestId, allow), false);
  same("17.3 5. on a 404", stage.proxy.last("POST", "/permission/*").status, 404);
  same("12.2 and everybody hears that it was decided", (await reader.find("the notice", (e) => e.type === "permission_already_resolved")).data.requestId, question.requestId);
  same("12.2 the tool ran and the turn ended well", (await soon("the prompt", prompt)).stopReason, "end_turn");
  const [second, other] = await asked(session.prompt(text("tool echo no")));
  same("17.3 5. the session's own route votes too", await session.respondToSessionPermission(second.requestId, option("reject_once", second.options)), true);
  same("17.3 5. there a late vote is false as well", await session.respondToSessionPermission(second.requestId, { outcome: { outcome: "cancelled" } }), false);
  same("17.3 5. that was the route", stage.proxy.of("POST", "/session/*/permission/*").map((c) => c.status), [200, 404]);
  same("12.2 a refused tool ends the turn as the agent says", (await soon("the prompt", other)).stopReason, "end_turn");
  const resolved = reader.events.filter((event) => event.type === "permission_resolved");
  same("12.2 the resolution names its voter in data and envelope", resolved.map((e) => [e.data.voterClientId, e.originatorClientId]), [
    [session.clientId, session.clientId],
    [session.clientId, session.clientId],
  ]);
  const [third, waiting] = await asked(session.prompt(text("tool echo later")));
  await session.cancel();
  same("12.2 a cancel while it waits ends the turn as cancelled", (await soon("the prompt", waiting)).stopReason, "cancelled");
  const decision = await reader.find("its resolution", (e) => e.type === "permission_resolved" && e.data.requestId === third.requestId);
  same("12.2 and the question with it", decision.data.outcome, { outcome: "cancelled" });
  same("17.3 5. an unknown question is false", await session.respondToPermission("nope", allow), false);
}

async function glance(stage) {
  await stage.turnd();
  const session = await stage.open();
  const beat = await session.heartbeat();
  has("6.4 a heartbeat echoes session and client", beat, { sessionId: session.sessionId, clientId: session.clientId });
  saw("6.4 and tells when the daemon saw it", Math.abs(Date.now() - beat.lastSeenAt) < 600_000, beat);
  const status = await session.status();
  const wanted = {
    sessionId: session.sessionId,
    workspaceCwd: stage.workspace,
    clientCount: 1,
    hasActivePrompt: false,
    isWaitingForPermission: false,
    isWaitingForUserQuestion: false,
    pendingInteractionCount: 0,
    hasTurnError: false,
    pendingInteractions: [],
  };
  has("6.2 the status tells that nothing goes on", status, wanted);
  await thrown("a prompt", session.prompt(text("fail no disk")));
  has("6.2 a failed turn shows in it", await session.status(), { hasTurnError: true });
  await soon("a prompt", session.prompt(text("hello")));
  has("6.2 until the next one is well", await session.status(), { hasTurnError: false });
}

async function subscriptionEnds(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const prompts = [session.prompt(text("stuck"))];
  await reader.find("the first words", (event) => kind(event) === "agent_message_chunk");
  prompts.push(session.prompt(text("another")));
  await stage.admitted(2);
  stage.proxy.last("GET", "/session/*/events").cut();
  for (const prompt of prompts) same("17.3 all prompts waiting on a subscription reject with it", (await thrown("a prompt", prompt)).message, "SSE stream ended");
  const states = (await session.getPendingPrompts()).pendingPrompts.map((p) => p.state);
  same("and go on in the daemon", states, ["running", "queued"]);
}
