#!/usr/bin/env python3
"""Return requests under kills: four clients post, repeat, cancel and set deadlines, a consumer keeps every line of the stream, and the
daemon dies at random moments, alone, with its hosts, or with everything below it; others die while they open the store, and two race for it.

    return_kills.py [KILLS [SEED]]      so many kills (40), on stores of fifty kills each, with the built-in agent

What must hold is in `return_kills_model.py`; at the end of each store all of it is looked at and `turnd request store verify` asked.
What is drawn follows the seed; where a process is when it is killed is the machine's choice.
"""

import collections
import http.client
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

from flow import FlowFailed, kill, until
from return_kills_model import TERMINALS, Model, fail
from stage import binary

BINARY = binary()
CLIENTS, SESSIONS, KILLS_A_STORE = 4, 3, 50
LIFE_SECONDS = 0.7  # of a life, at most, from when its clients go on
WITHIN_SECONDS = 0.012  # of a submission: a kill that waits for one comes so long behind its first byte at most
LINGER_MS = 300
STILLBORN = 0.3  # of the starts: a daemon that is killed within BORN_SECONDS, and perhaps another one behind it
BORN_SECONDS = 0.06
RIVALS = 0.15  # of the starts: two daemons at once, of which one ends
PROMPT = re.compile(r'"promptId":"([^"]*)"')
CONNECTION_ERRORS = (ConnectionError, http.client.HTTPException, OSError)
KINDS = {"daemon": 4, "daemon and hosts": 3, "everything": 3}
STEPS = {"post": 10, "again": 5, "cancel": 3, "look": 2}
# Not taken, and nothing is stored. Everything else that is no receipt fails the run.
REFUSED = {(409, "busy"), (409, "session_tainted"), (409, "session_closed"), (429, "queue_full"), (404, "session_not_found")}


class Unknown(Exception):
    """The daemon went away before it answered."""


class Site:
    """One store and the daemons on it, one after the other."""

    agent_flags = "--answer-after-ms 0"

    def __init__(self, base, chance, table, kinds):
        self.chance, self.starts, self.kinds = chance, table["start"], kinds
        self.base, self.store, self.workspace, self.journal = (base, *(base / part for part in ("store", "work", "journal")))
        self.workspace.mkdir()
        self.lock = threading.Lock()  # who kills and starts daemons
        self.posting = threading.Event()  # a submission is on its way
        self.is_over = False
        self.start()

    def start(self):
        while self.chance.random() < STILLBORN:
            process = self.spawn()
            time.sleep(self.chance.uniform(0, BORN_SECONDS))
            process.kill()
            process.wait()
            process.stdout.close()
            self.kinds["stillborn"] += 1
        processes = [self.spawn() for _ in range(2 if self.chance.random() < RIVALS else 1)]
        lines = [process.stdout.readline().strip() for process in processes]
        if sum(map(bool, lines)) != 1:
            fail("of the daemons on a store one starts", (self.base / "log").read_text()[-2000:])
        for process, line in zip(processes, lines):
            if line:
                self.process, self.port = process, int(line.rsplit(":", 1)[1])
            else:
                process.wait(60)
                process.stdout.close()
        self.starts["one of two" if len(processes) > 1 else "alone"] += 1

    def spawn(self):
        agent = f"'{BINARY}' agent {self.agent_flags} --journal '{self.journal}'"
        command = [BINARY, "serve", "--port", "0", "--log-level", "error", "--store", self.store, "--agent", agent]
        command += ["--workspace", self.workspace, "--linger-ms", str(LINGER_MS)]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.base)}
        with open(self.base / "log", "a") as log:
            words = [str(word) for word in command]
            return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)

    def family(self):
        """{pid: its second word} of all processes of this store."""
        mark, found = f"HOME={self.base}".encode(), {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")[1].decode()
            except (OSError, ValueError, IndexError):
                continue
        return found

    def kill(self, kind):
        words = {"daemon": {"serve"}, "daemon and hosts": {"serve", "host"}}.get(kind)
        family = self.family()
        kill([self.process.pid] + [pid for pid, word in family.items() if words is None or word in words])
        self.process.wait()
        self.process.stdout.close()

    def again(self, kind):
        """Kills, starts anew, and gives what was open then."""
        with self.lock:
            self.kill(kind)
            self.start()
            return [request["request_id"] for request in self.requests() if request["reply_pending"]]

    def call(self, method, path, body=None):
        """Status and body of one request. Unknown when the daemon died under it."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            connection.connect()
            if path.endswith("/return-requests"):
                self.posting.set()
            # None with a question: a daemon that answers before it has read a body may reset the connection behind its answer.
            sent = None if method == "GET" else json.dumps(body or {})
            connection.request(method, path, sent, {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
        except TimeoutError:
            fail(f"{method} {path} is answered within a minute")
        except CONNECTION_ERRORS:
            raise Unknown from None
        return answer.status, json.loads(text) if text else {}

    def requests(self):
        """All that are kept."""
        found, page = [], ""
        while page is not None:
            status, answer = self.call("GET", f"/return-requests?limit=1000{page}")
            if status != 200:
                fail("the requests are listed", answer)
            found += answer["requests"]
            page = answer["next_page"] and f"&page={answer['next_page']}"
        return found

    def lines(self, query):
        """The lines of the stream as they come, until its connection ends."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/return-requests/events?{query}", headers={"accept": "application/x-ndjson"})
        answer = connection.getresponse()
        if answer.status != 200:
            fail("the stream goes on behind what was read", answer.read().decode())
        for line in answer:
            if line.endswith(b"}\n"):
                yield line.decode().rstrip("\n")
        connection.close()


