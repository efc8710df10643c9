// Wire rules, section 17.2: create, prompt and await with `DaemonClient`, and aborts at every moment.

import { has, same, saw, soon, thrown, until } from "./checks.mjs";
import { sdk, text } from "./stage.mjs";

export const flows = [
  ["17.2 create, prompt, await", awaited],
  ["17.2 prompts one after the other and at once", several],
  ["17.2 a prompt that fails", failing],
  ["17.2 an abort before the 202", abortBefore],
  ["17.2 an abort after the 202, before the stream has begun", abortBetween],
  ["17.2 an abort while the turn runs", abortAfter],
  ["17.2 the stream ends before the turn", streamEnds],
];

async function awaited(stage) {
  await stage.turnd();
  const { proxy } = stage;
  const client = stage.client();
  const session = await stage.create(client);
  const created = proxy.calls[0];
  same("17.2 1. a create posts folder and scope", created.body, { cwd: stage.workspace, sessionScope: "thread" });
  has("17.2 1. and gets a session of that folder, not attached", created.answer, { workspaceCwd: stage.workspace, attached: false });
  same("17.2 the client hands the answer on as it is", session, created.answer);
  const result = await soon("the prompt's end", client.prompt(session.sessionId, text("hello"), undefined, session.clientId));
  same("17.2 4. it resolves with the stop reason", result.stopReason, "end_turn");
  same("2.2 a whole run needs three requests, and none for capabilities", proxy.lines(), [
    "POST /session",
    "POST /session/*/prompt",
    "GET /session/*/events",
  ]);
  const [, posted, stream] = proxy.calls;
  same("17.2 2. the prompt's body is the blocks alone", posted.body, text("hello"));
  same("17.2 2. it is answered 202", posted.status, 202);
  same("17.2 2. with id, cursor and epoch", Object.keys(posted.answer).sort(), ["eventEpoch", "lastEventId", "promptId"]);
  const asked = { accept: "text/event-stream", "last-event-id": String(posted.answer.lastEventId), "x-qwen-event-epoch": posted.answer.eventEpoch };
  has("17.2 3. the stream is asked for from that cursor and epoch", stream.headers, asked);
  saw("17.2 3. with no client id and no query", !("x-qwen-client-id" in stream.headers) && stream.query === "", stream.headers);
  saw("17.2 4. the terminal names the prompt in its data", stream.text.includes(`"promptId":"${posted.answer.promptId}","stopReason"`), stream.text);
  await until("the stream to be closed", async () => stream.over && (await stage.streams()) === 0);
  saw("17.2 4. then the client closes the stream, and the daemon notices");
}

async function several(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const run = (words) => client.prompt(sessionId, text(words), undefined, clientId);
  for (const words of ["one", "two"]) same(`prompt ${words} ends well`, (await soon(words, run(words))).stopReason, "end_turn");
  const at_once = await soon("three prompts", Promise.all(["three", "max_tokens", "refuse"].map(run)));
  const reasons = at_once.map((result) => result.stopReason);
  same("8.4 each of three at once hears of its own end, stop reasons passed through", reasons, ["end_turn", "max_tokens", "refusal"]);
  same("17.2 one stream per prompt", stage.proxy.of("GET", "/session/*/events").length, 5);
}

async function failing(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const error = await thrown("the failing prompt", client.prompt(sessionId, text("fail no disk"), undefined, clientId));
  saw("17.2 4. a turn_error throws a DaemonHttpError", error instanceof sdk.DaemonHttpError, error);
  has("17.2 4. of status 500, its body the code, its message the message", error, { status: 500, body: "-32603", message: "no disk" });
  const after = await soon("the next prompt", client.prompt(sessionId, text("hello"), undefined, clientId));
  same("and the session goes on", after.stopReason, "end_turn");
}

