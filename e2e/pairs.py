"""Pairs of a ledger and a transcript as a daemon and a session could have left them, and worse: bytes, and no verdict.

A pair is a small life: prompts are admitted, queued, run and ended, the session writes its records, and somewhere it
all stops. Every pair has a few wild things of its own, which then happen often in it, and some pairs are damaged
afterwards. The same seed gives the same pairs.
"""

import datetime
import json
import random

from damage import damaged_ledger, damaged_transcript

SESSION_ID = "11111111-2222-4333-8444-555555555555"
WORKSPACE = "/ws"
START_MS = 1_795_977_220_000
ENDINGS = [
    {"terminal": "completed", "stopReason": "end_turn"},
    {"terminal": "completed", "stopReason": "end_turn"},
    {"terminal": "completed", "stopReason": "max_tokens"},
    {"terminal": "cancelled"},
    {"terminal": "error", "code": "-32603"},
    {"terminal": "error"},
    {"terminal": "error", "code": "prompt_deadline_exceeded"},
    {"terminal": "interrupted", "code": "daemon_lost"},
]
RESULTS = [
    {"state": "completed", "stopReason": "end_turn"},
    {"state": "completed", "stopReason": "refusal"},
    {"state": "completed"},
    {"state": "cancelled"},
    {"state": "error", "error": {"message": "no", "code": "boom"}},
    {"state": "error", "error": {"message": "no", "code": -32603}},
    {"state": "error", "error": {"message": "no"}},
    {"state": "later"},
]
ODD_TIMES = [
    None, "", "yesterday", 1_795_977_290_000, "2026-11-29 18:34:50Z", "2026-11-29T18:34:50.123",
    "Nov 29 2026 18:34:50 GMT", "2026-13-40T99:00:00.000Z", "2026-11-29T18:34:50+02:00", "2026-11-29T18:34:50.123456Z",
    "2026-11-30", "+002026-11-29T18:34:50.000Z",
]  # fmt: skip
WILD = {  # what may happen in a pair, and in how many of a hundred pairs it does
    "reminder": 7, "notification": 7, "system_user": 5, "mid_turn": 9, "realtime": 5, "slash": 7, "compression": 7,
    "goal": 10, "rewind": 4, "beside": 8, "odd_time": 6, "clock_step": 8, "still_clock": 8, "stamps": 14, "no_stamps": 25,
    "call_without_id": 6, "nothing_said": 4, "foreign_result": 6, "own_result": 9, "odd_role": 2, "thought": 5,
    "readmission": 4, "queued": 9, "odd_marker": 5, "bystander": 6, "late": 3, "lost_end": 3, "old": 2, "parallel": 20,
    "odd_id": 3,
}  # fmt: skip


def pairs(count, seed):
    """Gives (name, ledger bytes or None, transcript bytes or None), `count` times."""
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        life = Life(rng)
        life.live()
        yield f"g{number:06}", damaged_ledger(rng, life.ledger), damaged_transcript(rng, life.records)


def iso(at_ms):
    moment = datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03}Z"


