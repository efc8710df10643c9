#!/usr/bin/env python3
"""The real qwen-code behind turnd, in native mode: it writes its own session file, turnd the ledger beside it.
Its own daemon is the peer: see interop."""

import os
import signal

import asides
import cancels
import changes
import flows
import interop
import returned
from agents import Qwen
from flow import Session, run, same, saw, until
from model import text_of
from stage import on_a_stage


def a_model_that_fails(stage):
    session = Session.create(stage.turnd())
    events = session.events(0)
    prompt_id = session.prompt("do: fail 400")["promptId"]
    terminal = events.terminal(prompt_id)
    same("the failure is the prompt's end, with the agent's code", flows.ending(terminal), ("turn_error", "-32603"))
    saw("and the model's words", "the model refused with 400" in terminal["data"]["message"], terminal)
    saw("the status shows it", session.ask(200, "GET", "/status")["hasTurnError"] is True)
    saw("the ledger too", flows.facts(session)[-1] == (prompt_id, "error"), flows.facts(session))
    result = until("the agent's own record of it", lambda: session.turn_result(prompt_id))
    saw("the agent recorded the failure itself", result["state"] == "error", result)
    after = session.prompt("do: say better now")["promptId"]
    saw("the next turn is not touched", flows.ending(events.terminal(after)) == ("turn_complete", "end_turn"))
    saw("and clears the error", session.ask(200, "GET", "/status")["hasTurnError"] is False)


def the_agent_remembers(stage):
    session = Session.create(stage.turnd())
    events = session.events(0)
    events.terminal(session.prompt("do: say remember the heron")["promptId"])
    stage.home.kill()
    stage.nothing_is_left()
    session = Session.load(stage.turnd(), session.id)
    events = session.events(session.opened["lastEventId"])
    events.terminal(session.prompt("do: say and now")["promptId"])
    turn = next(r for r in reversed(stage.agent.model.requests) if "do: say and now" in text_of(r["messages"][-1]))
    answers = [text_of(m) for m in turn["messages"] if m["role"] == "assistant"]
    saw("after kill -9 and load the model is shown the earlier answer", "remember the heron" in answers, answers)


def a_daemon_that_comes_back_too_early(stage):
    session = Session.create(stage.turnd())
    events = session.events(0)
    turn = stage.agent.pausing()
    prompt_id = session.prompt(turn.text)["promptId"]
    go_on = turn.left_alone(session, events, prompt_id)
    stage.daemon.kill()
    daemon = stage.turnd("--session-restore-timeout-ms", "5000")  # else the load would wait for the old host
    load = ("POST", f"/session/{session.id}/load", {"cwd": str(stage.home.workspace)})
    refused = daemon.call(*load)
    conflict = refused[0] == 409 and refused[1]["code"] == "session_writer_conflict"
    saw("while the old host still writes, the session is not loaded", conflict, refused)
    same("and nothing is said about its prompt", flows.facts(session), [(prompt_id, "in_flight")])
    go_on()
    until("the turn to end and its host with it", lambda: daemon.call(*load)[0] == 200)
    told = Session.load(daemon, session.id).terminals()
    same("then it is, with the exact outcome", told, [(prompt_id, "completed", "end_turn")])


def a_tool_runs_when_the_session_is_closed(stage):
    session = Session.create(stage.turnd())
    events = session.events(0)
    prompt_id = session.prompt("do: shell touch begun && sleep 1000")["promptId"]
    request = flows.asked(events, prompt_id)
    session.ask(200, "POST", f"/permission/{request}", flows.vote_for(stage.agent.allow))
    until("the tool to run", lambda: (stage.home.workspace / "begun").exists())
    saw("the agent's tool runs", any("sleep 1000" in line for line in stage.home.processes().values()))
    session.ask(204, "DELETE", "")
    same("the close ended its prompt", flows.ending(events.terminal(prompt_id)), ("turn_complete", "cancelled"))
    until("the tool to be gone", lambda: list(stage.home.processes()) == [stage.daemon.process.pid])
    saw("nothing but the daemon is left, the tool neither")


def an_agent_that_does_not_stop(stage):
    session = Session.create(stage.turnd("--settle-grace-ms", "300"))
    events = session.events(0)
    events.terminal(session.prompt("do: say remember the heron")["promptId"])
    turn = stage.agent.pausing()
    prompt_id, behind = session.prompt(turn.text)["promptId"], session.prompt("do: say and now")["promptId"]
    turn.paused(events, prompt_id)
    old = stage.agent_processes()
    for pid in old:
        os.kill(pid, signal.SIGSTOP)  # deaf to the cancel, to the end of its input, and to SIGTERM
    session.ask(204, "POST", "/cancel")
    same("the cancelled prompt is cancelled", flows.ending(events.terminal(prompt_id)), ("turn_complete", "cancelled"))
    saw("by then the old agent is gone", not set(old) & set(stage.home.processes()), stage.home.processes())
    same("the prompt behind it runs", flows.ending(events.terminal(behind)), ("turn_complete", "end_turn"))
    replaced = events.wait("the news of it", lambda f: f["type"] == "agent_replaced")["data"]
    saw("the new agent has read the session", replaced["memory"] in ("resumed", "loaded"), replaced)
    asked = next(r for r in reversed(stage.agent.model.requests) if "do: say and now" in text_of(r["messages"][-1]))
    answers = [text_of(m) for m in asked["messages"] if m["role"] == "assistant"]
    saw("its model is shown the earlier answer", "remember the heron" in answers, answers)
    result = until("the agent's own record", lambda: session.turn_result(behind))
    same("and its file goes on", result["state"], "completed")


OWN = [
    ("an agent that does not stop", an_agent_that_does_not_stop),
    ("a tool runs when the session is closed", a_tool_runs_when_the_session_is_closed),
    ("a model that fails", a_model_that_fails),
    ("the agent remembers after a kill", the_agent_remembers),
    ("a daemon that comes back too early", a_daemon_that_comes_back_too_early),
]

if __name__ == "__main__":
    own = [(title, on_a_stage(Qwen, flow)) for title, flow in flows.ALL + OWN + asides.ALL + returned.ALL]
    run("qwen", own + [(title, on_a_stage(agent, flow)) for title, agent, flow in cancels.ALL + changes.ALL + interop.ALL])
