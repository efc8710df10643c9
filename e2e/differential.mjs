// The peer's side of the differential check: what qwen-code's own code appends to each pair of files.
//
//   node differential.mjs CHUNKS PAIRS       one line of JSON for each pair
//   node differential.mjs CHUNKS --load STORE ROUNDS   the milliseconds of a cold load of the one session in STORE
//
// Nothing of theirs is here: their functions are looked up by name among the modules of the installed package, and
// called as their cold load calls them: the session is found, read for the replay, and then its ledger is reconciled.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const SESSION = "11111111-2222-4333-8444-555555555555";
const WORKSPACE = "/ws";
const REPLAY = { replay: { kind: "all" } };

const [chunks, ...request] = process.argv.slice(2);
const peer = await find(
  "reconcileDanglingPromptTerminals",
  "readRecentPromptTerminals",
  "readTranscriptTailUuid",
  "SessionService",
);
if (request[0] === "--load") {
  await measure(request[1], Number(request[2]));
} else {
  await judge(request[0]);
}
process.exit(0);

/** Imports the modules of the package that export these names. */
async function find(...names) {
  const found = {};
  for (const file of fs.readdirSync(chunks).filter((name) => name.endsWith(".js")).sort()) {
    const missing = names.filter((name) => !(name in found));
    if (missing.length === 0) break;
    const text = fs.readFileSync(path.join(chunks, file), "utf8");
    const lists = [...text.matchAll(/^export \{([^}]*)\}/gm)].map((match) => match[1]);
    const exported = lists.flatMap((list) => list.split(",")).map((name) => name.trim());
    if (!missing.some((name) => exported.includes(name))) continue;
    const module = await import(pathToFileURL(path.join(chunks, file)).href);
    for (const name of missing) if (name in module) found[name] = module[name];
  }
  const lost = names.filter((name) => !(name in found));
  if (lost.length > 0) throw new Error(`the package exports no ${lost.join(", ")}`);
  return found;
}

async function judge(pairs) {
  for (const id of fs.readdirSync(pairs).sort()) {
    const store = fs.mkdtempSync(path.join(os.tmpdir(), "peer-"));
    try {
      console.log(JSON.stringify({ id, ...(await one(store, path.join(pairs, id))) }));
    } finally {
      fs.rmSync(store, { recursive: true, force: true });
    }
  }
}

async function one(store, pair) {
  const service = new peer.SessionService(WORKSPACE, { runtimeBaseDir: store });
  const ledger = service.getPromptLedgerPath(SESSION);
  const transcript = service.getSessionTranscriptPath(SESSION);
  fs.mkdirSync(path.dirname(ledger), { recursive: true });
  copy(path.join(pair, "ledger.jsonl"), ledger);
  copy(path.join(pair, "transcript.jsonl"), transcript);
  const before = bytes(ledger);
  const tailUuid = peer.readTranscriptTailUuid(transcript) ?? null;
  const terminals = peer.readRecentPromptTerminals(service, SESSION) ?? [];
  const refused = await load(service);
  if (refused === undefined) await peer.reconcileDanglingPromptTerminals(service, SESSION);
  const after = bytes(ledger);
  if (!after.subarray(0, before.length).equals(before)) throw new Error(`${pair}: the ledger did not only grow`);
  const lines = after.subarray(before.length).toString().split("\n").filter((line) => line !== "");
  const appended = lines.map((line) => JSON.parse(line)).map(({ at, ...rest }) => rest);
  return { appended, withheld: refused ?? null, tailUuid, terminals };
}

/** What their cold load does before it reconciles; gives why it is refused, if it is. */
async function load(service) {
  try {
    if ((await service.findSessionIdIgnoringCase(SESSION)) === undefined) return "not found";
    return (await service.readRestoreProjection(SESSION, REPLAY)) === undefined ? "empty" : undefined;
  } catch (error) {
    return error.constructor.name;
  }
}

/** Prints the milliseconds of every round: of the load before the ledger is reconciled, and of the reconciliation. */
async function measure(store, rounds) {
  for (let round = 0; round < rounds; round++) {
    const service = new peer.SessionService(WORKSPACE, { runtimeBaseDir: store });
    const ledger = service.getPromptLedgerPath(SESSION);
    const before = bytes(ledger);
    const start = performance.now();
    const refused = await load(service);
    const loaded = performance.now();
    await peer.reconcileDanglingPromptTerminals(service, SESSION);
    const end = performance.now();
    const appended = bytes(ledger).subarray(before.length).toString();
    if (refused !== undefined || appended === "") throw new Error(`nothing was reconciled: ${refused}`);
    fs.writeFileSync(ledger, before);
    console.log(JSON.stringify({ load: loaded - start, reconcile: end - loaded, appended: JSON.parse(appended).terminal }));
  }
}

function copy(from, to) {
  if (fs.existsSync(from)) fs.copyFileSync(from, to);
}

function bytes(file) {
  return fs.existsSync(file) ? fs.readFileSync(file) : Buffer.alloc(0);
}