class Consumer:
    """Keeps every line, goes on behind the last one, and now and then begins from the beginning again."""

    def __init__(self, site, model, chance):
        self.site, self.model, self.chance = site, model, chance

    def run(self):
        place = "after=0"
        while not self.site.is_over:
            try:
                for line in self.site.lines(place):
                    number, cursor = self.model.line(line)
                    place = self.chance.choice([f"cursor={cursor}", f"after={number}"])
            except CONNECTION_ERRORS:
                with self.site.lock:  # whoever killed it has started another when this is free
                    pass
            if self.chance.random() < 0.1:
                place = "after=0"


class Client:
    """One of the four: draws a step and takes it, until the store is over."""

    steps = STEPS

    def __init__(self, site, model, number, chance, sessions, table):
        self.site, self.model, self.name, self.chance = site, model, f"c{number}", chance
        self.sessions, self.table, self.count = sessions, table, 0

    def run(self):
        while not self.site.is_over:
            step = self.chance.choices(list(self.steps), list(self.steps.values()))[0]
            try:
                outcome = getattr(self, step)()
            except Unknown:
                outcome = "unknown"
                with self.site.lock:
                    pass
            self.table[step][outcome] += 1

    def post(self):
        place = self.chance.randrange(SESSIONS)
        session = self.sessions.get(place) or self.open(place)
        self.count += 1
        id = f"{self.name}-{self.count}"
        text = self.chance.choice(
            [f"say {id}", f"say {id}", f"think {id}", f"slow {self.chance.randint(1, 250)}", f"long {self.chance.randint(1, 90000)}"]
            + self.chance.choices(["hang", "refuse", "empty", "die", f"fail {id}"], [4, 1, 1, 1, 1])
        )
        body = {"requestId": id, "prompt": [{"type": "text", "text": text}], "queue": self.chance.random() < 0.7}
        if text == "hang" or self.chance.random() < 0.25:
            body |= {"timeoutMs": self.chance.randint(5, 300), "cancelOnTimeout": text == "hang" or self.chance.random() < 0.5}
        self.model.posting(id, session, body)
        return self.submit(id, place)

    def again(self):
        """The same once more, whoever sent it."""
        id = self.model.any_id(self.chance)
        return self.submit(id, None) if id else "none"

    def submit(self, id, place):
        session, body = self.model.bodies[id]
        was_promised, had_ended = self.model.known(id)
        status, answer = self.site.call("POST", f"/session/{session}/return-requests", body)
        if status in (200, 202):
            if status == 202 and was_promised:
                fail(f"{id} is new once", answer)
            self.model.promised(id, answer, had_ended)
            return f"{status} {answer['state']}"
        code = answer.get("code")
        if (status, code) not in REFUSED or answer.get("input_written") != "no" or was_promised:
            fail(f"the submission of {id} is not answered so (promised before: {was_promised})", [status, answer])
        if status in (404, 409) and place is not None and code in ("session_not_found", "session_closed"):
            self.open(place, session)
        return f"{status} {code}"

    def open(self, place, session=None):
        """Loads a session again, or makes another one in its place."""
        if session and self.site.call("POST", f"/session/{session}/load")[0] == 200:
            return session
        status, answer = self.site.call("POST", "/session", {"sessionScope": "thread"})
        if status == 200:
            self.sessions[place] = answer["sessionId"]
            return answer["sessionId"]
        if answer.get("code") != "session_limit_exceeded":
            fail("a session is made", [status, answer])
        raise Unknown

    def cancel(self):
        id = self.model.any_id(self.chance)
        if id is None:
            return "none"
        return self.told(id, "POST", f"/return-requests/{id}/cancel", {"interrupt": self.chance.random() < 0.6})

    def look(self):
        id = self.model.any_id(self.chance)
        return self.told(id, "GET", f"/return-requests/{id}") if id else "none"

    def told(self, id, *question):
        was_promised, had_ended = self.model.known(id)
        status, answer = self.site.call(*question)
        if status == 404 and not was_promised:
            return "404"
        if status != 200:
            fail(f"{id} is known", [status, answer])
        self.model.shown(answer, had_ended)
        return f"200 {answer['state']}"