class Life:
    """One session from its first prompt to the crash."""

    def __init__(self, rng):
        self.rng = rng
        self.wild = {name for name, percent in WILD.items() if rng.random() * 100 < percent}
        self.at_ms = -2_000_000 if "old" in self.wild else START_MS
        self.records, self.ledger = [], []
        self.tail = None  # the uuid that the next record names as its parent
        self.calls = 0
        self.waiting, self.admitted = [], set()

    def happens(self, name, chance=0.3):
        return name in self.wild and self.rng.random() < chance

    def tick(self):
        """Time goes on; where the clock is wild, not always."""
        if self.happens("clock_step", 0.15):
            self.at_ms -= self.rng.choice([1, 700, 5_000, 60_000])
        elif not self.happens("still_clock"):
            self.at_ms += self.rng.choice([1, 3, 40, 800, 2_500])
        return self.at_ms

    # The daemon's file.

    def admit(self, prompt):
        line = {"v": 1, "promptId": prompt, "state": "in_flight"}
        marker = self.tail if self.rng.random() < 0.6 else None
        if self.happens("odd_marker", 0.5):
            marker = self.rng.choice(["", 7, "nobody", self.some_uuid(), self.some_uuid()])
        if marker is not None:
            line["tailUuid"] = marker
        self.ledger.append({**line, "at": self.tick()})
        self.admitted.add(prompt)

    def end(self, prompt):
        if not self.happens("lost_end", 0.4):
            common = len(ENDINGS) if "late" in self.wild else 6
            self.ledger.append({"v": 1, "promptId": prompt, **self.rng.choice(ENDINGS[:common]), "at": self.tick()})

    def some_uuid(self):
        return self.rng.choice(self.records)["uuid"] if self.records else "r0"

    # The session's file.

    def write(self, kind, on_branch=True, **fields):
        """Writes a record behind the last one."""
        record = {"uuid": f"r{len(self.records)}", "parentUuid": self.tail, "sessionId": SESSION_ID}
        record |= {"timestamp": iso(self.tick()), "type": kind, "cwd": WORKSPACE, "version": "0.24.4", **fields}
        if self.happens("odd_time", 0.25):
            record["timestamp"] = self.rng.choice(ODD_TIMES)
            if record["timestamp"] is None:
                del record["timestamp"]
        self.records.append(record)
        if on_branch:
            self.tail = record["uuid"]

    def say(self, kind, role, *parts, **fields):
        if self.happens("odd_role", 0.3):
            role = self.rng.choice(["system", "tool", None, "model", "user"])
        if self.happens("nothing_said", 0.3):
            parts = ()
        self.write(kind, message={"role": role, "parts": list(parts)}, **fields)

    def note(self, subtype, payload=None, **fields):
        self.write("system", subtype=subtype, systemPayload=payload or {}, **fields)

    def ask(self, prompt, text="a question"):
        stamp = prompt
        if "no_stamps" in self.wild:
            stamp = None
        elif self.happens("stamps", 0.5):
            stamp = self.rng.choice([None, "p9", "p0", "p1", ""])
        self.say("user", "user", {"text": text}, **({} if stamp is None else {"daemonPromptId": stamp}))

    # A turn. Every yield is a place at which it can be cut, and at which something else can happen.

    def turn(self, prompt):
        goal = {"goalId": "g1", "turnId": f"t{prompt}", "revision": 3} if "goal" in self.wild else None
        permit = {"goalContext": goal} if goal else {}
        self.ask(prompt)
        yield
        if self.rng.random() < 0.5:
            self.note("file_history_snapshot", {"snapshots": []})
            yield
        for _ in range(self.rng.choice([0, 0, 1, 1, 2, 3])):
            yield from self.call_tools(permit)
        if self.happens("goal", 0.6):
            wrong = self.rng.random() < 0.2
            self.note("goal_turn_end", {"toolCallId": "c0" if wrong else f"c{self.calls}"}, **permit)
            yield
            if self.rng.random() < 0.6:
                return
        parts = [{"text": "an answer"}]
        if self.happens("thought", 0.7):
            parts = self.rng.choice([[{"text": "hm", "thought": True}], [{"text": "hm", "thought": True}, *parts]])
        self.say("assistant", "model", *parts, **permit)
        yield
        if self.rng.random() < 0.4:
            self.note("branch_checkpoint", {"v": 1, "assistantRecordUuid": self.tail})
            yield

    def call_tools(self, permit):
        ids = []
        for _ in range(self.rng.choice([1, 2, 3]) if "parallel" in self.wild else 1):
            self.calls += 1
            ids.append(f"c{self.calls}")
        if self.happens("call_without_id", 0.6):
            ids = [self.rng.choice([None, ""]) for _ in ids]
        calls = [{"functionCall": ({} if i is None else {"id": i}) | {"name": "ls", "args": {}}} for i in ids]
        before = [{"text": "I look"}] if self.rng.random() < 0.3 else []
        self.say("assistant", "model", *before, *calls, **permit)
        yield
        answers = [{"functionResponse": {"id": i, "name": "ls", "response": {"output": "x"}}} for i in ids]
        if self.rng.random() < 0.5:
            self.say("tool_result", "user", *answers, **permit)
            yield
            return
        for answer in answers:
            self.say("tool_result", "user", answer, **permit)
            yield

    def result(self, prompt):
        result = {"promptId": prompt, **self.rng.choice(RESULTS), "endedAt": self.at_ms}
        self.note("turn_result", result)

    # What else happens between two records of a turn, or after the last.

    def meanwhile(self, chance=0.2):
        for name in sorted(self.wild & INCIDENTS.keys()):
            if self.rng.random() < chance:
                INCIDENTS[name](self)

    def reminder(self):
        self.say("user", "user", {"text": "<system-reminder>mind the gap</system-reminder>"})

    def notification(self):
        stamp = {"subtype": "notification", "provenance": "system"} if self.rng.random() < 0.5 else {}
        self.say("user", "user", {"text": "<task-notification>done</task-notification>"}, **stamp)

    def system_user(self):
        subtype = self.rng.choice([{}, {"subtype": "cron"}, {"subtype": "goal_runtime"}])
        self.say("user", "user", {"text": "a job of the session"}, provenance="system", **subtype)
        if self.rng.random() < 0.4:
            self.say("assistant", "model", {"text": "done"}, provenance="assistant_output")

    def mid_turn(self):
        self.say("user", "user", {"text": "and another thing"}, subtype="mid_turn_user_message")

    def realtime(self):
        kind, role = self.rng.choice([("user", "user"), ("assistant", "model")])
        self.say(kind, role, {"text": "spoken"}, subtype="realtime_message")

    def slash(self):
        self.say("user", "user", {"text": "/about"})
        if self.rng.random() < 0.8:
            kind = self.rng.choice(["assistant", "assistant", "assistant", "info"])
            items = [{"type": kind, "text": "about"}] if self.rng.random() < 0.9 else []
            payload = {"phase": self.rng.choice(["result", "result", "result", "invocation"]), "rawCommand": "/about"}
            payload |= {"outputHistoryItems": items} | ({"sentToModel": True} if self.rng.random() < 0.1 else {})
            self.note("slash_command", payload)

    def compression(self):
        history = [{"role": "user", "parts": [{"text": "so far"}]}, {"role": "model", "parts": [{"text": "yes"}]}]
        snapshot = self.rng.choice([history, history, history[:1], [], None, 0, "", "x"])
        self.note("chat_compression", {"info": {"compressionStatus": 1}, "compressedHistory": snapshot})
        if self.rng.random() < 0.3:
            self.records[-1]["timestamp"] = self.rng.choice(["", "never", iso(START_MS - 1)])

    def rewind(self):
        """The session goes back to before some user record; what lies between leaves the branch."""
        users = [record for record in self.records if record["type"] == "user"]
        if users:
            self.tail = self.rng.choice(users)["parentUuid"]
            self.note("rewind", {"truncatedCount": 2})

    def beside(self):
        subtype = self.rng.choice(["session_artifact_event", "session_artifact_snapshot", "managed_session_event_v1"])
        if self.rng.random() < 0.5:
            self.note(subtype, on_branch=False)
        else:
            self.note(self.rng.choice(["ui_telemetry", "custom_title", "session_model", "never_heard_of", "goal_state"]))

    def foreign_result(self):
        self.result(self.rng.choice(["p9", "p0", "p1"]))

    def bystander(self):
        """Another program's turn in the same session: nobody admitted it."""
        self.say("user", "user", {"text": "from another window"})
        if self.rng.random() < 0.5:
            self.say("assistant", "model", {"text": "to another window"})

    # The whole.

    def live(self):
        count = self.rng.choice([1, 1, 2, 2, 2, 3, 4])
        prompts = [f"p{number}" for number in range(count)]
        if "odd_id" in self.wild:
            prompts[self.rng.randrange(count)] = self.rng.choice(["", " ", "é\U0001f600", "p" * 300, '"p"\n'])
        for number, prompt in enumerate(prompts):
            is_last = number == count - 1
            self.waiting = prompts[number + 1 :]
            if prompt not in self.admitted:
                self.admit(prompt)
            self.run(prompt, is_last)
            if self.happens("readmission", 0.5):
                self.admit(self.rng.choice(prompts[: number + 1]))
        if self.rng.random() < 0.3:
            self.meanwhile(0.4)

    def run(self, prompt, is_last):
        cut = self.rng.choice([0, 1, 1, 2, 2, 3, 4, 5, 6]) if self.rng.random() < (0.5 if is_last else 0.12) else 99
        for index, _ in enumerate(self.turn(prompt) if cut else ()):
            if index + 1 >= cut:
                break
            self.meanwhile()
            if self.waiting and self.happens("queued", 0.2):
                self.admit(self.waiting.pop(0))
        else:
            if not is_last or self.happens("own_result", 0.7):
                self.result(prompt)
        if not is_last or self.rng.random() < 0.04:
            self.end(prompt)


INCIDENTS = {
    name: getattr(Life, name)
    for name in (
        "reminder", "notification", "system_user", "mid_turn", "realtime", "slash", "compression", "rewind", "beside",
        "foreign_result", "bystander",
    )
}  # fmt: skip
