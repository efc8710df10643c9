#!/usr/bin/env python3
"""Many lives of a few sessions: four clients at once create, prompt, close, load, resume, archive, unarchive, delete, rewind, branch,
kill and restart, in sequences drawn by chance, against a small model of what must hold.

    lives.py [SEQUENCES [SEED]]      so many sequences (20), each on a store of its own, with the built-in agent

After each sequence everything is killed, a fresh daemon is asked about every session, the peer's unmodified client loads and
resumes what is left, and then everything is deleted. `lives_model.py` holds what is checked. Prints what was done and how it was
answered, as a table.
"""

import collections
import http.client
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import uuid

from flow import AGENTS, ROOT, FlowFailed, kill, until
from lives_model import Model, fail
from stage import binary

BINARY = binary()
CLIENTS = 4
STEPS = (12, 24)  # steps of one client in one sequence, at least and at most
SESSIONS_FIRST = 2
SESSIONS_MAX = 6  # more are not made: clients have to meet
CONNECTION_ERRORS = (ConnectionError, http.client.HTTPException, OSError)
NODE, CLIENT = AGENTS / "node_modules/.bin/node", ROOT / "e2e/lives.mjs"

# What a step may be answered besides success. Everything else fails the sequence.
BUSY = {(409, "session_archiving"), (409, "restore_in_progress")}
GONE = {(404, "session_not_found")}
ENDING = {(503, "daemon_draining")}
ALLOWED = {
    "create": {(503, "session_limit_exceeded")},
    "prompt": BUSY | GONE | {(503, "prompt_queue_full"), (409, "session_busy")},
    "close": BUSY | GONE | {(409, "session_writer_conflict")},
    "load": BUSY | GONE | {(409, "session_archived"), (409, "session_writer_conflict")},
    "resume": BUSY | GONE | {(409, "session_archived"), (409, "session_writer_conflict")},
    "archive": set(),
    "unarchive": set(),
    "delete": set(),
    "rewind": BUSY | GONE | {(400, "invalid_rewind_target"), (409, "session_busy")},
    "branch": BUSY | GONE | {(409, "branch_point_invalid"), (409, "branch_while_prompt_active")},
}
WEIGHTS = {
    "create": 6, "prompt": 30, "close": 8, "load": 14, "resume": 6, "archive": 8, "unarchive": 8, "delete": 4, "rewind": 6,
    "branch": 5, "kill": 2, "restart": 1,
}  # fmt: skip


class Unknown(Exception):
    """The daemon went away before it answered."""


