// Wire rules, sections 6 and 13, as the client's own methods ask for them: lists, the archive, rewinds, branches, pages, and what is
// asked beside a conversation.

import { has, same, saw, soon, thrown, until } from "./checks.mjs";
import { kinds, sdk, text } from "./stage.mjs";

export const flows = [
  ["6.3 lists and the live state", lists],
  ["6.7 archive, unarchive and delete", shelf],
  ["13.1 a rewind", rewind],
  ["13.2 branches", branches],
  ["13.3 what is asked beside the conversation", asides],
  ["13.4 a command", shell],
  ["13.6 words into a turn", steering],
  ["13.7 name, model and mode", settings],
  ["13.8 pages of the transcript, and the context", pages],
];

/** Runs a prompt to its end; its id. */
async function said(stage, session, words) {
  const result = await soon(`the prompt ${words}`, session.prompt(text(words)));
  same(`a turn about ${words} ends well`, result.stopReason, "end_turn");
  return stage.proxy.last("POST", "/session/*/prompt").answer.promptId;
}

/** The questions of a replay or a page, in their order. */
function asked(events) {
  const updates = events.map((event) => event.data.update ?? event.data);
  return updates.filter((update) => update.sessionUpdate === "user_message_chunk").map((update) => update.content.text);
}

async function lists(stage) {
  await stage.turnd();
  const client = stage.client();
  const sessions = [];
  for (const words of ["one", "two", "three"]) {
    sessions.push(await stage.open(client));
    await said(stage, sessions.at(-1), words);
  }
  const ids = sessions.map((session) => session.sessionId).sort();
  const first = await client.listWorkspaceSessionsPage(stage.workspace, { pageSize: 2 });
  same("6.3 a page has as many as asked for, and says where the next begins", [first.sessions.length, typeof first.nextCursor], [2, "string"]);
  const second = await client.listWorkspaceSessionsPage(stage.workspace, { pageSize: 2, cursor: first.nextCursor });
  same("6.3 the walk ends", [second.sessions.length, second.nextCursor], [1, undefined]);
  same("6.3 and shows each session once", [...first.sessions, ...second.sessions].map((entry) => entry.sessionId).sort(), ids);
  const all = await client.listWorkspaceSessions(stage.workspace);
  same("6.3 the client's walk of all pages is the same", all.map((entry) => entry.sessionId).sort(), ids);
  const live = await client.getWorkspaceSessionLiveState(stage.workspace);
  same("6.3 those that live have a state", live.sessions.map((entry) => entry.sessionId).sort(), ids);
  await sessions[0].close();
  const next = await client.getWorkspaceSessionLiveState(stage.workspace);
  same("6.3 one that was closed has none", next.sessions.length, 2);
  saw("6.3 and the list is another one", next.catalogVersion.revision > live.catalogVersion.revision, [live, next]);
  same("6.3 while it is listed all the same", (await client.listWorkspaceSessions(stage.workspace)).length, 3);
}

async function shelf(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  const { sessionId } = session;
  const promptId = await said(stage, session, "one");
  has("6.7 an archive says which", await client.archiveSessionsData([sessionId, "11111111-2222-4333-8444-555555555555"]), {
    archived: [sessionId], alreadyArchived: [], notFound: ["11111111-2222-4333-8444-555555555555"], errors: [],
  });
  const listed = async (archiveState) => (await client.listWorkspaceSessions(stage.workspace, { archiveState })).map((entry) => entry.sessionId);
  same("6.7 it is listed there and not here", [await listed("archived"), await listed("active")], [[sessionId], []]);
  const cwd = { workspaceCwd: stage.workspace };
  for (const restore of ["load", "resume"]) {
    const refused = await thrown(`a ${restore}`, sdk.DaemonSessionClient[restore](client, sessionId, cwd));
    same(`7.1 a ${restore} of it is refused`, [refused.status, refused.body.code], [409, "session_archived"]);
  }
  has("6.7 a second archive changes nothing", await client.archiveSessionsData([sessionId]), { archived: [], alreadyArchived: [sessionId] });
  has("6.7 it is taken back", await client.unarchiveSessionsData([sessionId]), { unarchived: [sessionId], alreadyActive: [], errors: [] });
  const loaded = await sdk.DaemonSessionClient.load(client, sessionId, cwd);
  const ends = stage.proxy.last("POST", "/session/*/load").answer.promptTerminals.map((entry) => [entry.promptId, entry.terminal]);
  same("6.7 with all that it knew", ends, [[promptId, "completed"]]);
  await said(stage, loaded, "two");
  same("6.8 a delete removes it", await client.deleteSessionsData([sessionId]), { removed: [sessionId], notFound: [], errors: [] });
  same("6.8 from both lists", [await listed("archived"), await listed("active")], [[], []]);
  same("6.8 and it is not found again", (await thrown("a load", sdk.DaemonSessionClient.load(client, sessionId, cwd))).status, 404);
}