def ended(site, ids):
    """Waits until they have ended. What was refused is no request any more."""

    def all_have():
        pending = [site.call("GET", f"/return-requests/{id}") for id in ids]
        return all(status == 404 or answer["state"] in TERMINALS for status, answer in pending)

    until(f"{len(ids)} requests of earlier lives to end", all_have, seconds=120)


def lives(site, kills, chance, kinds, failures):
    """So many lives, each of which is killed."""
    open_before = []
    for _ in range(kills):
        # Most lives come to an end of what was open before; the others are killed over it.
        if chance.random() < 0.6:
            ended(site, open_before)
        if chance.random() < 0.5:
            time.sleep(chance.uniform(0, LIFE_SECONDS))
        else:
            time.sleep(chance.uniform(0, LIFE_SECONDS / 4))
            site.posting.clear()
            site.posting.wait(1)
            time.sleep(chance.uniform(0, WITHIN_SECONDS))
        if failures:
            raise failures[0]
        kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
        kinds[kind] += 1
        open_before = site.again(kind)
    ended(site, open_before)


def verified(site):
    command = [str(BINARY), "request", "store", "verify", "--store", str(site.store), "--workspace", str(site.workspace)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode or json.loads(done.stdout)["violations"]:
        fail("the store verifies", done.stdout + done.stderr)


def journal(site):
    """The ids of the prompts that the agents have heard. A line that an agent was killed over counts too."""
    lines = site.journal.read_text(errors="replace").split("\n") if site.journal.exists() else []
    return [PROMPT.search(line)[1] for line in lines if '"heard"' in line and '"session/prompt"' in line]


def play(seed, base, kills, table, kinds, cast):
    a_site, a_model, a_client = cast
    drawn = lambda name: random.Random(f"{seed}/{name}")
    site, model, failures, sessions = a_site(base, drawn("starts"), table, kinds), a_model(), [], {}

    def run(actor):
        try:
            actor.run()
        except BaseException as failure:
            failures.append(failure)

    actors = [a_client(site, model, number, drawn(number), sessions, table) for number in range(CLIENTS)]
    actors.append(Consumer(site, model, drawn("consumer")))
    threads = [threading.Thread(target=run, args=(actor,), daemon=True) for actor in actors]
    try:
        for thread in threads:
            thread.start()
        try:
            lives(site, kills, drawn("kills"), kinds, failures)
        finally:
            site.is_over = True
        site.again("everything")  # ends the consumer's connection too
        kinds["everything"] += 1
        for thread in threads:
            thread.join(120)
        if failures:
            raise failures[0]
        ended(site, [request["request_id"] for request in site.requests() if request["reply_pending"]])
        events = list(site.lines("after=0&once=true"))
        outcome = model.holds(site.requests(), events, journal(site))
        site.process.terminate()
        site.process.wait(60)
        verified(site)
        return outcome
    finally:
        kill(list(site.family()))


def main(kills=40, seed="1", cast=(Site, Model, Client)):
    left, number = int(kills), 0
    table, kinds, states = collections.defaultdict(collections.Counter), collections.Counter(), collections.Counter()
    prompts, begun = 0, time.monotonic()
    while left > 0:
        now = min(left, KILLS_A_STORE)
        with tempfile.TemporaryDirectory(prefix="turnd-returns-", ignore_cleanup_errors=True) as folder:
            try:
                ends, heard = play(f"{seed}.{number}", pathlib.Path(folder).resolve(), now - 1, table, kinds, cast)
            except FlowFailed as failure:
                log = (pathlib.Path(folder) / "log").read_text()[-1500:]
                raise FlowFailed(f"store {seed}.{number}: {failure}\n    the daemon's last lines:\n{log}") from failure
        states, prompts, left, number = states + ends, prompts + heard, left - now, number + 1
        print(f"{sum(kinds.values())} kills hold, {sum(states.values())} requests", flush=True)
    for step, outcomes in [*table.items(), ("killed", kinds), ("ended", states)]:
        print(f"{step}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    seconds = time.monotonic() - begun
    print(f"return-kills: {sum(kinds.values())} kills hold, {sum(states.values())} requests, {prompts} prompts heard, {seconds:.0f} s")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except FlowFailed as failure:
        sys.exit(f"return-kills: {failure}")
