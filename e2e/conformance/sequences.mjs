// The events of a turn in order and shape, as the peer was seen to send them (wire rules, sections 8, 11 and 12), against what turnd
// sends for the same acts. Where the two differ on purpose a sentence says so.

import { isDeepStrictEqual } from "node:util";

import { same, saw } from "./checks.mjs";
import { kind, text } from "./stage.mjs";

export const flows = [
  ["the events of a basic turn", basicTurn],
  ["the events of a queue with a removal and cancels", queue],
  ["the events of a turn that fails", turnError],
  ["the events of questions", questions],
];

/** The fields the peer's events have, as paths; what the agent says inside an update is its own. */
const PEER_DATA = {
  user_message_chunk: "sessionId update._meta.serverTimestamp update._meta.source update.content.text update.content.type update.sessionUpdate",
  turn_complete: "promptId sessionId stopReason",
  turn_cancelled: "promptCancelled.cancelledAt promptCancelled.elapsedMs promptId sessionId stopReason",
  turn_error: "code message promptId sessionId",
  prompt_cancelled: "sessionId",
  forward_failed: "reason sessionId",
  pending_prompt_added: "promptId queuedAt sessionId text",
  pending_prompt_started: "promptId sessionId text",
  pending_prompt_completed: "promptId sessionId state",
  permission_resolved: "outcome.optionId outcome.outcome requestId voterClientId",
  permission_already_resolved: "outcome.optionId outcome.outcome requestId sessionId",
};
/** What turnd adds to them. */
const OURS = {
  turn_complete: "inputWritten",
  turn_cancelled: "inputWritten",
  turn_error: "inputWritten",
  permission_resolved: "reason",
};

async function basicTurn(stage) {
  const { session, reader, prompt } = await begin(stage);
  const turn = await prompt("hello world");
  await reader.terminal(turn);
  same("trace 01: echo, the agent's words, the end", story(reader.events, { A: turn }), [
    "user_message_chunk A",
    "agent_message_chunk A",
    "turn_complete A end_turn",
  ]);
  saw("trace 01: differs from the peer: no empty chunk with usage comes before the end, it is that agent's own");
  saw("trace 01: differs from the peer: no branch point, which is its agent's own too", !("branchPoint" in reader.events.at(-1).data));
  const ours = reader.events.filter((event) => event.id !== undefined);
  const envelope = ["_meta", "data", "id", "originatorClientId", "promptId", "type", "v"];
  for (const event of ours) if (Object.keys(event).sort().join() !== envelope.join()) same("", Object.keys(event).sort(), envelope);
  saw("trace 01: every envelope is id, v, type, data, promptId, originatorClientId and _meta");
  same("trace 01: its _meta is the server's time alone", [...new Set(ours.map((event) => Object.keys(event._meta).join()))], ["serverTimestamp"]);
  same("trace 01: the originator is the client that prompted", [...new Set(ours.map((event) => event.originatorClientId))], [session.clientId]);
  const { update } = ours[0].data;
  same("trace 01: the echo is the block as it was sent, marked as the daemon's", [update.content, update._meta.source], [text("hello world").prompt[0], "bridge-echo"]);
  shapes(ours);
}

async function queue(stage) {
  const { session, reader, prompt } = await begin(stage);
  const names = {};
  for (const [name, words] of [["A", "stuck"], ["B", "second"], ["C", "third"], ["D", "fourth"]]) names[name] = await prompt(words);
  await session.removePendingPrompt(names.C);
  await reader.find("the agent's words", (event) => kind(event) === "agent_message_chunk" && event.promptId === names.A);
  await session.cancel();
  await reader.terminal(names.D);
  names.E = await prompt("stuck");
  await reader.find("its words", (event) => kind(event) === "agent_message_chunk" && event.promptId === names.E);
  await session.removePendingPrompt(names.E);
  await reader.terminal(names.E);
  await session.cancel();
  await session.cancel();
  names.F = await prompt("hello");
  await reader.terminal(names.F);
  const told = story(reader.events, names);
  // The agent's first words come when they come; where they stand among the news of the queue is nobody's promise.
  const first = told.indexOf("agent_message_chunk A");
  same("trace 03: the order of queue, removal and cancel is the peer's", told.toSpliced(first, 1), [
    "user_message_chunk A",
    "pending_prompt_added B",
    "pending_prompt_added C",
    "pending_prompt_added D",
    "pending_prompt_completed C removed",
    "turn_complete C cancelled",
    "prompt_cancelled A",
    "turn_complete A cancelled",
    "pending_prompt_started B",
    "user_message_chunk B",
    "agent_message_chunk B",
    "turn_complete B end_turn",
    "pending_prompt_completed B completed",
    "pending_prompt_started D",
    "user_message_chunk D",
    "agent_message_chunk D",
    "turn_complete D end_turn",
    "pending_prompt_completed D completed",
    "user_message_chunk E",
    "agent_message_chunk E",
    "prompt_cancelled E",
    "pending_prompt_completed E removed",
    "turn_complete E cancelled",
    "prompt_cancelled -",
    "user_message_chunk F",
    "agent_message_chunk F",
    "turn_complete F end_turn",
  ]);
  saw("trace 03: an idle cancel is told once, without a prompt, until another prompt was dispatched");
  const idle = reader.events.find((event) => event.type === "prompt_cancelled" && event.promptId === undefined);
  same("trace 03: and with who asked for it", idle.originatorClientId, session.clientId);
  const removed = reader.events.find((event) => event.type === "turn_complete" && event.promptId === names.C);
  same("trace 03: differs from the peer: the end of a removed prompt says that the agent never got it", removed.data.inputWritten, "no");
  shapes(reader.events);
}