async function abortBefore(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const abort = new AbortController();
  let go;
  stage.proxy.before = (call) => (call.path.endsWith("/prompt") ? new Promise((resolve) => (go = resolve)) : undefined);
  const prompt = client.prompt(sessionId, text("hello"), abort.signal, clientId);
  await until("the prompt to be on its way", () => go);
  abort.abort();
  const error = await thrown("the aborted prompt", prompt);
  same("17.2 before the 202 the fetch aborts", error.name, "AbortError");
  await until("the request to be gone", () => stage.proxy.last("POST", "/session/*/prompt").over);
  go();
  stage.proxy.before = () => {};
  const pending = await client.getPendingPrompts(sessionId, { clientId });
  same("nothing was admitted", pending, { pendingPrompts: [] });
  stage.proxy.after = (call) => (call.status === 202 ? new Promise(() => {}) : undefined);
  const again = new AbortController();
  const lost = client.prompt(sessionId, text("hang"), again.signal, clientId);
  const posted = await stage.proxy.call("the 202 to be on its way", (call) => call.status === 202);
  again.abort();
  same("17.2 the same while the 202 is on its way", (await thrown("the aborted prompt", lost)).name, "AbortError");
  const { pendingPrompts } = await client.getPendingPrompts(sessionId, { clientId });
  same("then it was admitted and runs", pendingPrompts.map((p) => [p.promptId, p.state]), [[posted.answer.promptId, "running"]]);
  same("and no cancel was sent for either", stage.proxy.of("POST", "/session/*/cancel"), []);
}

async function abortBetween(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const abort = new AbortController();
  stage.proxy.before = (call) => (call.path.endsWith("/events") ? new Promise(() => {}) : undefined);
  const prompt = client.prompt(sessionId, text("hang"), abort.signal, clientId);
  await stage.proxy.call("the stream to be asked for", (call) => call.path.endsWith("/events"));
  abort.abort();
  same("17.2 before the first bytes the abort surfaces as an AbortError", (await thrown("the prompt", prompt)).name, "AbortError");
  const { promptId } = stage.proxy.last("POST", "/session/*/prompt").answer;
  const cancel = await stage.proxy.call("the cancel", (call) => call.path.endsWith("/cancel") && call.status !== undefined);
  same("17.2 and a cancel is sent, which turnd takes", [cancel.body, cancel.status], [{}, 204]);
  const turn = await until("the turn's end", async () => {
    const told = await stage.turn(sessionId, promptId);
    return told.state !== "running" && told;
  });
  same("the prompt is cancelled", turn.state, "cancelled");
}

async function abortAfter(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const abort = new AbortController();
  const prompt = client.prompt(sessionId, text("stuck"), abort.signal, clientId);
  const stream = await stage.proxy.call("the first events", (call) => call.path.endsWith("/events") && call.text.includes("agent_message_chunk"));
  abort.abort();
  same("17.2 afterwards the promise rejects with", (await thrown("the prompt", prompt)).message, "SSE stream ended");
  await until("the stream to be dropped", () => stream.over);
  saw("17.2 the stream is dropped");
  const { promptId } = stage.proxy.last("POST", "/session/*/prompt").answer;
  const settled = await client.getPendingPrompts(sessionId, { clientId });
  same("17.2 and the turn runs on: an abort cancels nothing", settled.pendingPrompts.map((p) => [p.promptId, p.state]), [[promptId, "running"]]);
  same("17.2 no cancel request was sent", stage.proxy.of("POST", "/session/*/cancel"), []);
  await client.cancel(sessionId, clientId);
  const turn = await until("the turn's end", async () => {
    const told = await stage.turn(sessionId, promptId);
    return told.state !== "running" && told;
  });
  same("a cancel does", turn.state, "cancelled");
}

async function streamEnds(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const prompt = client.prompt(sessionId, text("hang"), undefined, clientId);
  await stage.proxy.call("the stream", (call) => call.path.endsWith("/events") && call.text.includes("user_message_chunk"));
  stage.proxy.last("GET", "/session/*/events").end();
  same("17.2 a stream that ends first rejects with", (await thrown("the prompt", prompt)).message, "SSE stream ended");
  const closed = client.prompt(sessionId, text("hello"), undefined, clientId);
  await stage.admitted(2);
  await until("its stream", () => stage.proxy.of("GET", "/session/*/events").length === 2);
  await client.closeSession(sessionId, clientId);
  const error = await thrown("the queued prompt", closed);
  const code = { status: 500, body: "session_closed" };
  has("8.4 differs from the peer: a queued prompt ends as session_closed, it is not dispatched into the closing agent", error, code);
}
