// Where turnd deliberately differs from the peer in deadlines, and an agent that does not stop, as the client sees them.

import { has, same, saw, soon, thrown } from "./checks.mjs";
import { sdk, text } from "./stage.mjs";

export const flows = [["8.7 a deadline without one of the daemon's, and a deaf agent behind it", deaf]];

async function deaf(stage) {
  await stage.turnd("--settle-grace-ms", "300");
  const client = stage.client();
  const session = await stage.open(client);
  const { features } = await client.capabilities();
  saw("8.7 differs from the peer: deadlines are offered without a flag", features.includes("prompt_absolute_deadline"), features);
  const reader = stage.read(session);
  const { sessionId, clientId } = session;
  const late = client.prompt(sessionId, { ...text("deaf 600000"), deadlineMs: 200 }, undefined, clientId);
  await stage.admitted(1);
  const next = client.prompt(sessionId, text("hello"), undefined, clientId);
  const error = await thrown("the deadline", late);
  saw("8.7 the caller is released with an error", error instanceof sdk.DaemonHttpError, error);
  has("8.7 of this code", error, { status: 500, body: "prompt_deadline_exceeded" });
  const end = await soon("the prompt behind it", next);
  same("8.7 differs from the peer: the next prompt runs when the old agent is gone, and not beside it", end.stopReason, "end_turn");
  const replaced = await reader.find("the news of it", (event) => event.type === "agent_replaced");
  has("the reader hears why, and what the new agent remembers", replaced.data, { reason: "deadline", memory: "fresh" });
  const [, promptId] = await stage.admitted(2);
  await reader.terminal(promptId);
  const behind = reader.events.slice(reader.events.indexOf(replaced));
  const said = behind.filter((event) => event.data.update?.sessionUpdate === "agent_message_chunk");
  same("none of the old agent's words come behind that", said.map((event) => event.data.update.content.text).join(""), "echo: hello");
  await reader.stop();
}
