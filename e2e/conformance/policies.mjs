// Wire rules, section 12.3: the policies, with several clients of one session. Where turnd differs from the peer on purpose a
// sentence says so.

import { has, same, saw, thrown, until } from "./checks.mjs";
import { sdk, text } from "./stage.mjs";

export const flows = [
  ["12.3 designated", designated],
  ["12.3 consensus", consensus],
  ["12.3 local-only", localOnly],
  ["12.3 nobody answers", nobody],
];

const cancelled = { outcome: { outcome: "cancelled" } };

async function designated(stage) {
  const { sessions: [mine, other], ask } = await begin(stage, 2, "--permission-policy", "designated");
  const question = await ask(mine);
  const bad = await thrown("another client's vote", other.respondToSessionPermission(question.requestId, choose(question, "allow_once")));
  has("12.3 another client's vote throws", bad, { status: 403 });
  const { error, ...body } = bad.body;
  const refusal = { code: "permission_forbidden", requestId: question.requestId, sessionId: mine.sessionId, reason: "designated_mismatch" };
  same("12.3 with who may not and why", [typeof error, body], ["string", refusal]);
  const told = await question.find("permission_forbidden");
  const { code: _, ...data } = { ...refusal, clientId: other.clientId };
  same("12.3 everybody hears of it", told.data, data);
  same("trace 17: under the prompt's client", told.originatorClientId, mine.clientId);
  const cancel = await thrown("another client's vote to cancel", other.respondToPermission(question.requestId, cancelled));
  has("12.3 differs from the peer: a vote to cancel obeys the policy too", cancel, { status: 403 });
  same("12.3 the prompt's client decides", await mine.respondToPermission(question.requestId, choose(question, "allow_once")), true);
  same("12.2 a late vote is false", await other.respondToPermission(question.requestId, cancelled), false);
  const late = stage.proxy.last("POST", "/permission/*").answer;
  same("12.2 differs from the peer: its body has a code", late.code, "permission_already_decided");
  has("12.2 and the decision", late.decision, { ...choose(question, "allow_once"), reason: "vote", voterClientId: mine.clientId });
  await question.end();
}

async function consensus(stage) {
  const { sessions, ask } = await begin(stage, 3, "--permission-policy", "consensus");
  const [first, second, third] = sessions;
  const question = await ask(first);
  const vote = (session, kind) => session.respondToSessionPermission(question.requestId, choose(question, kind));
  same("12.3 one vote of three counts", await vote(first, "allow_once"), true);
  const { optionId } = choose(question, "allow_once").outcome;
  const partial = { requestId: question.requestId, sessionId: first.sessionId, votesReceived: 1, votesNeeded: 1, quorum: 2, optionTallies: { [optionId]: 1 } };
  same("12.3 and everybody hears how far it is", (await question.find("permission_partial_vote")).data, partial);
  same("12.3 the same vote again is true and counts no more", await vote(first, "allow_once"), true);
  same("12.3 another vote of the same client is true and changes nothing", await vote(first, "reject_once"), true);
  same("12.3 the second vote decides", await vote(second, "allow_once"), true);
  has("12.3 for its option", (await question.find("permission_resolved")).data, { ...choose(question, "allow_once"), voterClientId: second.clientId });
  await question.end();
  const split = await ask(first);
  for (const [session, kind] of [[first, "allow_once"], [second, "reject_once"]]) await session.respondToSessionPermission(split.requestId, choose(split, kind));
  same("trace 17: a third vote, to cancel, is true", await third.respondToSessionPermission(split.requestId, cancelled), true);
  const resolved = await split.find("permission_resolved");
  same("trace 17: and the question is cancelled", resolved.data.outcome, cancelled.outcome);
  same("12.3 differs from the peer: not because of that vote, but because no option can get two", resolved.data.reason, "undecidable");
  await split.end();
}

async function localOnly(stage) {
  const { sessions: [session], ask } = await begin(stage, 1, "--permission-policy", "local-only");
  const question = await ask(session);
  const vote = choose(question, "allow_once");
  const path = `/permission/${question.requestId}`;
  const far = await stage.ask("POST", path, vote, { "x-forwarded-for": "203.0.113.9" });
  has("12.3 what a proxy hands on for another machine has no vote", far.body, { code: "permission_forbidden", reason: "remote_not_allowed" });
  same("12.3 whoever is here has", await session.respondToPermission(question.requestId, vote), true);
  await question.end();
}

async function nobody(stage) {
  const { sessions: [session], ask } = await begin(stage, 1, "--permission-response-timeout-ms", "400");
  const question = await ask(session);
  const { data } = await question.find("permission_resolved");
  has("12.2 what nobody decides in time is rejected once", data, { ...choose(question, "reject_once"), reason: "timeout" });
  same("12.2 a late vote is false", await session.respondToPermission(question.requestId, cancelled), false);
  same("12.2 and is told why", stage.proxy.last("POST", "/permission/*").answer.decision.reason, "timeout");
  await question.end();
}

/** So many clients of one session, under these flags, and questions of its agent. */
async function begin(stage, clients, ...flags) {
  await stage.turnd(...flags);
  const first = await stage.open();
  const sessions = [first];
  while (sessions.length < clients) sessions.push(await sdk.DaemonSessionClient.resume(stage.client(), first.sessionId, { workspaceCwd: stage.workspace }));
  saw("6.1 each client has a name of its own", new Set(sessions.map((session) => session.clientId)).size === clients);
  const { body } = await stage.ask("GET", "/capabilities");
  if (flags[0] === "--permission-policy") same("2.2 the policy is a capability", body.policy.permission, flags[1]);
  const reader = stage.read(first);
  await reader.find("the end of the replay", (event) => event.type === "replay_complete");
  const ask = async (session) => {
    const { promptId } = await session.submitPrompt(text("tool true"));
    const { data } = await reader.find("its question", (event) => event.type === "permission_request" && event.promptId === promptId);
    const find = (type) => reader.find(type, (event) => event.type === type && event.data.requestId === data.requestId);
    const end = async () => {
      await reader.terminal(promptId);
      await until("nothing to wait for", async () => !(await session.status()).isWaitingForPermission);
    };
    return { ...data, find, end };
  };
  return { sessions, ask };
}

function choose(question, kind) {
  return { outcome: { outcome: "selected", optionId: question.options.find((option) => option.kind === kind).optionId } };
}