class Site:
    """One store and the daemons on it, one after the other."""

    def __init__(self, base):
        self.base, self.store = base, base / "store"
        self.workspace = base / "work"
        self.workspace.mkdir()
        self.lock = threading.Lock()  # who kills and starts daemons
        self.life = 0
        self.start()

    def start(self):
        agent = f"'{BINARY}' agent --answer-after-ms 0 --journal '{self.base}/journal'"
        command = [BINARY, "serve", "--port", "0", "--log-level", "error", "--store", self.store, "--agent", agent]
        command += ["--workspace", self.workspace, "--linger-ms", "200"]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.base)}
        self.log = open(self.base / "log", "a")
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment
        )
        line = self.process.stdout.readline().strip()
        if not line:
            fail("the daemon starts again", (self.base / "log").read_text()[-2000:])
        self.port = int(line.rsplit(":", 1)[1])
        self.life += 1

    def again(self, chance):
        """Ends the daemon, alone or with all hosts and agents, and starts it again."""
        with self.lock:
            how = chance.choice(["daemon", "all", "term"])
            if how == "term":
                self.process.terminate()
            else:
                kill([self.process.pid] if how == "daemon" else self.family())
            self.process.wait()
            self.process.stdout.close()
            self.log.close()
            self.start()
            return how

    def family(self):
        mark = f"HOME={self.base}".encode()
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except (OSError, ValueError):
                continue
        return found

    def end(self):
        kill(self.family())
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def call(self, method, path, body=None):
        """Status and body of one request. Unknown when the daemon died under it."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            connection.request(method, path, json.dumps(body or {}), {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
        except TimeoutError:
            fail(f"{method} {path} is answered within a minute", None)
        except CONNECTION_ERRORS:
            raise Unknown from None
        return answer.status, json.loads(text) if text else {}


class Client:
    """One of the four: draws a step, takes it, and tells the model."""

    def __init__(self, site, model, number, chance, table):
        self.site, self.model, self.name, self.chance, self.table = site, model, f"c{number}", chance, table
        self.prompts = 0

    def run(self):
        for _ in range(self.chance.randint(*STEPS)):
            step = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            try:
                outcome = getattr(self, step)()
            except Unknown:
                outcome = "unknown"
                with self.site.lock:  # whoever killed it has started another when this is free
                    pass
            self.table[step][outcome] += 1

    def ask(self, step, method, path, body=None):
        """The body of a success, else None; the word for the table."""
        life = self.site.life
        status, answer = self.site.call(method, path, body)
        if status < 300:
            return answer, str(status)
        code = answer.get("code")
        with self.site.lock:
            if status == 502 and self.site.life != life:
                return None, "502 at the end of a daemon"
        if (status, code) not in ALLOWED[step] | ENDING:
            fail(f"{step} ({method} {path}) is not answered so", (status, answer))
        return None, f"{status} {code}"

    def one(self):
        return self.model.any_session(self.chance)

    def create(self):
        if self.model.count() >= SESSIONS_MAX:
            return "enough"
        answer, word = self.ask("create", "POST", "/session", {"sessionScope": "thread"})
        if answer:
            self.model.created(answer["sessionId"])
        return word

    def prompt(self):
        session = self.one()
        if session is None:
            return "none"
        self.prompts += 1
        prompt = str(uuid.uuid4())
        text = f"{self.chance.choice(['say', 'slow 30', 'think', 'empty'])} {self.name}-{self.prompts}"
        self.model.asking(session, prompt, text)
        body = {"promptId": prompt, "prompt": [{"type": "text", "text": text}]}
        answer, word = self.ask("prompt", "POST", f"/session/{session}/prompt", body)
        if answer is None and "session_not_found" in word and self.chance.random() < 0.5:
            self.ask("load", "POST", f"/session/{session}/load")
            answer, word = self.ask("prompt", "POST", f"/session/{session}/prompt", body)
        if answer is None:
            self.model.refused(prompt)
            return word
        self.model.admitted(prompt)
        if self.chance.random() < 0.6:
            status, told = self.site.call("GET", f"/session/{session}/turns/{prompt}?wait_ms=20000")
            if status == 200:
                self.model.told(prompt, told)
        self.model.look(session)
        return word

    def close(self):
        return self.plainly("close", "DELETE", "")

    def load(self):
        return self.plainly("load", "POST", "/load")

    def resume(self):
        return self.plainly("resume", "POST", "/resume")

    def plainly(self, step, method, path):
        session = self.one()
        if session is None:
            return "none"
        answer, word = self.ask(step, method, f"/session/{session}{path}")
        if answer is not None and step == "load":
            self.model.loaded(session, answer)
        self.model.look(session)
        return word

    def archive(self):
        return self.shelve("archive", ("archived", "alreadyArchived"))

    def unarchive(self):
        return self.shelve("unarchive", ("unarchived", "alreadyActive"))

    def delete(self):
        return self.shelve("delete", ("removed",))

    def shelve(self, step, done):
        session = self.one()
        if session is None:
            return "none"
        if step == "delete":
            self.model.deleting(session)
        answer, word = self.ask(step, "POST", f"/sessions/{step}", {"sessionIds": [session]})
        if session in answer.get("notFound", []):
            return "not found"
        if answer["errors"]:
            return "error: " + (answer["errors"][0].get("code") or answer["errors"][0]["error"])
        if not any(session in answer.get(key, []) for key in done):
            fail(f"{step} tells of the session it was asked about", answer)
        if step == "delete":
            self.model.deleted(session)
        return word

    def rewind(self):
        session = self.one()
        target = session and self.model.any_prompt(session, self.chance)
        if target is None:
            return "none"
        answer, word = self.ask("rewind", "POST", f"/session/{session}/rewind", {"promptId": target})
        if answer is not None:
            self.model.rewound(session, target)
        self.model.look(session)
        return word

    def branch(self):
        session = self.one()
        if session is None or self.model.count() >= SESSIONS_MAX:
            return "none"
        target = self.model.any_prompt(session, self.chance) if self.chance.random() < 0.5 else None
        body = {} if target is None else {"atRecordId": target}
        answer, word = self.ask("branch", "POST", f"/session/{session}/branch", body)
        if answer is not None:
            self.model.branched(session, answer["sessionId"])
        return word

    def kill(self):
        return self.site.again(self.chance)

    restart = kill


def client_holds(site, sessions):
    """The peer's own client loads and resumes them."""
    if not sessions:
        return
    command = [str(NODE), str(CLIENT), f"http://127.0.0.1:{site.port}", str(site.workspace), *sessions]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        fail("the peer's client loads and resumes every session", done.stdout + done.stderr)


def play(seed, base, table, with_client):
    site = Site(base)
    model = Model(site)
    failures = []

    def run(client):
        try:
            client.run()
        except BaseException as failure:
            failures.append(failure)

    clients = [Client(site, model, number, random.Random(f"{seed}/{number}"), table) for number in range(CLIENTS)]
    for _ in range(SESSIONS_FIRST):
        clients[0].create()
    threads = [threading.Thread(target=run, args=(client,)) for client in clients]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        site.end()
        until("every process to be gone", lambda: not site.family())
        model.at_rest()
        site.start()
        left = model.asked_again()
        if with_client:
            client_holds(site, left)
        model.look_at_all()
        model.emptied()
    finally:
        site.end()


def main(sequences=20, seed="1"):
    table = collections.defaultdict(collections.Counter)
    with_client = NODE.exists()
    for number in range(int(sequences)):
        one = f"{seed}.{number}"
        with tempfile.TemporaryDirectory(prefix="turnd-lives-") as folder:
            try:
                play(one, pathlib.Path(folder).resolve(), table, with_client)
            except FlowFailed as failure:
                log = (pathlib.Path(folder) / "log").read_text()[-1500:]
                raise FlowFailed(f"sequence {one}: {failure}\n    the daemon's last lines:\n{log}") from failure
        if (number + 1) % 50 == 0:
            print(f"{number + 1} sequences hold", flush=True)
    for step, outcomes in table.items():
        print(f"{step}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    client = "with" if with_client else "without"
    print(f"lives: {sequences} sequences hold, {client} the peer's client")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except FlowFailed as failure:
        sys.exit(f"lives: {failure}")