async function rewind(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const prompts = [];
  for (const words of ["one", "two", "three"]) prompts.push(await said(stage, session, words));
  const { snapshots } = await session.getRewindSnapshots();
  same("13.1 there is a place before each prompt", snapshots.map((place) => place.turnIndex), [0, 1, 2]);
  same("13.1 differs from the peer: it names the prompt", snapshots.map((place) => place.daemonPromptId), prompts);
  const done = await session.rewind(prompts[1], { rewindFiles: false });
  has("13.1 differs from the peer: a rewind takes the prompt's id", done, { rewound: true, targetTurnIndex: 1, filesChanged: [], filesFailed: [] });
  const told = await reader.find("the news of it", (event) => event.type === "session_rewound");
  saw("12 the client knows its event", sdk.asKnownDaemonEvent(told) !== undefined, told);
  const turns = await Promise.all(prompts.map((promptId) => stage.turn(session.sessionId, promptId)));
  same("9.3 what was taken back is polled no more", turns.map((turn) => turn.state ?? turn.code), ["completed", "prompt_not_found", "prompt_not_found"]);
  const again = await thrown("the same once more", session.rewind(prompts[1]));
  same("13.1 what went is no place any more", [again.status, again.body.code], [400, "invalid_rewind_target"]);
  has("13.1 the peer's name for a place is taken too", await session.rewind(snapshots[0].promptId), { rewound: true, targetTurnIndex: 0 });
  await said(stage, session, "four");
  await reader.stop();
  await session.close();
  const loaded = await sdk.DaemonSessionClient.load(client, session.sessionId, { workspaceCwd: stage.workspace });
  same("7.3 a load shows what stays", asked(loaded.replaySnapshot.compactedReplay), ["four"]);
  await loaded.submitPrompt(text("stuck"));
  const busy = await thrown("a rewind while a prompt runs", loaded.rewind(prompts[0]));
  same("13.1 while a prompt runs it is refused", [busy.status, busy.body.code, busy.body.retryable], [409, "session_busy", true]);
}

async function branches(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  const prompts = [await said(stage, session, "one"), await said(stage, session, "two")];
  const whole = await client.branchSession(session.sessionId, { name: "copy" }, session.clientId);
  same("13.2 a branch is a 201", stage.proxy.last("POST", "/session/*/branch").status, 201);
  has("13.2 it has a name, and says where it comes from", whole, {
    displayName: "copy(1)", forkedFrom: { sessionId: session.sessionId, displayName: whole.forkedFrom.displayName }, attached: false,
  });
  same("13.2 it lives, and shows what was said", asked(whole.compactedReplay), ["one", "two"]);
  const part = await client.branchSession(session.sessionId, { name: "copy", atRecordId: prompts[0] }, session.clientId);
  same("13.2 one at a point is on disk only", Object.keys(part).sort(), ["displayName", "forkedFrom", "sessionId"]);
  const cwd = { workspaceCwd: stage.workspace };
  const loaded = await sdk.DaemonSessionClient.load(client, part.sessionId, cwd);
  same("13.2 differs from the peer: the point may be a prompt's id, and its turn is the last", asked(loaded.replaySnapshot.compactedReplay), ["one"]);
  const cold = await stage.turn(part.sessionId, prompts[0]);
  same("13.2 the prompts of the source are nobody's in it", cold.code, "prompt_not_found");
  await said(stage, loaded, "three");
  const live = await sdk.DaemonSessionClient.resume(client, whole.sessionId, cwd);
  await said(stage, live, "four");
  const wrong = await thrown("a branch at nothing", client.branchSession(session.sessionId, { atRecordId: "nothing" }, session.clientId));
  same("13.2 another point is none", [wrong.status, wrong.body.code], [409, "branch_point_invalid"]);
  await session.submitPrompt(text("stuck"));
  const busy = await thrown("a branch while a prompt runs", client.branchSession(session.sessionId, {}, session.clientId));
  same("13.2 while a prompt runs it is refused", [busy.status, busy.body.code], [409, "branch_while_prompt_active"]);
}

async function asides(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  await said(stage, session, "one");
  saw("13.3 a recap", (await session.recap()).recap.includes("one"));
  await session.submitPrompt(text("stuck"));
  same("13.3 a question beside a running prompt", (await session.btw("what?")).answer, "echo: what?");
  const events = [];
  for await (const event of session.generateContent("a text")) events.push(event);
  same("13.3 a text begins and ends", [events[0].type, events.at(-1).type], ["started", "done"]);
  const words = events.filter((event) => event.type === "delta").map((event) => event.text).join("");
  saw("13.3 and comes in pieces between", words.includes("a text"), events);
  const launched = await thrown("a fork", session.fork("do it"));
  saw("13.3 a fork while a prompt runs, or of an agent that knows none, is refused with a code", ["session_busy", "fork_not_supported"].includes(launched.body.code), launched.body);
  await session.cancel();
  await until("the turn's end", async () => (await session.status()).hasActivePrompt === false);
  const { events: shown } = await session.getTranscriptPage();
  same("13.3 none of it is in the history", asked(shown), ["one", "stuck"]);
}