async function turnError(stage) {
  const { reader, prompt } = await begin(stage);
  const turn = await prompt("fail no disk");
  await reader.terminal(turn);
  same("trace 04: echo, a prompt_cancelled that is no end, the error", story(reader.events, { A: turn }), [
    "user_message_chunk A",
    "prompt_cancelled A forward_failed",
    "turn_error A -32603",
  ]);
  const { message } = reader.events.at(-1).data;
  same("trace 04: a generic message gives way to its details", message, "no disk");
  shapes(reader.events);
}

async function questions(stage) {
  const { session, reader, prompt } = await begin(stage);
  const names = {};
  const ask = async (name, vote) => {
    names[name] = await prompt("tool true");
    const { data } = await reader.find("its question", (event) => event.type === "permission_request" && event.promptId === names[name]);
    await vote(data.requestId, (kind) => ({ outcome: { outcome: "selected", optionId: data.options.find((o) => o.kind === kind).optionId } }));
    await reader.terminal(names[name]);
    return data;
  };
  const data = await ask("A", async (id, choose) => {
    await session.respondToSessionPermission(id, choose("allow_once"));
    await session.respondToSessionPermission(id, choose("reject_once"));
  });
  const anonymous = { outcome: { outcome: "cancelled" } };
  await ask("B", (id, choose) => session.respondToPermission(id, choose("reject_once")));
  await ask("C", (id) => session.client.respondToPermission(id, anonymous));
  await ask("D", () => session.cancel());
  const lines = (name) => story(reader.events.filter((event) => event.promptId === names[name]), names);
  const late = "permission_already_resolved A selected";
  same("trace 05: an allowed tool", lines("A").filter((line) => line !== late), [
    "user_message_chunk A",
    "tool_call A pending",
    "permission_request A",
    "permission_resolved A selected",
    ...lines("A").filter((line) => /^tool_call_update A in_progress/.test(line)),
    "tool_call_update A completed",
    "agent_message_chunk A",
    "turn_complete A end_turn",
  ]);
  saw("trace 05: a late vote is told to all", lines("A").includes(late), lines("A"));
  const refused = (name, outcome) => [
    `user_message_chunk ${name}`,
    `tool_call ${name} pending`,
    `permission_request ${name}`,
    `permission_resolved ${name} ${outcome}`,
    `tool_call_update ${name} failed`,
  ];
  const upTo = (name) => lines(name).slice(0, 5);
  same("trace 05: a refused tool fails", upTo("B"), refused("B", "selected"));
  same("trace 05: so does one whose question was cancelled by a vote", upTo("C"), refused("C", "cancelled"));
  same("trace 05: a turn whose tool was refused ends as the agent says", lines("B").at(-1), "turn_complete B end_turn");
  const agents = "trace 05: differs from the peer: the built-in agent takes a question that was cancelled for a turn that was";
  same(agents, lines("C").at(-1), "turn_complete C cancelled");
  same("trace 05: a cancel while a question is open", lines("D"), [
    "user_message_chunk D",
    "tool_call D pending",
    "permission_request D",
    "prompt_cancelled D",
    "permission_resolved D cancelled",
    "tool_call_update D failed",
    "turn_complete D cancelled",
  ]);
  same("trace 05: a question has these fields", Object.keys(data).sort(), ["options", "requestId", "sessionId", "toolCall"]);
  same("trace 05: and its options these", Object.keys(data.options[0]).sort(), ["kind", "name", "optionId"]);
  const voters = reader.events.filter((event) => event.type === "permission_resolved").map((event) => event.originatorClientId);
  same("trace 05: a resolution's originator is its voter, if it has one", voters, [session.clientId, session.clientId, undefined, undefined]);
  shapes(reader.events.filter((event) => !(event.type === "permission_resolved" && event.data.outcome.outcome === "cancelled")));
}

/** A subscribed session, and prompts one after the other; each gives its id. */
async function begin(stage) {
  await stage.turnd();
  const session = await stage.open();
  const reader = stage.read(session);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const prompt = async (words) => (await session.submitPrompt(text(words))).promptId;
  return { session, reader, prompt };
}

/** The events in short, each with its prompt's name and what decides; consecutive words of the agent are one. */
function story(events, names) {
  const named = new Map(Object.entries(names).map(([name, id]) => [id, name]));
  const lines = events
    .filter((event) => event.id !== undefined && kind(event) !== "available_commands_update")
    .map((event) => {
      const { data } = event;
      const word = data.update?.status ?? data.stopReason ?? data.state ?? data.code ?? data.outcome?.outcome ?? data.reason;
      return [kind(event), named.get(event.promptId) ?? "-", word].filter(Boolean).join(" ");
    });
  return lines.filter((line, n) => !(line.startsWith("agent_message_chunk") && line === lines[n - 1]));
}

/** Each event's data has the peer's fields, and of its own only what is named. */
function shapes(events) {
  const seen = new Set();
  for (const event of events) {
    const { data } = event;
    const cancelled = data.stopReason === "cancelled" && data.promptCancelled;
    const name = cancelled ? "turn_cancelled" : data.reason === "forward_failed" ? data.reason : kind(event);
    if (!(name in PEER_DATA)) continue;
    const wanted = `${PEER_DATA[name]} ${OURS[name] ?? ""}`.trim().split(" ").sort();
    if (seen.has(name) && isDeepStrictEqual(paths(data), wanted)) continue;
    same(`${name}: its data has the peer's fields${OURS[name] ? `; differs from the peer: and ${OURS[name]}` : ""}`, paths(data), wanted);
    seen.add(name);
  }
}

function paths(value, path = "") {
  if (value === null || typeof value !== "object") return [path];
  return Object.entries(value).flatMap(([key, inner]) => paths(inner, path === "" ? key : `${path}.${key}`)).sort();
}
