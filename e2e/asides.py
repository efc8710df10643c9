"""What is asked of a session beside its conversation, with the real qwen-code."""

import flows
from flow import Session, same, saw, until
from model import text_of


def beside_the_conversation(stage):
    session = Session.create(stage.turnd())
    events = session.events(0)
    events.terminal(session.prompt("do: say remember the heron")["promptId"])
    before = len(session.transcript())
    recap = session.ask(200, "POST", "/recap", {})
    saw("a summary is a text or null", recap["recap"] is None or isinstance(recap["recap"], str), recap)
    turn = stage.agent.pausing()
    prompt_id = session.prompt(turn.text)["promptId"]
    turn.paused(events, prompt_id)
    answer = session.ask(200, "POST", "/btw", {"question": "what?"})
    saw("a question beside a running prompt is answered", answer["answer"] is None or isinstance(answer["answer"], str), answer)
    status, text = session.call("POST", "/generate", {"prompt": "do: say a text"})
    kinds = [line[7:] for line in str(text).splitlines() if line.startswith("event: ")]
    saw("a text comes as a stream", status == 200 and kinds[0] == "started" and kinds[-1] == "done", (status, text))
    session.ask(204, "POST", "/cancel")
    events.terminal(prompt_id)
    said = " ".join(text_of(r["message"]) for r in session.transcript()[before:] if r.get("message", {}).get("parts"))
    saw("none of it is in the conversation", "what?" not in said, said)


def a_command(stage):
    session = Session.create(stage.turnd("--enable-session-shell"))
    events = session.events(0)
    events.terminal(session.prompt("do: say remember the heron")["promptId"])
    ended = session.ask(200, "POST", "/shell", {"command": "echo the ibis; exit 3"})
    same("a command ends", ended, {"exitCode": 3, "output": "the ibis\n", "aborted": False})
    nothing = session.ask(200, "POST", "/continue", {})
    same("it is no prompt that could be gone on with", nothing, {"accepted": False, "interruption": "none"})
    prompt_id = session.prompt("do: say and now")["promptId"]
    same("the next prompt runs", flows.ending(events.terminal(prompt_id)), ("turn_complete", "end_turn"))
    asked = next(r for r in reversed(stage.agent.model.requests) if "do: say and now" in str(r["messages"]))
    saw("and the agent's model is shown the command", "the ibis" in str(asked["messages"]), asked["messages"])
    stage.home.kill()
    stage.nothing_is_left()
    again = Session.load(stage.turnd("--enable-session-shell"), session.id)
    same("after kill -9 nothing is open", {t[1] for t in again.terminals()}, {"completed"})


def words_into_a_turn(stage):
    session = Session.create(stage.turnd())
    events = session.events(0)
    turn = stage.agent.pausing()
    prompt_id = session.prompt(turn.text)["promptId"]
    turn.paused(events, prompt_id)
    accepted = session.ask(200, "POST", "/mid-turn-message", {"message": "do: say the ibis", "messageId": "m-1"})
    same("words into a turn are accepted", accepted, {"accepted": True, "messageId": "m-1"})
    session.ask(204, "POST", "/cancel")
    events.terminal(prompt_id)
    ended = events.terminal("m-1")
    same("what the agent did not take becomes a prompt of that id", flows.ending(ended), ("turn_complete", "end_turn"))
    result = until("the agent's own record", lambda: session.turn_result("m-1"))
    same("which the agent records under it", result["state"], "completed")
    listed = session.ask(200, "GET", "/mid-turn-messages")
    same("and the list says so", listed["promotedMessageIds"], ["m-1"])


def a_turn_goes_on(stage):
    session = Session.create(stage.turnd())
    events = session.events(0)
    nothing = session.ask(200, "POST", "/continue", {})
    same("in a new session nothing goes on", nothing, {"accepted": False, "interruption": "none"})
    turn = stage.agent.pausing()
    cut = session.prompt(turn.text)["promptId"]
    turn.paused(events, cut)
    same("nor while a prompt runs", session.call("POST", "/continue", {})[0], 409)
    stage.home.kill()
    stage.nothing_is_left()
    turn.gate.opened.set()
    session = Session.load(stage.turnd(), session.id)
    same("after kill -9 the prompt was interrupted", session.terminals(), [(cut, "interrupted", "daemon_lost")])
    recovery = session.ask(200, "GET", "/context")["recovery"]
    same("and can be gone on with", recovery, {"kind": "interrupted_prompt", "canContinue": True})
    asked = [r for r in session.transcript() if r["type"] == "user"]
    events = session.events(session.opened["lastEventId"])
    receipt = session.ask(200, "POST", "/continue", {})
    same("it is", (receipt["accepted"], receipt["interruption"]), (True, "interrupted_prompt"))
    same("to its end", flows.ending(events.terminal(receipt["promptId"])), ("turn_complete", "end_turn"))
    result = until("the agent's own record", lambda: session.turn_result(receipt["promptId"]))
    same("which is the new prompt's", result["state"], "completed")
    same("and nobody asked anything", [r for r in session.transcript() if r["type"] == "user"], asked)
    same("the old one ended as it had", [f for f in flows.facts(session) if f[0] == cut][-1], (cut, "interrupted"))
    again = session.ask(200, "POST", "/continue", {})
    same("and nothing is left to go on with", again, {"accepted": False, "interruption": "none"})
    stage.home.kill()
    session = Session.load(stage.turnd(), session.id)
    ends = [(cut, "interrupted", "daemon_lost"), (receipt["promptId"], "completed", "end_turn")]
    same("a load says the same of both", session.terminals(), ends)


ALL = [
    ("a turn goes on", a_turn_goes_on),
    ("beside the conversation", beside_the_conversation),
    ("a command", a_command),
    ("words into a turn", words_into_a_turn),
]
