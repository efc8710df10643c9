// Wire rules, section 17.8: what the client needs of a server, and what it does without. The proxy takes away or spoils one thing at
// a time, so that what turnd gives is known to be what the client lives on.

import { has, same, saw, soon, thrown } from "./checks.mjs";
import { kind, sdk, text } from "./stage.mjs";

export const flows = [
  ["17.8 what each route must answer", routes],
  ["17.8 a server that offers only that", bare],
  ["17.8 what the client cannot do without", needs],
  ["17.8 the largest frame", largestFrame],
  ["17.8 the session that was asked for", askedFor],
];

async function routes(stage) {
  await stage.turnd();
  const { proxy } = stage;
  const client = stage.client();
  const session = await stage.open(client);
  const cwd = { workspaceCwd: stage.workspace };
  const reader = stage.read(session);
  const prompt = session.prompt(text("tool echo hi"));
  const { data } = await reader.find("a question", (event) => event.type === "permission_request");
  await session.respondToPermission(data.requestId, { outcome: { outcome: "selected", optionId: data.options[0].optionId } });
  await soon("the prompt", prompt);
  await session.cancel();
  await client.loadSession(session.sessionId, cwd);
  const { clientId } = await client.resumeSession(session.sessionId, cwd);
  await session.detach();
  await client.closeSession(session.sessionId, clientId);
  await soon("the stream's end", reader.over());
  const basic = { sessionId: session.sessionId, workspaceCwd: stage.workspace };
  const status = (method, path) => proxy.last(method, path).status;
  for (const [path, attached] of [["/session", false], ["/session/*/load", true], ["/session/*/resume", true]]) {
    same(`17.8 POST ${path} is 200`, status("POST", path), 200);
    has(`17.8 POST ${path} names session, folder and whether it attached`, proxy.last("POST", path).answer, { ...basic, attached });
  }
  same("17.8 POST /session/:id/prompt is 202", status("POST", "/session/*/prompt"), 202);
  const receipt = proxy.last("POST", "/session/*/prompt").answer;
  saw("17.8 with a prompt id and a cursor", typeof receipt.promptId === "string" && Number.isInteger(receipt.lastEventId), receipt);
  const stream = proxy.last("GET", "/session/*/events");
  same("17.8 GET /session/:id/events is 200", stream.status, 200);
  same("17.8 of the right content type", stream.answerHeaders["content-type"], "text/event-stream");
  for (const event of reader.events) {
    const sound = event.v === 1 && typeof event.type === "string" && (event.id === undefined || (Number.isSafeInteger(event.id) && event.id >= 1));
    if (!sound) saw("17.8 an event has v 1, a type and a sound id or none", false, event);
  }
  saw(`17.8 each of ${reader.events.length} events has v 1, a type, and a whole id from 1 or none`);
  const lines = stream.text.split("\n").filter((line) => line.startsWith("data: "));
  same("17.8 each frame is one line of data", lines.length, reader.events.length);
  same("17.8 POST /session/:id/cancel is 204", status("POST", "/session/*/cancel"), 204);
  same("17.8 POST /permission/:id is 200", status("POST", "/permission/*"), 200);
  same("17.8 POST /session/:id/detach is 204", status("POST", "/session/*/detach"), 204);
  same("17.8 DELETE /session/:id is 204", status("DELETE", "/session/*"), 204);
}

/** Only `data:` lines with `{id, v, type, data}`, and none for frames about the stream itself. */
function strip(piece, call) {
  call.rest = (call.rest ?? "") + piece;
  const blocks = call.rest.split("\n\n");
  call.rest = blocks.pop();
  const kept = blocks.map((block) => block.match(/^data: (.*)$/m)?.[1]).filter(Boolean).map((json) => JSON.parse(json));
  return kept
    .filter((event) => event.id !== undefined)
    .map(({ id, v, type, data }) => `data: ${JSON.stringify({ id, v, type, data })}\n\n`)
    .join("");
}

const MINIMUM = { 200: ["sessionId", "workspaceCwd", "attached"], 202: ["promptId", "lastEventId"] };

function minimal(body, call) {
  if (call.answerHeaders["content-type"]?.startsWith("text/event-stream")) return strip(body, call);
  const fields = call.path.startsWith("/session") ? MINIMUM[call.status] : undefined;
  if (fields === undefined || call.path.includes("/permission")) return body;
  return JSON.stringify(Object.fromEntries(fields.map((field) => [field, call.answer[field]])));
}

