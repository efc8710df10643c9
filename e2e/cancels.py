"""A cancel that was answered 204, a kill -9 of daemon, host and agent at once, and what the next load tells: with the real
qwen-code, which writes its own session file, and with its own daemon over the same files."""

import json
import os
import signal

import flows
from agents import Qwen
from flow import Session, same, saw, until
from interop import begin, end, finished, on_disk, paused


def told(session, prompt_id):
    """How a load speaks of a prompt: its terminal, its reason with `?` or nothing, and `wished` where it shows the cancel."""
    entries = session.opened.get("promptTerminals", []) + session.opened.get("unresolvedPrompts", [])
    own = [entry for entry in entries if entry["promptId"] == prompt_id]
    words = [entry.get("terminal") or entry["reason"] + "?" for entry in own]
    return " ".join(words + ["wished" for entry in own if "cancelRequestedAt" in entry])


def freeze(processes):
    """They hear nothing any more, and what they are told stays in their pipes."""
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)


def cancelled(session):
    session.ask(204, "POST", "/cancel", {})


def twins(stage, daemon):
    """Two sessions in the middle of an answer. Gives {name: (session, prompt, what the load tells)}."""
    lived = {}
    for name, word in (("in its answer", "interrupted"), ("in its answer, cancelled", "cancelled")):
        session, events = begin(daemon)
        finished(session, events)
        lived[name] = session, paused(stage, session, events), word
    return lived


def lives(stage, daemon):
    """Sessions with a running prompt, the cancelled ones and their uncancelled twins."""
    lived = twins(stage, daemon)

    session, events = begin(daemon)
    prompt_id = session.prompt(stage.agent.asking())["promptId"]
    flows.asked(events, prompt_id)
    on_disk(session, prompt_id, "assistant")
    lived["while it asks, cancelled"] = session, prompt_id, "cancelled"

    session, events = begin(daemon)
    lived["with one waiting, cancelled"] = session, paused(stage, session, events), "cancelled"
    lived["the one that waits"] = session, session.prompt("do: say never sent")["promptId"], None
    return lived


def a_cancel_that_the_agent_never_heard(stage):
    lived = lives(stage, stage.turnd())
    freeze(stage.agent_processes())
    for name, (session, _, _) in lived.items():
        if "cancelled" in name:
            cancelled(session)
    killed(stage)
    stage.keep_store()
    check_told(stage, lived, stage.turnd())
    wished = {session.id for name, (session, _, _) in lived.items() if "cancelled" in name}
    shown = {session.id: Session.load(stage.daemon, session.id).terminals() for session, _, _ in lived.values()}
    end(stage)
    peer = stage.qwen_serve()
    same("the peer tells what turnd wrote down", of_all(peer, shown), shown)
    end(stage)
    the_peer_reads_them_first(stage, lived, wished)


def killed(stage):
    stage.home.kill()
    stage.nothing_is_left()


def of_all(daemon, sessions):
    return {session_id: Session.load(daemon, session_id).terminals() for session_id in sessions}


def check_told(stage, lived, daemon):
    loaded = {session.id: Session.load(daemon, session.id) for session, _, _ in lived.values()}
    for name, (session, prompt_id, word) in lived.items():
        got = told(loaded[session.id], prompt_id)
        if word is None:
            saw(f"{name}: nothing is known of it, and no cancel", got.endswith("?"), got)
        else:
            same(f"{name}: {word}", got, word)
    asked = [request for request in stage.agent.model.requests if "never sent" in json.dumps(request["messages"])]
    same("what waited was not sent", asked, [])


def the_peer_reads_them_first(stage, lived, wished):
    """The files of the crash: the peer's verdicts with the wishes in the ledgers, and without; then turnd's, behind the peer's."""
    stage.put_store_back()
    stage.keep_store()
    ids = {session.id for session, _, _ in lived.values()}
    for session in {session.id: session for session, _, _ in lived.values()}.values():
        ledger = session.file(".ledger.jsonl")
        lines = ledger.read_text().splitlines(keepends=True)
        kept = [line for line in lines if '"cancel_requested"' not in line]
        same("a wish is on disk where a cancel was answered", len(lines) - len(kept), int(session.id in wished))
        ledger.write_text("".join(kept))
    without = of_all(stage.qwen_serve(), ids)
    end(stage)
    stage.put_store_back()
    peer = stage.qwen_serve()
    same("the peer reads a ledger with wishes as one without", of_all(peer, ids), without)
    same("nor does it say a word about one", [line for line in peer.log if "cancel_requested" in line], [])
    end(stage)
    daemon = stage.turnd()
    for name, (session, prompt_id, word) in lived.items():
        if word is not None and without[session.id] and without[session.id][-1][0] == prompt_id:
            wish = " wished" if word == "cancelled" else ""
            got = told(Session.load(daemon, session.id), prompt_id)
            same(f"{name}: turnd keeps the peer's word, and shows a cancel", got, without[session.id][-1][1] + wish)


def a_cancel_and_a_kill_at_once(stage):
    """As above, with an agent that may hear the cancel: the kill comes right behind the 204."""
    lived = twins(stage, stage.turnd())
    session, prompt_id, _ = lived["in its answer, cancelled"]
    cancelled(session)
    killed(stage)
    daemon = stage.turnd()
    got = told(Session.load(daemon, session.id), prompt_id)
    saw(f"the cancelled one is {got}", got in ("cancelled", "answered_or_cancelled? wished", "error wished"), got)
    session, prompt_id, word = lived["in its answer"]
    same("its twin is not", told(Session.load(daemon, session.id), prompt_id), word)


def a_cancel_behind_the_whole_answer(stage):
    session, events = begin(stage.turnd())
    turn = stage.agent.pausing()
    prompt_id = session.prompt(turn.text)["promptId"]
    go_on = turn.left_alone(session, events, prompt_id)
    freeze(stage.host_processes())
    go_on()
    until("the agent to write down its end", lambda: session.turn_result(prompt_id))
    cancelled(session)
    killed(stage)
    session = Session.load(stage.turnd(), session.id)
    same("the agent's own record counts, and the cancel is shown beside it", told(session, prompt_id), "completed wished")
    same("with the agent's word", session.terminals(), [(prompt_id, "completed", "end_turn")])
    end(stage)
    told_by_peer = Session.load(stage.qwen_serve(), session.id).terminals()
    same("the peer says the same", told_by_peer, [(prompt_id, "completed", "end_turn")])


ALL = [
    ("a cancel, then kill -9 of everything, the agent deaf", Qwen, a_cancel_that_the_agent_never_heard),
    ("a cancel, then kill -9 of everything at once", Qwen, a_cancel_and_a_kill_at_once),
    ("a cancel behind the whole answer, then kill -9 of everything", Qwen, a_cancel_behind_the_whole_answer),
]
