"""What every flow stands on: sentences that are checked, waiting with a deadline, HTTP, event streams, processes."""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
AGENTS = ROOT / ".e2e"
WAIT_SECONDS = 60  # how long anything may take on a loaded machine; nothing takes it on purpose
POLL_SECONDS = 0.02


class FlowFailed(Exception):
    """What a flow expected and did not see."""


def saw(sentence, holds=True, got=None):
    """Prints one thing seen, or fails with it."""
    if not holds:
        raise FlowFailed(f"expected that {sentence}" + ("" if got is None else f"\n    got: {brief(got)}"))
    print(f"    {sentence}", flush=True)


def same(sentence, got, wanted):
    """saw(), for a value that must be just so."""
    saw(sentence, got == wanted, f"{brief(got)}\n    not: {brief(wanted)}")


def brief(value):
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 2000 else text[:2000] + " …"


def until(what, probe, seconds=WAIT_SECONDS):
    """Asks again until probe() is true; gives what it gave."""
    deadline = time.monotonic() + seconds
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise FlowFailed(f"waited {seconds} s for {what}")
        time.sleep(POLL_SECONDS)


class Home:
    """A folder of its own for one flow: home, workspace, store. Its path is the mark by which processes are found."""

    def __init__(self, name):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"turnd-{name}-"))
        self.home, self.workspace, self.store = (self.path / part for part in ("home", "work", "store"))
        self.home.mkdir()
        self.workspace.mkdir()

    def environment(self, **extra):
        node = AGENTS / "node_modules" / ".bin"
        path = f"{node}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        return {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", **extra}

    def processes(self):
        """Every living process that inherited this home, whoever its parent is now: {pid: command line}."""
        mark = f"HOME={self.home}".encode()
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except (OSError, ValueError):
                continue  # no process, not ours, or gone since
        return found

    def kill(self):
        kill(self.processes())

    def close(self, keep=False):
        self.kill()
        if keep:
            print(f"    (kept: {self.path})")
        else:
            shutil.rmtree(self.path, ignore_errors=True)


def kill(pids):
    """SIGKILL to all of them as if at one instant: they are stopped first, so that none sees another die."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


class Daemon:
    """A daemon process that speaks the session API; `command` starts it, `base` is where its chats lie."""

    def __init__(self, command, home, environment, chats):
        self.home, self.chats = home, chats
        self.log = []
        self.process = subprocess.Popen(
            [str(part) for part in command], cwd=home.workspace, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.port = until("the daemon to say where it listens", self._port)
        until("the daemon to be ready", self._ready)

    def _read_log(self):
        for line in self.process.stdout:
            self.log.append(line.rstrip())

    def _port(self):
        for line in list(self.log):
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                return int(found[1])
        return self._lives()

    def _ready(self):
        try:
            return self.call("GET", "/session/none/status")[0] != 503
        except OSError:
            return self._lives()

    def _lives(self):
        if self.process.poll() is not None:
            self._reader.join(WAIT_SECONDS)
            raise FlowFailed("the daemon ended at its start:\n" + "\n".join(self.log[-20:]))

    def call(self, method, path, body=None, client=None):
        """(status, parsed body or None)"""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        headers = {"content-type": "application/json"} | ({"x-qwen-client-id": client} if client else {})
        try:
            link.request(method, path, None if body is None else json.dumps(body), headers)
            answer = link.getresponse()
            text = answer.read().decode()
        finally:
            link.close()
        try:
            return answer.status, json.loads(text) if text else None
        except ValueError:
            return answer.status, text

    def ask(self, expected, method, path, body=None, client=None):
        """The body of an answer that must have the expected status."""
        status, value = self.call(method, path, body, client)
        if status != expected:
            raise FlowFailed(f"expected {expected} from {method} {path}\n    got: {status} {brief(value)}")
        return value

    def kill(self):
        """SIGKILL to the daemon alone."""
        self.process.kill()
        self.process.wait(WAIT_SECONDS)

    def terminate(self):
        """SIGTERM; gives the exit status."""
        self.process.terminate()
        try:
            return self.process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise FlowFailed(f"the daemon did not end within {WAIT_SECONDS} s of SIGTERM") from None


class Session:
    """One session of a daemon, from create() or load()."""

    def __init__(self, daemon, opened):
        self.daemon, self.opened = daemon, opened
        self.id, self.client = opened["sessionId"], opened["clientId"]

    @classmethod
    def create(cls, daemon):
        body = {"cwd": str(daemon.home.workspace), "sessionScope": "thread"}
        return cls(daemon, daemon.ask(200, "POST", "/session", body))

    @classmethod
    def load(cls, daemon, session_id):
        return cls(daemon, daemon.ask(200, "POST", f"/session/{session_id}/load", {"cwd": str(daemon.home.workspace)}))

    def call(self, method, path, body=None):
        return self.daemon.call(method, f"/session/{self.id}{path}", body, self.client)

    def ask(self, expected, method, path, body=None):
        return self.daemon.ask(expected, method, f"/session/{self.id}{path}", body, self.client)

    def prompt(self, text):
        """The 202's receipt: {promptId, lastEventId, eventEpoch}."""
        return self.ask(202, "POST", "/prompt", {"prompt": [{"type": "text", "text": text}]})

    def events(self, cursor=None):
        return Events(self, cursor)

    def turn(self, prompt_id):
        return self.call("GET", f"/turns/{prompt_id}")

    def terminals(self):
        """The load's promptTerminals as (prompt id, terminal, code or stop reason), without their times."""
        listed = self.opened.get("promptTerminals", [])
        return [(t["promptId"], t["terminal"], t.get("code") or t.get("stopReason")) for t in listed]

    def file(self, suffix=".jsonl"):
        return self.daemon.chats / f"{self.id}{suffix}"

    def ledger(self):
        return records(self.file(".ledger.jsonl"))

    def transcript(self):
        return records(self.file())

    def turn_result(self, prompt_id):
        """The payload of that prompt's turn_result record on disk, or None."""
        for record in self.transcript():
            if record.get("subtype") == "turn_result" and record["systemPayload"]["promptId"] == prompt_id:
                return record["systemPayload"]
        return None