async function shell(stage) {
  await stage.turnd();
  const closed = await thrown("a command", (await stage.open()).shellCommand("true"));
  same("13.4 without the flag a command is refused", [closed.status, closed.body.code], [403, "session_shell_disabled"]);
  await stage.kill();
  await stage.turnd("--enable-session-shell");
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  same("13.4 with it, it runs", await session.shellCommand("echo the ibis; exit 3"), { exitCode: 3, output: "the ibis\n", aborted: false });
  await reader.find("its result", (event) => event.type === "user_shell_result");
  const told = kinds(reader.events);
  saw("13.4 its readers are told of it in order", told.includes("user_shell_command shell_output user_shell_result"), told);
  await said(stage, session, "one");
}

async function steering(stage) {
  await stage.turnd();
  const session = await stage.open();
  const idle = await session.enqueueMidTurnMessage("too early");
  same("13.6 without a turn there is nothing to say it into", idle, { accepted: false, reason: "session_idle" });
  await session.submitPrompt(text("stuck"));
  const taken = await session.enqueueMidTurnMessage("and this", { messageId: "m-1" });
  same("13.6 into a turn it is accepted", taken, { accepted: true, messageId: "m-1" });
  await session.enqueueMidTurnMessage("not this", { messageId: "m-2" });
  const waiting = (await session.getMidTurnMessages()).messages.map((message) => message.messageId);
  same("13.6 the list has both", waiting, ["m-1", "m-2"]);
  has("13.6 one is taken back", await session.removeMidTurnMessage("m-2"), { removed: true });
  await session.cancel();
  await until("the message's turn", async () => (await stage.turn(session.sessionId, "m-1")).state === "completed");
  saw("13.6 what the agent did not take becomes a prompt of that id");
  const left = await session.getMidTurnMessages();
  has("13.6 and the list says so", left, { messages: [], settledMessageIds: ["m-2"], promotedMessageIds: ["m-1"] });
}

async function settings(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  await said(stage, session, "one");
  has("13.7 a name is taken", await session.updateMetadata({ displayName: "the heron" }), { displayName: "the heron" });
  const empty = await thrown("an empty name", session.updateMetadata({ displayName: "" }));
  same("13.7 an empty one is not", [empty.status, empty.body.code, empty.body.field], [400, "invalid_metadata", "displayName"]);
  await session.setModel("scripted-2");
  const unknown = await thrown("a model that is none", session.setModel("nobody"));
  same("13.7 a model that the agent does not know is the agent's error", [unknown.status, unknown.body.code], [500, -32603]);
  const set = await client.setSessionApprovalMode(session.sessionId, "plan", { clientId: session.clientId });
  same("13.7 a mode is set", set, { sessionId: session.sessionId, mode: "plan", previous: "default", persisted: false });
  const wrong = await thrown("a mode that is none", client.setSessionApprovalMode(session.sessionId, "never", { clientId: session.clientId }));
  same("13.7 one that is none is refused, with those that are", [wrong.status, wrong.body.code, Array.isArray(wrong.body.allowed)], [400, "invalid_approval_mode", true]);
  for (const type of ["session_metadata_updated", "model_switched", "model_switch_failed", "approval_mode_changed"]) {
    const event = await reader.find(type, (event) => event.type === type);
    saw(`12 the client knows ${type}`, sdk.asKnownDaemonEvent(event) !== undefined, event);
  }
  await reader.stop();
  const { state } = await session.context();
  same("13.8 the context tells model and mode", [state.models.currentModelId, state.modes.currentModeId], ["scripted-2", "plan"]);
  await stage.kill();
  await stage.turnd();
  const [entry] = await client.listWorkspaceSessions(stage.workspace);
  same("13.7 the name outlives the daemon", entry.displayName, "the heron");
  const moded = await stage.open(client, { approvalMode: "yolo" });
  same("6.1 a session is made with a mode", (await moded.context()).state.modes.currentModeId, "yolo");
}

async function pages(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  for (const words of ["one", "two", "three"]) await said(stage, session, words);
  for (const live of [true, false]) {
    const how = live ? "of one that lives" : "of one that does not";
    const questions = [];
    let cursor;
    do {
      const page = await client.getSessionTranscriptPage(session.sessionId, { limit: 2, ...(cursor === undefined ? {} : { cursor }) });
      questions.push(...asked(page.events));
      saw(`13.8 a page ${how} says whether there is more`, page.hasMore === (page.nextCursor !== undefined), page);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    same(`13.8 the pages ${how} are the history`, questions, ["one", "two", "three"]);
    const newest = await client.getSessionTranscriptPage(session.sessionId, { limit: 500, direction: "backward" });
    same(`13.8 backward a page ${how} is in its order too`, asked(newest.events), ["one", "two", "three"]);
    if (live) {
      has("13.8 the context says that nothing was cut", (await session.context()).recovery, { kind: "clean", canContinue: false });
      await session.close();
    }
  }
  const wrong = await thrown("a cursor that is none", client.getSessionTranscriptPage(session.sessionId, { cursor: "x" }));
  same("13.8 a cursor that is none is refused", [wrong.status, wrong.body.code], [400, "invalid_transcript_cursor"]);
}
