// The unmodified TypeScript client of the peer drives turnd: every sentence of the wire rules, section 17, as a named check, and the
// events of turns compared with the peer's. The built-in agent stands behind it.

import { run } from "./conformance/checks.mjs";
import { flows as life } from "./conformance/life.mjs";
import { flows as minimum } from "./conformance/minimum.mjs";
import { flows as policies } from "./conformance/policies.mjs";
import { flows as prompts } from "./conformance/prompts.mjs";
import { flows as replaced } from "./conformance/replaced.mjs";
import { flows as requests } from "./conformance/requests.mjs";
import { flows as restart } from "./conformance/restart.mjs";
import { flows as sequences } from "./conformance/sequences.mjs";
import { flows as session } from "./conformance/session.mjs";
import { onStage, sdkVersion } from "./conformance/stage.mjs";
import { flows as stream } from "./conformance/stream.mjs";

console.log(`conformance: client ${sdkVersion}`);
await run("conformance", [...requests, ...prompts, ...replaced, ...session, ...policies, ...stream, ...restart, ...life, ...minimum, ...sequences], onStage);
