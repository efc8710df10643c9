"""A model that does what the prompt says: an OpenAI-compatible chat endpoint on loopback.

The newest user message that carries a line `do: VERB REST` decides the answer:

    do: say WORDS          answers WORDS, two deltas
    do: hold GATE WORDS    streams WORDS, then waits until the flow opens GATE, then streams " and on."
    do: shell COMMAND      asks for one shell call; once its result is back, answers "the shell said: ..."
    do: fail STATUS        answers with that HTTP status

A gate takes the place of a slow model: the flow decides when the answer goes on, so no flow depends on how fast a
machine is. Requests without tools (titles, summaries, classifiers) are answered "ok" at once.
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIRECTIVE = re.compile(r"^do: (\w+) ?(.*)$", re.MULTILINE)
GATE_SECONDS_MAX = 120  # a gate nobody opens lets go after this, so that a failed flow leaves no thread behind


class Model:
    """The endpoint, listening from construction to close()."""

    def __init__(self):
        self.requests = []  # bodies, in order of arrival
        self._gates = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._server = Loopback(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def gate(self, name):
        """The gate of that name; its `reached` and `opened` are events."""
        with self._lock:
            return self._gates.setdefault(name, Gate())

    def close(self):
        self._closed.set()
        for gate in self._gates.values():
            gate.opened.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(model):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send_json(200, {"object": "list", "data": [{"id": "fake", "object": "model"}]})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                model.requests.append(body)
                try:
                    Answer(model, self, body).send()
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # the agent hung up: it was cancelled or killed

            def send_json(self, status, value):
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler


class Loopback(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):  # an agent that was killed is no error of the model's
            super().handle_error(request, client_address)


class Gate:
    def __init__(self):
        self.reached = threading.Event()
        self.opened = threading.Event()


class Answer:
    """One completion, streamed or whole."""

    def __init__(self, model, handler, body):
        self.model, self.handler, self.body = model, handler, body
        self.started = False

    def send(self):
        verb, rest, results = self.directive()
        if verb == "fail":
            error = {"message": f"the model refused with {rest}", "type": "invalid_request_error", "code": "refused"}
            return self.handler.send_json(int(rest), {"error": error})
        if verb == "shell" and not results:
            return self.finish("tool_calls", tool=self.shell_call(rest))
        if verb == "shell":
            self.say("the shell said: ", results[-1].strip()[:200])
        elif verb == "hold":
            self.hold(*rest.split(" ", 1))
        else:
            self.say(*rest.partition(" ")) if rest else self.say("ok")
        self.finish("stop")

    def directive(self):
        """Verb, rest, and the tool results that came back since. Only the newest user message counts: background calls
        of an agent carry the whole conversation in front of their own question."""
        messages = self.body.get("messages", [])
        newest = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=None)
        if newest is not None and self.shell_tool():
            found = DIRECTIVE.findall(text_of(messages[newest]))
            if found:
                return (*found[-1], [text_of(m) for m in messages[newest:] if m["role"] == "tool"])
        return "say", "ok", []

    def hold(self, name, words):
        self.say(words)
        gate = self.model.gate(name)
        gate.reached.set()
        gate.opened.wait(GATE_SECONDS_MAX)
        self.say(" and on.")

    def shell_tool(self):
        """The shell tool that the request offers; without one it is no turn but a title, a summary or a classifier."""
        return next((t["function"] for t in self.body.get("tools", []) if "shell" in t["function"]["name"]), None)

    def shell_call(self, command):
        tool = self.shell_tool()
        wanted = tool["parameters"].get("required", [])
        arguments = {"command": command, "is_background": False, "description": "what the flow asked for"}
        arguments = {k: v for k, v in arguments.items() if k == "command" or k in wanted}
        return {"name": tool["name"], "arguments": json.dumps(arguments)}

    def say(self, *words):
        for text in words:
            if self.body.get("stream"):
                self.chunk({"content": text})
            else:
                self.whole = getattr(self, "whole", "") + text

    def finish(self, reason, tool=None):
        call = {"index": 0, "id": f"call_{len(self.model.requests)}", "type": "function", "function": tool}
        if not self.body.get("stream"):
            message = {"role": "assistant", "content": getattr(self, "whole", "")}
            message |= {"tool_calls": [call]} if tool else {}
            choice = {"index": 0, "finish_reason": reason, "message": message}
            return self.handler.send_json(200, self.envelope([choice], "chat.completion") | USAGE)
        if tool:
            self.chunk({"tool_calls": [call]})
        self.chunk({}, reason)
        self.write(json.dumps(self.envelope([], "chat.completion.chunk") | USAGE))
        self.write("[DONE]")
        self.handler.wfile.write(b"0\r\n\r\n")

    def chunk(self, delta, reason=None):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        self.write(json.dumps(self.envelope([choice], "chat.completion.chunk")))

    def envelope(self, choices, kind):
        return {"id": f"chat_{id(self)}", "object": kind, "created": 1, "model": "fake", "choices": choices}

    def write(self, data):
        if not self.started:
            self.started = True
            self.handler.send_response(200)
            self.handler.send_header("content-type", "text/event-stream")
            self.handler.send_header("transfer-encoding", "chunked")
            self.handler.end_headers()
        frame = f"data: {data}\n\n".encode()
        self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
        self.handler.wfile.flush()


USAGE = {"usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content)
