// Wire rules, sections 17.4 and 10: coming back with a cursor, and what the client is told when it cannot simply go on.

import { has, same, saw, soon, thrown, until } from "./checks.mjs";
import { kinds, text } from "./stage.mjs";

export const flows = [
  ["17.4 coming back after a clean end", comingBack],
  ["17.4 coming back after the connection broke in mid-turn", broken],
  ["17.4 frames without a number", unnumbered],
  ["10.3 a cursor the ring no longer has", evicted],
  ["10.3 a cursor of another life of the daemon", anotherLife],
  ["10.1 the size of the queue", queueSize],
  ["10.5 a stream ends with its session", endOfSession],
];

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const resync = (event) => event.type === "state_resync_required";
const complete = (event) => event.type === "replay_complete";
const ids = (events) => events.filter((event) => event.id !== undefined).map((event) => event.id);

async function comingBack(stage) {
  await stage.turnd();
  const { proxy } = stage;
  const session = await stage.open();
  const first = stage.read(session);
  await first.find("the end of the replay", complete);
  await soon("a prompt", session.prompt(text("one")));
  await until("the cursor to be at its end", () => session.lastEventId === first.events.at(-1).id);
  await first.stop();
  await soon("a prompt", session.prompt(text("while nobody read")));
  const [before, epoch] = [session.lastEventId, session.eventEpoch];
  same("17.4 a prompt's own stream does not move the cursor", before, first.events.at(-1).id);
  const opened = proxy.of("GET", "/session/*/events")[0].answerHeaders["x-qwen-sse-stream-id"];
  saw("10.2 every stream has an id, a UUID", UUID.test(opened), opened);
  const second = stage.read(session);
  await second.find("the end of the replay", complete);
  const call = proxy.last("GET", "/session/*/events");
  same("17.4 coming back says so, and which stream it followed", call.query, `connectReason=resume&previousStreamId=${opened}`);
  const carried = { "last-event-id": String(before), "x-qwen-event-epoch": epoch, "x-qwen-client-id": session.clientId };
  has("17.4 with cursor, epoch and client id", call.headers, carried);
  const missed = second.events.filter((event) => event.id !== undefined);
  same("10.3 everything missed is sent, in order, without a gap", ids(missed), missed.map((_, n) => before + 1 + n));
  saw("10.3 the missed turn's end among it", missed.at(-1).type === "turn_complete", kinds(missed));
  const told = { replayedCount: missed.length, lastReplayedEventId: missed.at(-1).id, lastEventId: missed.at(-1).id };
  same("10.3 and replay_complete counts it", second.events.find(complete).data, told);
  await second.stop();
  const third = stage.read(session);
  await third.find("the end of the replay", complete);
  same("10.3 from the very tip there is nothing to replay", third.events.map((event) => [event.type, event.data]), [["replay_complete", { replayedCount: 0 }]]);
}

async function broken(stage) {
  await stage.turnd();
  const session = await stage.open();
  const seen = [];
  const all = new Set();
  const accepted = await session.submitPrompt(text("slow 1500"));
  let broken = 0;
  for (let n = 0; !seen.some((event) => event.type === "turn_complete"); n += 1) {
    const reader = stage.read(session);
    await until("news", () => reader.ended || reader.events.some((event) => event.id !== undefined));
    if (n < 4 && !reader.ended) {
      stage.proxy.last("GET", "/session/*/events").cut();
      broken += 1;
    } else if (!reader.ended) {
      await reader.terminal(accepted.promptId);
      await reader.stop();
    }
    await reader.over();
    seen.push(...reader.events);
    for (const event of reader.events) all.add(event.id);
  }
  saw(`17.4 the connection broke ${broken} times in one turn`, broken > 1);
  const numbers = ids(seen);
  same("I5 each event was seen once, in order, without a gap", numbers, numbers.map((_, n) => n + 1));
  const turn = await stage.turn(session.sessionId, accepted.promptId);
  const said = seen.filter((e) => e.data?.update?.sessionUpdate === "agent_message_chunk").map((e) => e.data.update.content.text ?? "");
  same("demand 32 the turn completed, and the pieces read are the whole answer", [turn.state, said.join("")], ["completed", turn.resultText]);
}

async function unnumbered(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", complete);
  saw("17.4 replay_complete has no number", !("id" in reader.events.at(-1)), reader.events.at(-1));
  same("17.4 and does not move the cursor", session.lastEventId, ids(reader.events).at(-1) ?? 0);
  await reader.stop();
  await soon("a prompt", session.prompt(text("hello")));
  const behind = stage.read(session, { lastEventId: 10_000 });
  await behind.find("the end of the replay", complete);
  same("10.3 a cursor from the future is told first", [behind.events[0].type, behind.events[0].data.reason], ["state_resync_required", "epoch_reset"]);
  saw("10.2 a gap has no number either", !("id" in behind.events[0]), behind.events[0]);
  same("10.3 then comes all there is", ids(behind.events), ids(behind.events).map((_, n) => n + 1));
}

