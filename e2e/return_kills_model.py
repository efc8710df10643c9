"""What must hold of return requests through all kills: the small model that `return_kills.py` plays against.

Every id that was promised ends in one terminal with one event; what was told once is told so ever after; numbers have no gaps and are
never used twice; the agents' own journal has each prompt at most once, and none that was said not to be written; a final message
stands only with `completed` and is the answer to that very prompt.
"""

import collections
import hashlib
import json
import threading

from flow import FlowFailed, brief

TERMINALS = {"completed", "aborted", "timed_out", "cancelled", "delivery_failed", "indeterminate"}
BEAT_MS = 50  # between two numbers of the agent's `slow`


def fail(sentence, got=None):
    raise FlowFailed(f"expected that {sentence}" + ("" if got is None else f"\n    got: {brief(got)}"))


def answer_to(text):
    """What the built-in agent says to a prompt that it ends by itself, else None."""
    word, _, rest = text.partition(" ")
    if word == "slow":
        beats = -(-int(rest) // BEAT_MS)
        return "".join(f"{beat} " for beat in range(1, beats + 1)) + "done"
    if word == "long":
        return ("0123456789" * (int(rest) // 10 + 1))[: int(rest)]
    return {"think": f"echo: {rest}", "say": f"echo: {text}"}.get(word)


class Model:
    def __init__(self):
        self.lock = threading.RLock()
        self.bodies = {}  # id → (session, body), as it is always sent
        self.prompts = {}  # id → the prompt id of its receipt, from when it was promised
        self.ends = {}  # id → its terminal, as it was told first
        self.lines = {}  # number → the line of the stream, byte for byte

    # What clients hear.

    def posting(self, id, session, body):
        with self.lock:
            self.bodies[id] = (session, body)

    def any_id(self, chance, last=40):
        with self.lock:
            ids = list(self.bodies)
        return chance.choice(ids[-last:]) if ids else None

    def known(self, id):
        """Whether it was promised and whether it has ended, to be asked before a call whose answer must agree."""
        with self.lock:
            return id in self.prompts, id in self.ends

    def promised(self, id, receipt, had_ended):
        """A receipt was the answer to its submission."""
        with self.lock:
            if self.prompts.setdefault(id, receipt["prompt_id"]) != receipt["prompt_id"]:
                fail(f"{id} keeps its prompt", [self.prompts[id], receipt])
        self.shown(receipt, had_ended)

    def shown(self, receipt, had_ended):
        id, state = receipt["request_id"], receipt["state"]
        if receipt["reply_pending"] == (state in TERMINALS):
            fail("a receipt is pending or terminal", receipt)
        if state in TERMINALS:
            self.ended(id, receipt["terminal"])
        elif had_ended:
            fail(f"{id} has ended for good", receipt)

    def ended(self, id, terminal):
        with self.lock:
            if self.ends.setdefault(id, terminal) != terminal:
                fail(f"the terminal of {id} never changes", [self.ends[id], terminal])

    def line(self, line):
        """A line of the stream. Gives its number and its cursor."""
        event = json.loads(line)
        number = event["terminal_event_sequence"]
        with self.lock:
            if self.lines.setdefault(number, line) != line:
                fail(f"number {number} is used once", [self.lines[number], line])
        self.ended(event["request_id"], event)
        return number, event["cursor"]

    # At the end.

    def holds(self, requests, events, journal):
        """Checks all that is left of one store: its requests, its stream from the beginning, and what the agents heard."""
        by_id = {request["request_id"]: request for request in requests}
        for event in events:
            self.line(event)
        if sorted(self.lines) != list(range(1, len(events) + 1)) or len(events) != len(by_id):
            numbers = sorted(self.lines)
            fail("numbers are without gaps, one for each request", [len(events), len(by_id), numbers[:1], numbers[-1:]])
        told = [json.loads(line)["request_id"] for line in self.lines.values()]
        if sorted(told) != sorted(by_id):
            fail("each request has one event", [id for id, count in collections.Counter(told).items() if count > 1])
        lost = [id for id in self.prompts if id not in by_id]
        if lost:
            fail("no promised request is lost", lost)
        heard = collections.Counter(journal)
        foreign = set(heard) - {request["prompt_id"] for request in requests}
        if foreign:
            fail("the agents hear no prompt but those of requests", sorted(foreign))
        for request in requests:
            self.one_holds(request, heard[request["prompt_id"]])
        return collections.Counter(request["state"] for request in requests), sum(heard.values())

    def one_holds(self, request, heard):
        id, state, terminal = request["request_id"], request["state"], self.ends[request["request_id"]]
        if (terminal["state"], terminal["prompt_id"]) != (state, self.prompts.get(id, terminal["prompt_id"])):
            fail("receipt and event agree", [request, terminal])
        if heard > (request["input_written"] != "no"):
            fail(f"{id} was sent at most once, and not when it was not written", [heard, request])
        if (terminal.get("final_message") is not None) != (state == "completed"):
            fail("a final message stands with `completed` and nowhere else", terminal)
        if state == "completed":
            wanted = answer_to(self.bodies[id][1]["prompt"][0]["text"])
            if heard != 1 or terminal["final_message"] != wanted:
                fail(f"the final message of {id} is the answer to its own prompt, {wanted!r}", [heard, terminal])
            if terminal["final_sha256"] != hashlib.sha256(wanted.encode()).hexdigest():
                fail("the hash is the message's", terminal)
