#!/usr/bin/env python3
"""Return requests among everything else that may happen to their sessions: plain prompts of other clients, also under the ids of requests'
prompts, rewinds, loads, resumes, moves into the archive and back, and, while everything is dead, the words of a program that knows
nothing of turnd. With kills, and starts that are killed.

    return_changes.py [KILLS [SEED]]      so many kills (40), on stores of fifty kills each, with the built-in agent

What must hold is what holds in `return_kills.py`: `completed` carries exactly what the agent said to that very prompt, and what was said
not to be written nobody has heard.
"""

import json
import sys
import uuid

import return_kills
from flow import FlowFailed
from return_kills import Client, Site
from return_kills_model import Model, fail

STRANGER = 0.7  # of the kills of everything: a program writes into a session before the next start
STEPS = {"post": 14, "again": 4, "cancel": 1, "look": 2, "plain": 3, "stolen": 3, "rewind": 3, "load": 4, "resume": 2, "close": 1, "archive": 1, "unarchive": 2}  # fmt: skip
TURN_MS = 40  # between the last word of an answer and its end
# Answered so, a step has changed nothing.
REFUSED = {400, 404, 409, 503}


class Changed(Model):
    """The prompts that are no request's are told by their ids or their texts."""

    def __init__(self):
        super().__init__()
        self.plain = set()

    def holds(self, requests, events, heard):
        return super().holds(requests, events, [prompt for prompt in heard if prompt not in self.plain])


class ChangedSite(Site):
    """One whose transcripts a stranger writes into while nobody else has them."""

    agent_flags = f"--answer-after-ms {TURN_MS}"

    def kill(self, kind):
        super().kill(kind)
        if kind == "everything" and self.chance.random() < STRANGER:
            for path in sorted(self.store.glob("projects/*/chats/*.jsonl")):
                if not path.name.endswith(".ledger.jsonl") and self.chance.random() < 0.6:
                    self.starts["behind a stranger"] += self.write_into(path)

    def write_into(self, path):
        """Goes on with a conversation, as another program would: a question without an id and perhaps its answer."""
        lines = path.read_text().split("\n")
        records = [json.loads(line) for line in lines if line.endswith("}")]
        asked = [record for record in records if record["type"] == "user"]
        if not asked or lines[-1]:
            return 0
        tail = records[-1]["uuid"]
        roles = [("user", "user")] + [("assistant", "model")] * (self.chance.random() < 0.6)
        with open(path, "a") as file:
            for kind, role in roles:
                record = {key: value for key, value in asked[-1].items() if key != "daemonPromptId"}
                words = {"role": role, "parts": [{"text": f"a stranger's {kind} words"}]}
                record |= {"uuid": str(uuid.uuid4()), "parentUuid": tail, "type": kind, "message": words}
                if kind == "assistant":
                    record |= {"provenance": "assistant_output", "model": "other"}
                file.write(json.dumps(record, separators=(",", ":")) + "\n")
                tail = record["uuid"]
        return 1


class Changer(Client):
    steps = STEPS

    def any_session(self):
        return self.sessions.get(self.chance.randrange(return_kills.SESSIONS))

    def promised(self):
        """One of the newest ids that a receipt was given for, and its prompt."""
        with self.model.lock:
            promised = list(self.model.prompts.items())[-20:]
        return self.chance.choice(promised) if promised else (None, None)

    def step(self, session, method, path, body=None):
        if session is None:
            return "none"
        status, answer = self.site.call(method, path, body)
        if status >= 300 and status not in REFUSED:
            fail(f"{method} {path} is done or refused", [status, answer])
        return f"{status} {answer.get('code', '')}".strip()

    def plain(self):
        session, prompt = self.any_session(), f"plain-{uuid.uuid4()}"
        self.model.plain.add(prompt)
        text = self.chance.choice(["say plain", "think plain", "long 3000", "hang"])
        body = {"promptId": prompt, "prompt": [{"type": "text", "text": text}], "deadlineMs": 200}
        return self.step(session, "POST", f"/session/{session}/prompt", body)

    def stolen(self):
        """A plain prompt under the id of a request's: the same words, or others."""
        id, prompt = self.promised()
        if id is None:
            return "none"
        session, body = self.model.bodies[id]
        words = body["prompt"] if self.chance.random() < 0.7 else [{"type": "text", "text": "say stolen"}]
        status, answer = self.site.call("POST", f"/session/{session}/prompt", {"promptId": prompt, "prompt": words})
        return f"{status} {answer.get('code', 'replayed' if answer.get('replayed') else '')}".strip()

    def rewind(self):
        id, prompt = self.promised()
        session = id and self.model.bodies[id][0]
        return self.step(session, "POST", f"/session/{session}/rewind", {"promptId": prompt})

    def load(self):
        session = self.any_session()
        return self.step(session, "POST", f"/session/{session}/load")

    def resume(self):
        session = self.any_session()
        return self.step(session, "POST", f"/session/{session}/resume")

    def close(self):
        session = self.any_session()
        return self.step(session, "DELETE", f"/session/{session}")

    def archive(self):
        return self.shelve("archive")

    def unarchive(self):
        return self.shelve("unarchive")

    def shelve(self, step):
        session = self.any_session()
        return self.step(session, "POST", f"/sessions/{step}", {"sessionIds": [session]})


if __name__ == "__main__":
    try:
        return_kills.main(*sys.argv[1:], cast=(ChangedSite, Changed, Changer))
    except FlowFailed as failure:
        sys.exit(f"return-changes: {failure}")
