// Wire rules, sections 17.1 and 17.7: what every request of the client carries, and what it makes of refusals.

import { has, same, saw, soon, thrown } from "./checks.mjs";
import { sdk, text } from "./stage.mjs";

export const flows = [
  ["17.1 what every request carries", everyRequest],
  ["17.1 a token", aToken],
  ["17.1 how long the client waits", timeouts],
  ["17.1 five prompts at once and no sixth", localGuard],
  ["17.7 refusals", refusals],
  ["17.7 a full queue", fullQueue],
];

async function everyRequest(stage) {
  await stage.turnd();
  const client = stage.client({ baseUrl: `${stage.proxy.url}//` });
  same("17.1 slashes behind the base URL are stripped", await client.health(), { status: "ok" });
  same("17.1 and the path is the plain one", stage.proxy.calls[0].path, "/health");
  const session = await stage.open(client);
  const created = stage.proxy.last("POST", "/session");
  same("17.1 a body is JSON and says so", created.headers["content-type"], "application/json");
  saw("17.1 a create has no client id yet", !("x-qwen-client-id" in created.headers), created.headers);
  saw("17.1 without a token there is no Authorization", stage.proxy.calls.every((call) => !("authorization" in call.headers)));
  saw("17.1 the client is a program, no page: it sends no Origin", stage.proxy.calls.every((call) => !("origin" in call.headers)));
  await session.heartbeat();
  await session.status();
  const carried = ["/session/*/heartbeat", "/session/*/status"].map(
    (path) => stage.proxy.calls.find((call) => call.path.endsWith(path.split("/").at(-1))).headers["x-qwen-client-id"],
  );
  same("17.1 the client id is sent whenever the call has one", carried, [session.clientId, session.clientId]);
}

async function aToken(stage) {
  await stage.turnd("--token", "sesame");
  const refused = await thrown("a create without the token", stage.create());
  has("17.7 without the token a create is refused", refused, { name: "DaemonHttpError", status: 401 });
  const known = stage.client({ token: "sesame" });
  const session = await stage.create(known);
  const result = await soon("the prompt's end", known.prompt(session.sessionId, text("hello"), undefined, session.clientId));
  same("17.1 with it a prompt runs", result.stopReason, "end_turn");
  const with_ = stage.proxy.calls.slice(1).map((call) => call.headers.authorization);
  same("17.1 the token goes with every request, the stream too", [...new Set(with_)], ["Bearer sesame"]);
  process.env.QWEN_SERVER_TOKEN = "sesame";
  try {
    const session = await stage.create();
    saw("17.1 the client finds the token in its environment", session.attached === false, session);
  } finally {
    delete process.env.QWEN_SERVER_TOKEN;
  }
}

async function timeouts(stage) {
  await stage.turnd("--session-restore-timeout-ms", "45000");
  const client = stage.client();
  const { sessionId } = await stage.create(client);
  const cwd = { workspaceCwd: stage.workspace };
  same("17.1 most calls may take 30 s", await patience(() => client.health()), 30_000);
  same("17.1 a load may take 70 s", await patience(() => client.loadSession(sessionId, cwd)), 70_000);
  same("17.1 a resume too", await patience(() => client.resumeSession(sessionId, cwd)), 70_000);
  same("17.1 a branch may take 120 s", await patience(() => client.branchSession(sessionId, { name: "b" })), 120_000);
  await client.capabilities();
  const told = await patience(() => client.loadSession(sessionId, cwd));
  same("17.1 once the capabilities are known, a load may take what they say and 10 s", told, 55_000);
}

/** The longest timer that a call sets. */
async function patience(call) {
  const { setTimeout } = globalThis;
  const set = [];
  globalThis.setTimeout = (then, after, ...rest) => {
    set.push(after ?? 0);
    return setTimeout(then, after, ...rest);
  };
  try {
    const asked = call();
    globalThis.setTimeout = setTimeout;
    await soon("the call", asked.catch(() => undefined));
  } finally {
    globalThis.setTimeout = setTimeout;
  }
  return Math.max(...set);
}

