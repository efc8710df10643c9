// A stage for one flow: a home, a store and a workspace of its own, daemons on them one after the other, and the unmodified
// client in front of a recording proxy.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { FlowFailed, until } from "./checks.mjs";
import { Proxy } from "./proxy.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PACKAGE = join(ROOT, ".e2e/client/node_modules/@qwen-code/sdk");

/** The client's package as npm installed it. */
export const sdk = await import(join(PACKAGE, "dist/daemon/index.js"));
/** The types of events that turnd sends and the client has a schema of. */
const KNOWN = new Set(
  `session_update permission_request permission_resolved permission_already_resolved permission_partial_vote permission_forbidden
  pending_prompt_added pending_prompt_started pending_prompt_completed turn_complete turn_error session_closed session_died
  session_snapshot state_resync_required slow_client_warning client_evicted history_truncated`.split(/\s+/),
);
export const sdkVersion = JSON.parse(readFileSync(join(PACKAGE, "package.json"))).version;

export class Stage {
  /** Client objects whose streams are still read. */
  #readers = [];

  constructor() {
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), "turnd-conformance-")));
    [this.home, this.workspace, this.store] = ["home", "work", "store"].map((part) => join(this.folder, part));
    mkdirSync(this.home);
    mkdirSync(this.workspace);
    this.proxy = new Proxy();
  }

  /** Starts a daemon with the built-in agent; the proxy leads to it. */
  async turnd(...flags) {
    if (this.proxy.url === undefined) await this.proxy.listen();
    const where = ["--port", "0", "--workspace", this.workspace, "--store", this.store];
    const environment = { PATH: process.env.PATH, HOME: this.home, LANG: "C.UTF-8" };
    const daemon = spawn(binary(), ["serve", ...where, ...flags], {
      cwd: this.workspace,
      env: environment,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.daemon = daemon;
    this.log = "";
    for (const stream of [daemon.stdout, daemon.stderr]) stream.on("data", (text) => (this.log += text));
    const port = await until("the daemon to say where it listens", () => {
      if (daemon.exitCode !== null) throw new FlowFailed(`the daemon ended at its start:\n${this.log}`);
      return this.log.match(/http:\/\/127\.0\.0\.1:(\d+)/)?.[1];
    });
    this.proxy.target = Number(port);
  }

  /** SIGKILL to the daemon alone. */
  async kill() {
    const dead = new Promise((resolve) => this.daemon.once("exit", resolve));
    this.daemon.kill("SIGKILL");
    await dead;
  }

  /** A client of the daemon, through the proxy. */
  client(options = {}) {
    return new sdk.DaemonClient({ baseUrl: this.proxy.url, ...options });
  }

  /** A session of its own: {client, session}, as the client tells it. */
  async create(client = this.client()) {
    return await client.createOrAttachSession({ workspaceCwd: this.workspace, sessionScope: "thread" });
  }

  /** A session client on a session of its own. */
  async open(client = this.client(), request = {}) {
    const asked = { workspaceCwd: this.workspace, sessionScope: "thread", ...request };
    return await sdk.DaemonSessionClient.createOrAttach(client, asked);
  }

  /** Reads a session's events until told to stop; what was seen is in `events`. */
  read(session, options = {}) {
    const stop = new AbortController();
    const reader = { events: [], ended: false, error: undefined };
    const loop = (async () => {
      try {
        for await (const event of session.events({ ...options, signal: stop.signal })) reader.events.push(wellFormed(event));
      } catch (error) {
        reader.error = error;
      }
      reader.ended = true;
    })();
    reader.stop = async () => {
      stop.abort();
      await reader.over();
    };
    reader.over = () => loop.then(() => {
      if (reader.error instanceof FlowFailed) throw reader.error;
    });
    /** The first event, seen or to come, that `wanted` takes. */
    reader.find = (what, wanted) => until(what, () => {
      const found = reader.events.find(wanted);
      if (found === undefined && reader.ended) throw new FlowFailed(`the stream ended before ${what}: ${kinds(reader.events)}`);
      return found;
    });
    reader.terminal = (promptId) => reader.find(`the end of prompt ${promptId}`, (event) => isTerminal(event, promptId));
    this.#readers.push(reader);
    return reader;
  }

  /** Asks the daemon directly, past client and proxy: {status, body}. */
  async ask(method, path, body = undefined, headers = {}) {
    const typed = body === undefined ? headers : { "content-type": "application/json", ...headers };
    const url = `http://127.0.0.1:${this.proxy.target}${path}`;
    const answer = await fetch(url, { method, headers: typed, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    return { status: answer.status, body: text === "" ? undefined : JSON.parse(text) };
  }

  async turn(sessionId, promptId) {
    return (await this.ask("GET", `/session/${sessionId}/turns/${promptId}`)).body;
  }

  /** Waits until so many prompts were admitted through the proxy; their ids. Two requests under way at once have no order. */
  async admitted(count) {
    return await until(`${count} prompts to be admitted`, () => {
      const receipts = this.proxy.of("POST", "/session/*/prompt").filter((call) => call.status === 202);
      return receipts.length >= count && receipts.map((call) => call.answer.promptId);
    });
  }

  /** Open event streams, as the daemon counts them. */
  async streams() {
    return (await this.ask("GET", "/health?deep=1")).body.connectedClients;
  }

  /** Every living process that inherited this home. */
  processes() {
    const mark = Buffer.from(`HOME=${this.home}\0`);
    return readdirSync("/proc").filter((entry) => {
      try {
        return /^\d+$/.test(entry) && readFileSync(`/proc/${entry}/environ`).includes(mark);
      } catch {
        return false; // no process, not ours, or gone since
      }
    }).map(Number);
  }

  /** Fails if a reader's event was refused by the client's schema. */
  refused() {
    for (const { error } of this.#readers) if (error instanceof FlowFailed) throw error;
  }

  async clear(failed) {
    if (failed && this.log) console.log(`    the daemon's last lines:\n      ${this.log.trim().split("\n").slice(-12).join("\n      ")}`);
    for (const pid of this.processes()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        continue; // gone since
      }
    }
    this.proxy.close();
    await Promise.allSettled(this.#readers.map((reader) => reader.over()));
    if (failed && "KEEP" in process.env) console.log(`    (kept: ${this.folder})`);
    else rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  }
}

/** Runs a flow on a fresh stage that is always cleared. */
export async function onStage(flow) {
  const stage = new Stage();
  let failed = true;
  try {
    await flow(stage);
    stage.refused();
    failed = false;
  } finally {
    await stage.clear(failed);
  }
}

/** A prompt of one text block. */
export function text(words) {
  return { prompt: [{ type: "text", text: words }] };
}

/** The event, which the client's own schema must take if it knows the type. */
function wellFormed(event) {
  if (KNOWN.has(event.type) && sdk.asKnownDaemonEvent(event) === undefined) {
    throw new FlowFailed(`the client's schema refuses an event: ${JSON.stringify(event)}`);
  }
  return event;
}

export function isTerminal(event, promptId) {
  return ["turn_complete", "turn_error"].includes(event.type) && event.data.promptId === promptId;
}

/** An event's type, an update's kind. */
export function kind(event) {
  return event.type === "session_update" ? event.data.update.sessionUpdate : event.type;
}

export function kinds(events) {
  return events.map(kind).join(" ");
}

/** The newest turnd that was built, or TURND_BIN. */
function binary() {
  if ("TURND_BIN" in process.env) return process.env.TURND_BIN;
  const built = ["release", "debug"].map((which) => join(ROOT, "target", which, "turnd")).filter((path) => existsSync(path));
  if (built.length === 0) throw new FlowFailed("no turnd is built: run cargo build first, or set TURND_BIN");
  return built.sort((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs)[0];
}
