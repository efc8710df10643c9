// An editor at the ACP door: the official TypeScript SDK's own example client, unmodified, and its connection class, each over a pipe
// that an editor would start in the place of an agent. The built-in agent stands behind turnd.

import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

import { run, same, saw, soon, thrown, until } from "./conformance/checks.mjs";
import { onStage } from "./conformance/stage.mjs";

const PIPE = fileURLToPath(new URL("acp_pipe.mjs", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../.e2e/node_modules/@agentclientprotocol/sdk/", import.meta.url));
const acp = await import(join(PACKAGE, "dist/acp.js"));
const version = JSON.parse(readFileSync(join(PACKAGE, "package.json"))).version;

const flows = [
  ["the example client, unmodified", example],
  ["a turn with a question", question],
  ["a cancel, and an error with its code", endings],
  ["an editor that is killed in a turn, and the next one", killed],
  ["two editors and HTTP on one session", together],
];

const url = (stage) => `ws://127.0.0.1:${stage.proxy.target}/acp`;

/** It starts `npx tsx agent.ts`; ours stands under that name. */
async function example(stage) {
  await stage.turnd();
  const programs = join(stage.home, "bin");
  mkdirSync(programs);
  writeFileSync(join(programs, "npx"), `#!/bin/sh\nexec "${process.execPath}" "${PIPE}"\n`);
  chmodSync(join(programs, "npx"), 0o700);
  const client = spawn(process.execPath, [join(PACKAGE, "dist/examples/client.js")], {
    cwd: stage.workspace,
    env: { PATH: `${programs}:/usr/bin:/bin`, HOME: stage.home, ACP_URL: url(stage) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [client.stdout, client.stderr]) stream.on("data", (text) => (said += text));
  await soon("the client's end", new Promise((resolve) => client.once("close", resolve)));
  saw("it connects to an agent of protocol version 1", said.includes("Connected to agent (protocol v1)"), said);
  saw("it gets a session", /Created session: [0-9a-f-]{36}/.test(said), said);
  saw("it is told what the agent says", said.replaceAll("\n", "").includes("echo: Hello, agent!"), said);
  saw("its prompt ends", said.includes("Agent completed with: end_turn"), said);
  saw("nothing went wrong that it would complain of", !/error/i.test(said), said);
}

/** An editor by the SDK's connection class: what it was told is in `updates`, what it was asked in `asked`. */
async function editor(stage, choose = (params) => params.options[0]) {
  const pipe = spawn(process.execPath, [PIPE], {
    env: { PATH: process.env.PATH, HOME: stage.home, ACP_URL: url(stage) },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const seen = { updates: [], asked: [], pipe };
  const client = {
    async sessionUpdate({ update }) {
      seen.updates.push(update);
    },
    async requestPermission(params) {
      seen.asked.push(params);
      const option = choose(params);
      if (option === undefined) await new Promise(() => {});
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    },
  };
  const streams = acp.ndJsonStream(Writable.toWeb(pipe.stdin), Readable.toWeb(pipe.stdout));
  seen.agent = new acp.ClientSideConnection(() => client, streams);
  const welcome = await soon("the welcome", seen.agent.initialize({ protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} }));
  same("the door speaks the SDK's version of the protocol", welcome.protocolVersion, acp.PROTOCOL_VERSION);
  saw("it says that it loads", welcome.agentCapabilities.loadSession, welcome);
  seen.create = async () => (await seen.agent.newSession({ cwd: stage.workspace, mcpServers: [] })).sessionId;
  seen.prompt = (sessionId, text, meta) => seen.agent.prompt({ sessionId, prompt: [{ type: "text", text }], _meta: meta });
  seen.said = () => seen.updates.filter((update) => update.sessionUpdate === "agent_message_chunk").map((update) => update.content.text).join("");
  seen.end = () => pipe.kill("SIGKILL");
  return seen;
}

async function question(stage) {
  await stage.turnd();
  const one = await editor(stage);
  const session = await one.create();
  const { stopReason } = await soon("the turn", one.prompt(session, "tool touch made-by-an-editor"));
  same("a tool's turn ends", stopReason, "end_turn");
  same("the editor was asked once", one.asked.length, 1);
  saw("the tool ran because it allowed it", existsSync(join(stage.workspace, "made-by-an-editor")), one.updates);
  saw("it was told of the call", one.updates.some((update) => update.sessionUpdate === "tool_call"), one.updates);
  one.end();
}

async function endings(stage) {
  await stage.turnd();
  const one = await editor(stage);
  const session = await one.create();
  const turn = one.prompt(session, "slow 60000");
  await until("the turn to begin", () => one.updates.length > 0);
  await one.agent.cancel({ sessionId: session });
  same("a cancelled prompt says so", (await soon("the cancel", turn)).stopReason, "cancelled");
  const error = await thrown("a turn that fails", one.prompt(session, "fail"));
  saw("a failed one is an error with a code", typeof error.data?.code === "string", error);
  const outcome = await stage.turn(session, error.data.promptId);
  same("which is the code of its poll", outcome.error.code, error.data.code);
  one.end();
}

async function killed(stage) {
  await stage.turnd();
  const one = await editor(stage);
  const session = await one.create();
  const meta = { "turnd/promptId": "from-the-editor" };
  one.prompt(session, "slow 3000", meta).catch(() => {});
  await until("the turn to begin", () => one.updates.length > 0);
  one.end();
  await until("the editor's registration to be gone", async () => (await stage.ask("GET", `/session/${session}/status`)).body.clientCount === 0);
  same("its prompt goes on", (await stage.turn(session, "from-the-editor")).state, "running");
  const next = await editor(stage);
  await soon("the load", next.agent.loadSession({ sessionId: session, cwd: stage.workspace, mcpServers: [] }));
  const answer = await soon("the same prompt", next.prompt(session, "slow 3000", meta));
  same("the next editor gets the answer of the same prompt", [answer.stopReason, answer._meta["turnd/promptId"]], ["end_turn", "from-the-editor"]);
  const ledger = (await stage.ask("POST", `/session/${session}/load`, {})).body.promptTerminals;
  same("which ran once", ledger.map((line) => line.promptId), ["from-the-editor"]);
  next.end();
}

async function together(stage) {
  await stage.turnd();
  const [first, second] = [await editor(stage, () => undefined), await editor(stage)];
  const session = await first.create();
  await second.agent.loadSession({ sessionId: session, cwd: stage.workspace, mcpServers: [] });
  const { stopReason } = await soon("the turn", first.prompt(session, "tool echo hi"));
  same("the second editor's vote lets the first one's turn go on", [stopReason, second.asked.length], ["end_turn", 1]);
  await until("both to have seen the same", () => second.said() === first.said());
  saw("only the second one is shown the prompt", second.updates.some((update) => update.sessionUpdate === "user_message_chunk")
    && !first.updates.some((update) => update.sessionUpdate === "user_message_chunk"), first.updates);
  const turn = (await stage.ask("GET", `/session/${session}/turns/current`)).body;
  same("HTTP tells the same turn", turn.state, "completed");
  [first, second].forEach((one) => one.end());
}

console.log(`editor: SDK ${version}`);
await run("editor", flows, onStage);
