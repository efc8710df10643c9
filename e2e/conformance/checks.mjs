// Sentences that are checked, waiting with a bound, and the run of all flows: what flow.py is to the Python flows.

import { isDeepStrictEqual } from "node:util";

/** How long anything may take on a loaded machine, in milliseconds; nothing takes it on purpose. */
export const WAIT_MS = 60_000;
const LOOK_EVERY_MS = 20;

/** What a flow expected and did not see. */
export class FlowFailed extends Error {}

/** Prints one thing seen, or fails with it. */
export function saw(sentence, holds = true, got = undefined) {
  if (!holds) throw new FlowFailed(`expected that ${sentence}` + (got === undefined ? "" : `\n    got: ${brief(got)}`));
  console.log(`    ${sentence}`);
}

/** saw(), for a value that must be just so. */
export function same(sentence, got, wanted) {
  if (isDeepStrictEqual(got, wanted)) return saw(sentence);
  throw new FlowFailed(`expected that ${sentence}\n    got: ${brief(got)}\n    not: ${brief(wanted)}`);
}

/** saw(), for a value that must have these fields at least. */
export function has(sentence, got, wanted) {
  const part = Object.fromEntries(Object.keys(wanted).map((key) => [key, got?.[key]]));
  same(sentence, part, wanted);
}

function brief(value) {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return text.length <= 2000 ? text : `${text.slice(0, 2000)} …`;
}

/** Asks again until probe() gives something true; gives that. */
export async function until(what, probe) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (Date.now() > deadline) throw new FlowFailed(`waited ${WAIT_MS / 1000} s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

/** The value of a promise that must settle within the bound. */
export async function soon(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new FlowFailed(`waited ${WAIT_MS / 1000} s for ${what}`)), WAIT_MS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What a promise threw, which it must. */
export async function thrown(what, promise) {
  const outcome = await soon(what, promise.then(
    (value) => ({ value }),
    (error) => ({ error }),
  ));
  if (outcome.error === undefined) throw new FlowFailed(`expected an error: ${what}\n    got: ${brief(outcome.value)}`);
  if (outcome.error instanceof FlowFailed) throw outcome.error;
  return outcome.error;
}

/** Runs [title, flow] pairs and says which failed; the words given on the command line pick titles. */
export async function run(name, flows, onStage) {
  const words = process.argv.slice(2);
  const chosen = flows.filter(([title]) => words.every((word) => title.includes(word)));
  const failed = [];
  // A prompt that no flow waits for any more is rejected when its stage is cleared.
  process.on("unhandledRejection", () => {});
  for (const [title, flow] of chosen) {
    console.log(`${name}: ${title}`);
    const started = Date.now();
    try {
      await onStage(flow);
      console.log(`  ok, ${((Date.now() - started) / 1000).toFixed(1)} s`);
    } catch (error) {
      failed.push(title);
      console.log(`  FAILED: ${error instanceof FlowFailed ? error.message : error.stack}`);
    }
  }
  if (chosen.length === 0) return leave(`${name}: no such flow`);
  if (failed.length > 0) return leave(`${name}: ${failed.length} of ${chosen.length} flows failed`);
  console.log(`${name}: ${chosen.length} flows hold`);
  process.exit(0);
}

function leave(message) {
  console.error(message);
  process.exit(1);
}
