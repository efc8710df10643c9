// A recording proxy between client and daemon: what the client really sends is seen, and a change of the client with it.
// It survives the daemon, so that a client object keeps its address over a restart.
//
// A subscribed session client learns a prompt's id from the 202 and its end from the stream, and misses an end that it reads first:
// two connections have no order. Real turns take longer than an answer; the built-in agent's need not. So no piece of a stream
// overtakes the answer to a prompt here.

import { createServer, request } from "node:http";

import { until } from "./checks.mjs";

export class Proxy {
  /** Every call in its order: {method, path, query, headers, body, status, answer, text, over, end, cut}. */
  calls = [];
  /** The daemon's port. */
  target = 0;
  /** Looked at before a call goes on to the daemon; may return a promise, which is waited for. */
  before = () => {};
  /** Looked at before an answer's head goes to the client; may return a promise, which is waited for. */
  after = () => {};
  /** Rewrites a piece of a stream, or the text of a whole answer, on its way to the client. */
  rewrite = (text) => text;
  /** Rewrites the headers of an answer. */
  dress = (headers) => headers;
  /** Answers to prompts that the client has not read yet. */
  #answering = new Set();

  async listen() {
    this.server = createServer((asked, answer) => this.#pass(asked, answer));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** The calls of a method and a path, `*` standing for any word in it. */
  of(method, path) {
    const words = path.split("/");
    return this.calls.filter((call) => {
      const said = call.path.split("/");
      return call.method === method && said.length === words.length && words.every((w, n) => w === "*" || w === said[n]);
    });
  }

  /** The newest of them. */
  last(method, path) {
    return this.of(method, path).at(-1);
  }

  /** Each call as one line, such as "POST /session…/prompt". */
  lines(calls = this.calls) {
    return calls.map(({ method, path }) => `${method} ${path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "*")}`);
  }

  /** Waits for a call that the probe takes. */
  call(what, probe) {
    return until(what, () => this.calls.find(probe));
  }

  async #pass(asked, answer) {
    const [path, query = ""] = asked.url.split("?");
    const call = { method: asked.method, path, query, headers: asked.headers, text: "", over: false };
    call.end = () => answer.end(); // the stream ends as if the daemon had ended it
    call.cut = () => answer.destroy(); // the connection breaks
    this.calls.push(call);
    if (path.endsWith("/prompt")) {
      const answered = new Promise((resolve) => answer.on("close", resolve)).then(turns);
      this.#answering.add(answered);
      answered.then(() => this.#answering.delete(answered));
    }
    const body = await everything(asked);
    call.body = parsed(body);
    answer.on("close", () => (call.over = true));
    await this.before(call);
    if (answer.destroyed) return;
    const headers = { ...asked.headers, host: `127.0.0.1:${this.target}` };
    const onward = request({ port: this.target, method: asked.method, path: asked.url, headers });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    onward.on("response", (said) => this.#answer(call, said, answer).catch(() => answer.destroy()));
    onward.end(body);
  }

  async #answer(call, said, answer) {
    call.status = said.statusCode;
    call.answerHeaders = said.headers;
    said.on("error", () => answer.destroy());
    said.on("aborted", () => answer.destroy());
    if ((said.headers["content-type"] ?? "").startsWith("text/event-stream")) {
      await this.after(call);
      if (answer.destroyed) return;
      answer.writeHead(said.statusCode, this.dress(said.headers, call));
      answer.flushHeaders();
      said.setEncoding("utf8");
      for await (const text of said) {
        call.text += text;
        while (this.#answering.size > 0) await Promise.all(this.#answering);
        if (!answer.writableEnded) answer.write(this.rewrite(text, call));
      }
      answer.end();
      return;
    }
    const body = await everything(said);
    call.answer = parsed(body);
    await this.after(call);
    if (answer.destroyed) return;
    const { "content-length": _, ...headers } = this.dress(said.headers, call);
    answer.writeHead(call.status, headers);
    answer.end(this.rewrite(body, call));
  }
}

/** Some turns of the event loop, which the client shares: what was written to it is read by then. */
async function turns() {
  for (let n = 0; n < 10; n += 1) await new Promise(setImmediate);
}

async function everything(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

function parsed(text) {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return text;
  }
}