def records(path):
    """The whole lines of a JSON-lines file; a line still being written is not one yet."""
    try:
        lines = path.read_text(errors="replace").split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines if line.strip()]


class Events:
    """A reader of one event stream: all frames so far, and waiting for the next that matters."""

    def __init__(self, session, cursor):
        self.frames, self.ended = [], False
        self._news = threading.Condition()
        self._link = http.client.HTTPConnection("127.0.0.1", session.daemon.port)
        headers = {"accept": "text/event-stream"} | ({} if cursor is None else {"last-event-id": str(cursor)})
        self._link.request("GET", f"/session/{session.id}/events", headers=headers)
        self._answer = self._link.getresponse()
        if self._answer.status != 200:
            raise FlowFailed(f"the event stream was refused: {self._answer.status} {self._answer.read().decode()}")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        data = []
        try:
            for raw in self._answer:
                line = raw.decode().rstrip("\r\n")
                if line.startswith("data:"):
                    data.append(line[5:].strip())
                elif not line and data:
                    self._add(json.loads("\n".join(data)))
                    data = []
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass  # the daemon died or the flow closed the stream
        with self._news:
            self.ended = True
            self._news.notify_all()

    def _add(self, frame):
        with self._news:
            self.frames.append(frame)
            self._news.notify_all()

    def wait(self, what, wanted, seconds=WAIT_SECONDS):
        """The first frame, seen already or to come, that wanted(frame) takes."""
        deadline = time.monotonic() + seconds
        looked_at = 0
        with self._news:
            while True:
                for frame in self.frames[looked_at:]:
                    if wanted(frame):
                        return frame
                looked_at = len(self.frames)
                if self.ended:
                    raise FlowFailed(f"the stream ended before {what}\n    got: {self.kinds()}")
                if not self._news.wait(max(0, deadline - time.monotonic())):
                    raise FlowFailed(f"waited {seconds} s for {what}\n    got: {self.kinds()}")

    def terminal(self, prompt_id):
        """The turn_complete or turn_error of that prompt."""
        return self.wait(f"the end of prompt {prompt_id}", lambda f: ends(f, prompt_id))

    def within_turn(self, prompt_id, what, wanted):
        """The first frame of that prompt's turn that wanted(frame) takes; the turn must not end before."""
        ours = lambda f: f.get("promptId") == prompt_id and wanted(f)
        frame = self.wait(what, lambda f: ours(f) or ends(f, prompt_id))
        if not ours(frame):
            raise FlowFailed(f"the turn ended before {what}\n    got: {brief(frame)}")
        return frame

    def update(self, kind, **fields):
        """The first session_update of that kind with those fields."""
        return self.wait(f"an update {kind} {fields or ''}", lambda f: is_update(f, kind, **fields))

    def of_type(self, kind):
        return self.wait(f"a {kind}", lambda f: f["type"] == kind)

    def end(self):
        until("the stream to end", lambda: self.ended)

    def kinds(self, frames=None):
        """Types in order, an update by its kind; chunks without text and commands are left out."""
        return [kind_of(f) for f in (self.frames if frames is None else frames) if kind_of(f)]

    def close(self):
        try:
            self._answer.fp.raw._sock.shutdown(2)
        except (OSError, AttributeError):
            pass
        self._link.close()


def ends(frame, prompt_id):
    return frame["type"] in ("turn_complete", "turn_error") and frame["data"].get("promptId") == prompt_id


def is_update(frame, kind, **fields):
    update = frame["data"].get("update", {}) if frame["type"] == "session_update" else {}
    return update.get("sessionUpdate") == kind and all(update.get(k) == v for k, v in fields.items())


def kind_of(frame):
    if frame["type"] != "session_update":
        return frame["type"]
    update = frame["data"]["update"]
    kind = update["sessionUpdate"]
    content = update.get("content")
    empty = isinstance(content, dict) and content.get("type") == "text" and not content.get("text")
    return None if empty or kind in ("available_commands_update", "session_info_update", "usage_update") else kind


def text_said(frames):
    """The agent's words in a list of frames."""
    updates = [f["data"]["update"] for f in frames if is_update(f, "agent_message_chunk")]
    return "".join(u["content"].get("text", "") for u in updates)


def run(name, flows):
    """Runs (title, function) pairs and says which failed; the words given on the command line pick titles."""
    def ended(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` sends two, and the second would end the clearing
        sys.exit(f"{name}: ended by SIGTERM")  # through the stages' exits

    signal.signal(signal.SIGTERM, ended)
    chosen = [(t, f) for t, f in flows if all(word in t for word in sys.argv[1:])]
    failed = []
    for title, flow in chosen:
        print(f"{name}: {title}", flush=True)
        started = time.monotonic()
        try:
            flow()
            print(f"  ok, {time.monotonic() - started:.1f} s", flush=True)
        except FlowFailed as failure:
            failed.append(title)
            print(f"  FAILED: {failure}", flush=True)
        except Exception:  # a shape nobody foresaw is a failure of this flow, not of the rest
            failed.append(title)
            print(f"  FAILED: {traceback.format_exc()}", flush=True)
    if failed or not chosen:
        sys.exit(f"{name}: {len(failed)} of {len(chosen)} flows failed" if chosen else f"{name}: no such flow")
    print(f"{name}: {len(chosen)} flows hold")
