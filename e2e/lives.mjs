// The peer's client, unmodified, loads and resumes the sessions it is given: lives.mjs URL WORKSPACE SESSION…

import { fileURLToPath } from "node:url";
import { join } from "node:path";

const PACKAGE = join(fileURLToPath(new URL("..", import.meta.url)), ".e2e/client/node_modules/@qwen-code/sdk");
const { DaemonClient, DaemonSessionClient } = await import(join(PACKAGE, "dist/daemon/index.js"));

const [url, workspaceCwd, ...sessions] = process.argv.slice(2);
const client = new DaemonClient({ baseUrl: url });
for (const id of sessions) {
  const resumed = await DaemonSessionClient.resume(client, id, { workspaceCwd });
  await resumed.close();
  const loaded = await DaemonSessionClient.load(client, id, { workspaceCwd });
  if (loaded.sessionId !== id || resumed.sessionId !== id) throw new Error(`${id} came back as another session`);
}