async function bare(stage) {
  await stage.turnd();
  stage.proxy.rewrite = minimal;
  stage.proxy.dress = (headers) => (headers["content-type"] === undefined ? {} : { "content-type": headers["content-type"] });
  const client = stage.client();
  const session = await stage.open(client);
  same("17.8 no client id is given", session.clientId, undefined);
  same("17.8 without it a prompt runs", (await soon("a prompt", session.prompt(text("hello")))).stopReason, "end_turn");
  has("17.8 an error prompt throws", await thrown("a prompt", session.prompt(text("fail no"))), { status: 500, body: "-32603" });
  const reader = stage.read(session);
  const prompt = session.prompt(text("tool echo hi"));
  const { id, data } = await reader.find("a question", (event) => event.type === "permission_request");
  const vote = { outcome: { outcome: "selected", optionId: data.options[0].optionId } };
  same("17.8 a vote counts", await session.respondToPermission(data.requestId, vote), true);
  same("17.8 and the turn ends", (await soon("the prompt", prompt)).stopReason, "end_turn");
  same("17.8 no epoch is known", session.eventEpoch, undefined);
  const stuck = session.prompt(text("stuck"));
  await reader.find("its words", (event) => kind(event) === "agent_message_chunk" && event.id > id);
  await stage.admitted(4);
  await session.cancel();
  same("17.8 a cancel works", (await soon("the prompt", stuck)).stopReason, "cancelled");
  const stop = new AbortController();
  const aborted = session.prompt(text("stuck"), stop.signal);
  await stage.admitted(5);
  stop.abort();
  same("17.8 an abort works", (await thrown("the prompt", aborted)).name, "AbortError");
  const cwd = { workspaceCwd: stage.workspace };
  const loaded = await sdk.DaemonSessionClient.load(client, session.sessionId, cwd);
  same("17.8 a load without cursor begins at 0, without a replay", [loaded.lastEventId, loaded.replaySnapshotComplete], [0, false]);
  same("17.8 a resume too", (await sdk.DaemonSessionClient.resume(client, session.sessionId, cwd)).lastEventId, 0);
  await session.detach();
  await session.close();
  same("17.8 and a close", stage.proxy.last("DELETE", "/session/*").status, 204);
  same("17.8 capabilities were never asked for", stage.proxy.of("GET", "/capabilities"), []);
}

async function needs(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const spoil = async (what, change) => {
    // The stream ends with the turn, or the client would wait for ever for what it cannot read.
    stage.proxy.rewrite = (text, call) => {
      if (!call.path.endsWith("/events")) return text;
      if (text.includes("event: turn_complete")) setImmediate(call.end);
      return change(text);
    };
    const error = await thrown(what, client.prompt(sessionId, text("hello"), undefined, clientId));
    same(`17.8 ${what} the client never hears of the end`, error.message, "SSE stream ended");
  };
  await spoil("without v 1", (text) => text.replaceAll('"v":1', '"v":2'));
  await spoil("without a type that is text", (text) => text.replaceAll('"type":"turn_complete"', '"type":7'));
  await spoil("with an id below 1", (text) => text.replaceAll(/"id":\d+/g, '"id":0'));
  await spoil("with an id that is no whole number", (text) => text.replaceAll(/"id":(\d+)/g, '"id":$1.5'));
  await spoil("without data.promptId", (text) => text.replaceAll(/"promptId":"[^"]*","stopReason"/g, '"stopReason"'));
  stage.proxy.rewrite = (text) => text;
  stage.proxy.dress = (headers, call) => (call.path.endsWith("/events") ? { ...headers, "content-type": "text/plain" } : headers);
  const typed = await thrown("a stream of another type", client.prompt(sessionId, text("hello"), undefined, clientId));
  saw("17.8 without its content type the client refuses the stream", /expected content-type text\/event-stream/.test(typed.message), typed.message);
  stage.proxy.dress = (headers) => headers;
  const [before, prompt] = [stage.proxy.calls.length, client.prompt(sessionId, text("hello"), undefined, clientId)];
  await soon("the prompt", prompt);
  const [posted, stream] = stage.proxy.calls.slice(before);
  const first = Number(stream.text.match(/^id: (\d+)$/m)[1]);
  same("17.8 the stream replays from the 202's lastEventId, whenever it is opened", first, posted.answer.lastEventId + 1);
}

async function largestFrame(stage) {
  await stage.turnd();
  const client = stage.client();
  const { sessionId, clientId } = await stage.create(client);
  const run = (bytes) => {
    stage.proxy.rewrite = (piece, call) => (call.path.endsWith("/events") ? padded(piece, bytes) : piece);
    return client.prompt(sessionId, text("hello"), undefined, clientId);
  };
  const below = await soon("a prompt with a large frame before its end", run(15 * 1024 * 1024));
  same("17.8 a frame of 15 MiB is read", below.stopReason, "end_turn");
  const error = await thrown("a prompt with a larger one", run(17 * 1024 * 1024));
  same("17.8 one beyond 16 MiB ends the stream with an error", error.name, "SseFramingError");
}

async function askedFor(stage) {
  await stage.turnd();
  const client = stage.client();
  const chosen = "A1B2C3D4-0000-4000-8000-00000000000E";
  const session = await stage.open(client, { sessionId: chosen });
  same("17.8 a session is the one that was asked for, in lower case", session.sessionId, chosen.toLowerCase());
  stage.proxy.rewrite = (text) => text.replaceAll("ffff", "eeee");
  const other = await thrown("another session than the one asked for", stage.open(client, { sessionId: chosen.replace("A1B2", "FFFF") }));
  same("17.8 a create that answers with another is refused by the client", other.name, "DaemonSessionIdProtocolError");
}

/** Puts a frame of so many bytes before the end of a turn. */
function padded(piece, bytes) {
  const frame = `event: padding\ndata: {"v":1,"type":"padding","data":"${"x".repeat(bytes)}"}\n\n`;
  return piece.replace(/id: \d+\nevent: turn_complete/, (end) => frame + end);
}