async function evicted(stage) {
  await stage.turnd("--event-ring-size", "8");
  const session = await stage.open();
  await soon("a prompt", session.prompt(text("long 200000")));
  for (let n = 0; n < 4; n += 1) await soon("a prompt", session.prompt(text("hello")));
  const reader = stage.read(session, { lastEventId: 1 });
  await reader.find("the end of the replay", complete);
  const [gap] = reader.events;
  has("10.3 events that the ring let go are a gap that is told", gap.data, { reason: "ring_evicted", lastDeliveredId: 1 });
  const kept = ids(reader.events);
  same("10.3 with where it goes on", gap.data.earliestAvailableId, kept[0]);
  same("10.3 and the whole ring after it", [kept.length, kept.at(-1) - kept[0]], [8, 7]);
}

/** Demand 30: a cursor from a dead process must not look valid once the new one has as many events. */
async function anotherLife(stage) {
  await stage.turnd();
  const client = stage.client();
  const session = await stage.open(client);
  const other = await stage.open(client);
  await soon("a prompt", other.prompt(text("hello")));
  const reader = stage.read(session);
  const run = async (session, events) => {
    while (session.lastEventId < events) await soon("a prompt", session.prompt(text("hello")));
  };
  await run(session, 50);
  const [cursor, epoch] = [session.lastEventId, session.eventEpoch];
  await stage.kill();
  await soon("the stream's end", reader.over());
  saw("17.4 the kill ends the stream", reader.error !== undefined || reader.ended);
  await stage.turnd();
  const loaded = await client.loadSession(session.sessionId, { workspaceCwd: stage.workspace });
  saw("7.3 the load gives a new epoch", loaded.eventEpoch !== epoch, loaded.eventEpoch);
  for (let n = 0; n < 20; n += 1) await soon("a prompt", client.prompt(session.sessionId, text("hello"), undefined, loaded.clientId));
  const tip = (await client.loadSession(session.sessionId, { workspaceCwd: stage.workspace })).lastEventId;
  const more = tip - loaded.lastEventId;
  saw(`demand 30: ${cursor} events before the kill, ${more} in the new life`, cursor >= 50 && more >= 80 && more > cursor);
  const again = stage.read(session);
  await again.find("the end of the replay", complete);
  const call = stage.proxy.last("GET", "/session/*/events");
  has("17.4 the client comes back with the old cursor and the old epoch", call.headers, { "last-event-id": String(cursor), "x-qwen-event-epoch": epoch });
  const [gap] = again.events;
  has("demand 30: the gap is told", gap.data, { reason: "epoch_reset", detail: "epoch_mismatch", lastDeliveredId: cursor });
  same("demand 30: and then comes the whole ring of the new life", ids(again.events)[0], gap.data.earliestAvailableId);
  same("17.4 from now on the client has the new epoch", session.eventEpoch, loaded.eventEpoch);
  await again.stop();
  const raw = async (lastEventId, epoch) => {
    const stop = new AbortController();
    const events = [];
    for await (const event of client.subscribeEvents(session.sessionId, { lastEventId, epoch, signal: stop.signal })) {
      events.push(event);
      if (complete(event)) break;
    }
    stop.abort();
    return events[0].data.reason ?? "none";
  };
  const differs = "demand 30: differs from the peer: numbers go on across lives, so that";
  same(`${differs} the old cursor is told without its epoch too`, await raw(cursor, undefined), "ring_evicted");
  same("demand 30: a made-up cursor without an epoch is told", await raw(9_999_999, undefined), "ring_evicted");
  same("demand 30: one from the future is told", await raw(tip + 1, loaded.eventEpoch), "epoch_reset");
  const theirs = await client.loadSession(other.sessionId, { workspaceCwd: stage.workspace });
  same("demand 30: one of another session is told", await raw(tip - 5, theirs.eventEpoch), "epoch_reset");
  same("10.3 one within the replayed history is told", await raw(loaded.lastEventId - 1, loaded.eventEpoch), "ring_evicted");
  same("10.3 and its own tip is none of these", await raw(tip, loaded.eventEpoch), "none");
}

async function queueSize(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session, { maxQueued: 16 });
  await reader.find("the end of the replay", complete);
  same("10.1 the size of the queue travels in the query", stage.proxy.last("GET", "/session/*/events").query, "maxQueued=16&connectReason=initial");
  await reader.stop();
  const refused = await thrown("a queue that is too small", session.events({ maxQueued: 15 }).next());
  same("10.1 one out of its range is refused", [refused.status, refused.body.code], [400, "invalid_max_queued"]);
}

async function endOfSession(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", complete);
  await session.close();
  await soon("the stream's end", reader.over());
  same("10.5 after session_closed the stream ends by itself", [reader.events.at(-1).type, reader.error], ["session_closed", undefined]);
  const other = await stage.open();
  const prompt = other.submitPrompt(text("die"));
  const events = stage.read(other);
  const { promptId } = await prompt;
  await soon("the stream's end", events.over());
  const code = (await events.terminal(promptId)).data.code;
  same("8.4 differs from the peer: a prompt whose agent dies ends with a code", code, "channel_closed");
  same("10.5 after session_died too", [events.events.at(-1).type, events.error], ["session_died", undefined]);
}
