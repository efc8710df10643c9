"""The two real agents, each with what a flow must know to steer it."""

import itertools
import json

from flow import AGENTS, is_update
from model import Model

NODE = AGENTS / "node_modules" / ".bin" / "node"
NUMBERS = itertools.count(1)


class SdkExample:
    """The example agent of the official TypeScript SDK: a canned turn of about five seconds that asks permission once.
    It cannot load sessions and writes nothing, so the host writes its transcript."""

    transcript = "recorded"
    mark = "examples/agent.js"
    command = f"{NODE} {AGENTS}/node_modules/@agentclientprotocol/sdk/dist/examples/agent.js"
    allow, reject = "allow", "reject"
    order = (
        "user_message_chunk agent_message_chunk tool_call tool_call_update agent_message_chunk tool_call "
        "permission_request permission_resolved tool_call_update agent_message_chunk turn_complete"
    ).split()
    last_words = "The changes have been applied."

    def prepare(self, home):
        return home.environment()

    def close(self):
        pass

    def asking(self):
        """A prompt whose turn asks permission."""
        return "please tidy up"

    def pausing(self):
        return PauseAtPermission("please tidy up", self.allow)


class Qwen:
    """qwen-code, which writes its own session file; its model is ours."""

    transcript = "native"
    mark = "--acp"
    command = f"{NODE} {AGENTS}/node_modules/@qwen-code/qwen-code/cli.js --acp"
    serve = [NODE, AGENTS / "node_modules/@qwen-code/qwen-code/cli.js", "serve"]
    allow, reject = "proceed_once", "cancel"
    order = (
        "user_message_chunk tool_call permission_request permission_resolved tool_call_update "
        "agent_message_chunk turn_complete"
    ).split()
    last_words = "the shell said: "

    def __init__(self):
        self.model = Model()

    def prepare(self, home):
        settings = home.home / ".qwen" / "settings.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(json.dumps({"tools": {"approvalMode": "default"}}))
        home.store = home.home / ".qwen"
        return home.environment(OPENAI_API_KEY="x", OPENAI_BASE_URL=self.model.url, OPENAI_MODEL="fake")

    def close(self):
        self.model.close()

    def asking(self):
        return f"do: shell touch made-{next(NUMBERS)}.txt"

    def pausing(self):
        return PauseAtGate(self.model)


class SdkExampleInQwensStore(SdkExample):
    """The SDK's example with the store of qwen-code, so that the peer can read what the host recorded."""

    serve = Qwen.serve

    def __init__(self):
        self.qwen = Qwen()

    def prepare(self, home):
        return self.qwen.prepare(home)

    def close(self):
        self.qwen.close()


class PauseAtPermission:
    """A turn that stops where it asks permission, until the flow votes."""

    def __init__(self, text, allow):
        self.text, self.allow = text, allow

    def paused(self, events, prompt_id):
        question = events.within_turn(prompt_id, "its permission request", lambda f: f["type"] == "permission_request")
        return question["data"]["requestId"]

    def left_alone(self, session, events, prompt_id):
        """Brings the turn to where it needs nobody any more; gives what lets it go on."""
        vote = {"outcome": {"outcome": "selected", "optionId": self.allow}}
        session.ask(200, "POST", f"/permission/{self.paused(events, prompt_id)}", vote)
        events.update("tool_call_update", toolCallId="call_2", status="completed")
        return lambda: None

    whole_text = "The changes have been applied."


class PauseAtGate:
    """A turn whose model stops in the middle of its answer, until the flow opens the gate."""

    whole_text = "and on."

    def __init__(self, model):
        name = f"gate{next(NUMBERS)}"
        self.gate = model.gate(name)
        self.text = f"do: hold {name} some words first"

    def paused(self, events, prompt_id):
        said = lambda f: is_update(f, "agent_message_chunk") and "words first" in f["data"]["update"]["content"]["text"]
        events.within_turn(prompt_id, "its first words", said)

    def left_alone(self, session, events, prompt_id):
        self.paused(events, prompt_id)
        return self.gate.opened.set
