"""What must hold of sessions through all their lives: the small model that `lives.py` plays against.

No record of a transcript and no line of a ledger is ever lost or doubled; a session's file is in one place; what was answered is true
later; a prompt that was rewound is not shown again; a branch starts without its source's prompts; nothing of a deleted session is left.
"""

import collections
import json
import re
import threading

from flow import FlowFailed, brief, until

TERMINALS = ("completed", "cancelled", "error", "interrupted")


def fail(sentence, got):
    raise FlowFailed(f"expected that {sentence}" + ("" if got is None else f"\n    got: {brief(got)}"))


class Prompt:
    def __init__(self, session, text):
        self.session, self.text = session, text
        self.state = "asking"  # then refused or admitted; asking means that nobody knows
        self.polled = None  # the last terminal state that a poll told
        self.recorded = None  # the terminal on record


class Model:
    def __init__(self, site):
        self.site = site
        folder = re.sub(r"[^A-Za-z0-9]", "-", str(site.workspace))
        self.chats = site.store / "projects" / folder / "chats"
        self.lock = threading.RLock()
        self.sessions, self.gone, self.maybe_gone = [], set(), set()
        self.prompts = {}
        self.rewound_prompts = collections.defaultdict(set)
        self.seen = collections.defaultdict(set)  # (session, kind) → lines that were on disk once

    # What clients tell.

    def any_session(self, chance):
        with self.lock:
            known = [session for session in self.sessions if session not in self.gone]
            return chance.choice(known) if known else None

    def any_prompt(self, session, chance):
        with self.lock:
            known = [id for id, prompt in self.prompts.items() if prompt.session == session and prompt.state == "admitted"]
            return chance.choice(known) if known else None

    def count(self):
        with self.lock:
            return len(self.sessions) - len(self.gone)

    def created(self, session):
        with self.lock:
            self.sessions.append(session)

    def branched(self, source, session):
        for ledger in self.places(session, ".ledger.jsonl"):
            lines = set(complete(ledger))
            with self.lock:
                inherited = {json.loads(line)["promptId"] for line in lines} & set(self.of(source))
            if inherited:
                fail("a branch has no ledger of its source", sorted(inherited))
        self.created(session)

    def of(self, session):
        return [id for id, prompt in self.prompts.items() if prompt.session == session]

    def asking(self, session, prompt, text):
        with self.lock:
            self.prompts[prompt] = Prompt(session, text)

    def refused(self, prompt):
        self.prompts[prompt].state = "refused"

    def admitted(self, prompt):
        self.prompts[prompt].state = "admitted"

    def told(self, id, answer):
        with self.lock:
            prompt = self.prompts[id]
            state = answer["state"]
            if state in TERMINALS:
                prompt.polled = state
                self.agree(id)
            if state == "completed" and id not in self.rewound_prompts[prompt.session]:
                self.answer_is_its_own(prompt, answer.get("resultText"))

    def record(self, id, terminal):
        """A terminal on record never changes."""
        prompt = self.prompts[id]
        if prompt.recorded not in (None, terminal):
            fail(f"{id} has one terminal on record", [prompt.recorded, terminal])
        prompt.recorded = terminal
        self.agree(id)

    def agree(self, id):
        """A poll says what is on record, or how a prompt settled whose caller was released with an error (turn status seed)."""
        prompt = self.prompts[id]
        if None not in (prompt.polled, prompt.recorded) and prompt.recorded not in (prompt.polled, "error"):
            fail(f"poll and record of {id} agree", [prompt.polled, prompt.recorded])

    def answer_is_its_own(self, prompt, text):
        word = prompt.text.rsplit(" ", 1)[1]
        if not prompt.text.startswith("empty") and word not in (text or ""):
            fail(f"the answer to {prompt.text!r} is its own", text)

    def loaded(self, session, answer):
        with self.lock:
            for record in answer.get("promptTerminals", []):
                id = record["promptId"]
                if id not in self.prompts or self.prompts[id].session != session:
                    fail("a load tells only of prompts of the session", record)
                if self.prompts[id].state == "refused":
                    fail("nothing is told of a prompt that was refused", record)
                self.record(id, record["terminal"])

    def rewound(self, session, target):
        """From then on neither the target nor what stands behind it in the file is shown."""
        with self.lock:
            order = self.stamped(session)
            if target in order:
                at = order.index(target)
                rewinds = [number for number, id in enumerate(order) if id is None and number > at]
                end = rewinds[0] if rewinds else len(order)
                self.rewound_prompts[session].update(id for id in order[at:end] if id)

    def deleting(self, session):
        with self.lock:
            self.maybe_gone.add(session)

    def deleted(self, session):
        with self.lock:
            self.gone.add(session)

    # What lies on disk.

    def places(self, session, suffix):
        both = (self.chats / f"{session}{suffix}", self.chats / "archive" / f"{session}{suffix}")
        return [path for path in both if path.exists()]

    def stamped(self, session):
        """The prompt ids of the user records in the order of the file; None for a rewind."""
        ids = []
        for path in self.places(session, ".jsonl"):
            for line in complete(path):
                record = json.loads(line)
                if record["type"] == "user" and record.get("daemonPromptId"):
                    ids.append(record["daemonPromptId"])
                elif record.get("subtype") == "rewind":
                    ids.append(None)
        return ids

    def look(self, session):
        """Notes what is on disk now, so that it can be missed later."""
        for kind in (".jsonl", ".ledger.jsonl"):
            for path in self.places(session, kind):
                lines = complete(path)
                with self.lock:
                    self.seen[session, kind].update(lines)

    def look_at_all(self):
        for session in self.sessions:
            self.look(session)
        self.at_rest()

    def at_rest(self):
        """Nothing runs: every line that was seen once is there once, and no agent was asked for a prompt twice."""
        self.each_ran_once()
        for session in self.sessions:
            if session in self.gone:
                self.nothing_of(session)
                continue
            transcripts = self.places(session, ".jsonl")
            if session in self.maybe_gone:
                continue
            if len(transcripts) > 1:
                # A move that was cut off has two names for one file; two files would be two copies.
                if len({(path.stat().st_dev, path.stat().st_ino) for path in transcripts}) > 1:
                    fail("a session has one transcript", [str(path) for path in transcripts])
            for kind in (".jsonl", ".ledger.jsonl"):
                self.all_there(session, kind)
            self.ledger_is_sound(session)

    def each_ran_once(self):
        """By the agents' own synced journal."""
        journal = self.site.base / "journal"
        heard = [json.loads(line).get("heard", {}) for line in complete(journal)]
        prompts = [message["params"]["_meta"] for message in heard if message.get("method") == "session/prompt"]
        counts = collections.Counter(meta["qwen-code/invocation"]["promptId"] for meta in prompts)
        twice = [id for id, count in counts.items() if count > 1]
        if twice:
            fail("no prompt reaches an agent twice", twice)
        refused = [id for id in counts if id in self.prompts and self.prompts[id].state == "refused"]
        if refused:
            fail("no prompt that was refused reaches an agent", refused)

    def all_there(self, session, kind):
        places = {path.stat().st_ino: path for path in self.places(session, kind)}.values()
        counts = collections.Counter(line for path in places for line in complete(path))
        lost = self.seen[session, kind] - set(counts)
        if lost:
            fail(f"no line of {session}{kind} is lost", sorted(lost))
        doubled = [line for line, count in counts.items() if count > 1]
        if doubled and kind == ".jsonl":
            fail(f"no record of {session} is doubled", doubled)

    def ledger_is_sound(self, session):
        terminals, admissions = collections.defaultdict(set), set()
        for path in self.places(session, ".ledger.jsonl"):
            for line in complete(path):
                record = json.loads(line)
                if "terminal" in record:
                    terminals[record["promptId"]].add(line)
                elif record["state"] == "in_flight":
                    admissions.add(record["promptId"])
        with self.lock:
            for id in self.of(session):
                prompt = self.prompts[id]
                if prompt.state == "admitted" and id not in admissions:
                    fail(f"{id} was answered 202 and its admission is on record", sorted(admissions))
                if len(terminals[id]) > 1:
                    fail(f"{id} has one terminal", sorted(terminals[id]))
                for line in terminals[id]:
                    self.record(id, json.loads(line)["terminal"])
            strangers = (set(terminals) | admissions) - set(self.of(session))
            if strangers:
                fail(f"the ledger of {session} holds its own prompts", sorted(strangers))

    def nothing_of(self, session):
        files = list(self.site.store.rglob("*"))
        left = [str(path) for path in files if session in path.name]
        # The records of a branch say where they come from, and a branch is a session of its own.
        others = [path for path in files if path.is_file() and self.chats not in path.parents]
        left += [str(path) for path in others if session in path.read_text(errors="replace")]
        if left:
            fail(f"nothing of the deleted session {session} is left", left)

    # What a fresh daemon says.

    def asked_again(self):
        """Loads every session that has a transcript; gives their ids, loaded or not."""
        left = []
        for session in self.sessions:
            if session in self.gone:
                status, answer = self.site.call("POST", f"/session/{session}/load", {})
                if status != 404:
                    fail("a deleted session is not found", (status, answer))
                continue
            self.bring_back(session)
            status, answer = until("the session's last host to let go of it", lambda: self.tried(session))
            if status == 404:
                if self.places(session, ".jsonl") and any(complete(path) for path in self.places(session, ".jsonl")):
                    fail("a session with a transcript is found", answer)
                continue
            if status != 200:
                fail(f"{session} loads", (status, answer))
            self.loaded(session, answer)
            self.replay_is_right(session, answer)
            left.append(session)
        return left

    def tried(self, session):
        status, answer = self.site.call("POST", f"/session/{session}/load", {})
        return None if answer.get("code") == "session_writer_conflict" else (status, answer)

    def bring_back(self, session):
        """Whatever a kill left half done, the next call of the same kind ends."""
        status, answer = self.site.call("POST", "/sessions/unarchive", {"sessionIds": [session]})
        if status != 200 or answer["errors"]:
            fail(f"{session} is brought back", (status, answer))

    def replay_is_right(self, session, answer):
        chunks = [event["data"]["update"] for event in answer["compactedReplay"] if event["type"] == "session_update"]
        shown = {chunk["_meta"]["promptId"] for chunk in chunks if "promptId" in chunk.get("_meta", {})}
        with self.lock:
            again = shown & self.rewound_prompts[session]
            strangers = shown - set(self.of(session))
        if again:
            fail(f"prompts of {session} that were rewound are not shown", sorted(again))
        if strangers:
            fail(f"a load of {session} shows its own prompts under their ids", sorted(strangers))

    def emptied(self):
        """Everything is deleted, and nothing is left."""
        left = [session for session in self.sessions if session not in self.gone]
        if left:
            status, answer = self.site.call("POST", "/sessions/delete", {"sessionIds": left})
            if status != 200 or answer["errors"]:
                fail("everything can be deleted", (status, answer))
        for session in self.sessions:
            self.nothing_of(session)


def complete(path):
    """The lines of a file that end in a newline and are not empty. A file that has just been moved is read elsewhere."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return []
    return [line for line in text.split("\n")[:-1] if line]