async function localGuard(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const held = Array.from({ length: 5 }, () => client.prompt(sessionId, text("hang"), undefined, clientId));
  await stage.admitted(5);
  const sixth = await thrown("the sixth prompt", client.prompt(sessionId, text("one more"), undefined, clientId));
  has("17.1 the sixth unsettled prompt of one client object throws", sixth, { name: "DaemonPendingPromptLimitError", limit: 5 });
  same("17.1 and nothing was sent for it", stage.proxy.of("POST", "/session/*/prompt").length, 5);
  const other = await stage.create(client);
  const elsewhere = await soon("a prompt elsewhere", client.prompt(other.sessionId, text("hello"), undefined, other.clientId));
  same("17.1 another session of that object is free", elsewhere.stopReason, "end_turn");
  await client.closeSession(sessionId, clientId);
  await Promise.allSettled(held);
}

async function refusals(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const empty = await thrown("an empty prompt", client.prompt(sessionId, { prompt: [] }, undefined, clientId));
  saw("17.7 a refusal is a DaemonHttpError", empty instanceof sdk.DaemonHttpError, empty);
  same("17.7 with the status", empty.status, 400);
  same("17.7 and the body", empty.body, stage.proxy.last("POST", "/session/*/prompt").answer);
  same("17.7 its message uses the body's `error`", empty.message, `POST /session/:id/prompt: ${empty.body.error}`);
  const nowhere = { status: 404, body: { error: 'No session with id "nowhere"', code: "session_not_found", sessionId: "nowhere" } };
  for (const [what, call] of [
    ["prompt", () => client.prompt("nowhere", text("hello"))],
    ["cancel", () => client.cancel("nowhere")],
    ["heartbeat", () => client.heartbeat("nowhere")],
    ["status", () => client.sessionStatus("nowhere")],
    ["pending list", () => client.getPendingPrompts("nowhere")],
    ["load", () => client.loadSession("nowhere", { workspaceCwd: stage.workspace })],
    ["resume", () => client.resumeSession("nowhere", { workspaceCwd: stage.workspace })],
    ["stream", () => client.subscribeEvents("nowhere").next()],
  ]) {
    has(`17.7 a ${what} of an unknown session is 404 session_not_found`, await thrown(what, call()), nowhere);
  }
  const unknown = await client.sessionStats(sessionId).catch((error) => error);
  has("17.7 differs from the peer: what turnd does not have is a 404 in JSON with a code, no HTML page", unknown, { status: 404 });
  saw("17.7 and the client reads that body as any other", typeof unknown.body.code === "string", unknown.body);
  stage.proxy.rewrite = () => JSON.stringify({ error: "Internal error", code: -32603, data: { details: "what was meant" } });
  stage.proxy.after = (call) => (call.status = 500);
  const inner = await thrown("a refusal that the proxy made a 500", client.heartbeat("nowhere"));
  saw("17.7 of a 5xx whose `error` is generic the client prefers the details", inner.message.endsWith("what was meant"), inner.message);
  stage.proxy.after = () => {};
  const plain = await thrown("the same as a 404", client.heartbeat("nowhere"));
  saw("17.7 of a 4xx it does not", plain.message.endsWith("Internal error"), plain.message);
}

async function fullQueue(stage) {
  await stage.turnd();
  const client = stage.client({ maxPendingPromptsPerSession: null });
  const session = await stage.open(client, { maxPendingPromptsPerSession: null });
  for (let n = 0; n < 5; n += 1) await session.submitPrompt(text("hang"));
  const sixth = await thrown("the sixth prompt", session.submitPrompt(text("one more")));
  saw("17.7 prompt_queue_full becomes a pending-limit error", sixth instanceof sdk.DaemonPendingPromptLimitError, sixth);
  has("17.7 with the daemon's own figures", sixth, { sessionId: session.sessionId, limit: 5, pendingCount: 5 });
  const call = stage.proxy.last("POST", "/session/*/prompt");
  same("5.2 it was a 503 that says when to come back", [call.status, call.answerHeaders["retry-after"]], [503, "5"]);
  const listed = (await session.getPendingPrompts()).pendingPrompts;
  const queued = listed.at(-1).promptId;
  same("8.6 a queued prompt can be removed", await session.removePendingPrompt(queued), { removed: true });
  const admitted = await session.submitPrompt(text("hang"));
  saw("8.2 differs from the peer: its slot is free at once", typeof admitted.promptId === "string", admitted);
}
