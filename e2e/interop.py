"""turnd and the real `qwen serve` on the same store, one after the other: each reads what the other wrote, and both
tell the same about every prompt."""

import flows
from agents import Qwen, SdkExampleInQwensStore
from flow import Session, same, saw, until
from model import text_of


def the_peer_writes_and_both_tell(stage):
    lived = a_life_and_a_kill(stage, stage.qwen_serve())
    both_tell_the_same(stage, lived, stage.qwen_serve, stage.turnd)


def turnd_writes_and_both_tell(stage):
    lived = a_life_and_a_kill(stage, stage.turnd())
    both_tell_the_same(stage, lived, stage.turnd, stage.qwen_serve)


def a_life_and_a_kill(stage, daemon):
    """Sessions in every state a kill can find them in. Gives {name: (session id, what the loads must tell)}."""
    settled, events = begin(daemon)
    whole = finished(settled, events)
    tool, _ = flows.one_turn(settled, events, stage.agent)
    cancelled = paused(stage, settled, events)
    settled.ask(204, "POST", "/cancel", {})
    events.terminal(cancelled)
    failed = settled.prompt("do: fail 400")["promptId"]
    events.terminal(failed)
    lived = {
        "all turns over": (settled, [
            (whole, "completed", "end_turn"), (tool["promptId"], "completed", "end_turn"),
            (cancelled, "cancelled", None), (failed, "error", "-32603"),
        ]),
    }  # fmt: skip

    session, events = begin(daemon)
    whole = finished(session, events)
    cut = paused(stage, session, events)
    lived["cut in its answer"] = session, [(whole, "completed", "end_turn"), (cut, "interrupted", "daemon_lost")]

    session, events = begin(daemon)
    whole = finished(session, events)
    cut = session.prompt(stage.agent.asking())["promptId"]
    flows.asked(events, cut)
    on_disk(session, cut, "assistant")
    lived["cut while it asked"] = session, [(whole, "completed", "end_turn"), (cut, "interrupted", "daemon_lost")]

    session, events = begin(daemon)
    cut = paused(stage, session, events)
    lived["cut in its first turn"] = session, [(cut, "interrupted", "daemon_lost")]

    session, events = begin(daemon)
    whole = finished(session, events)
    paused(stage, session, events)
    session.prompt("do: say never sent")
    lived["cut with one waiting"] = session, [(whole, "completed", "end_turn")]

    stage.home.kill()
    stage.nothing_is_left()
    return {name: (session.id, told) for name, (session, told) in lived.items()}


def begin(daemon):
    session = Session.create(daemon)
    return session, session.events(0)


def finished(session, events):
    prompt_id = session.prompt("do: say one whole answer")["promptId"]
    events.terminal(prompt_id)
    until("the turn result on disk", lambda: session.turn_result(prompt_id))
    return prompt_id


def paused(stage, session, events):
    """A prompt that is in the middle of its answer, and in the session file."""
    turn = stage.agent.pausing()
    prompt_id = session.prompt(turn.text)["promptId"]
    turn.paused(events, prompt_id)
    on_disk(session, prompt_id)
    return prompt_id


def on_disk(session, prompt_id, kind="user"):
    """Waits for a record of that kind in the turn of that prompt."""

    def written():
        turn = session.transcript()
        starts = [i for i, r in enumerate(turn) if r.get("daemonPromptId") == prompt_id]
        return starts and any(r["type"] == kind for r in turn[starts[0] :])

    until(f"the prompt's {kind} record on disk", written)


def both_tell_the_same(stage, lived, writer, reader):
    stage.keep_store()
    first = what_is_told(stage, lived, writer())
    end(stage)
    again = what_is_told(stage, lived, reader())
    end(stage)
    stage.put_store_back()
    second = what_is_told(stage, lived, reader())
    end(stage)
    for name, (_, wanted) in lived.items():
        same(f"{name}: the one that wrote it tells what happened", first[name], wanted)
        same(f"{name}: the other reads the lines the first appended", again[name], wanted)
        same(f"{name}: and comes to the same by itself", second[name], wanted)


def what_is_told(stage, lived, daemon):
    return {name: Session.load(daemon, session_id).terminals() for name, (session_id, _) in lived.items()}


def end(stage):
    saw("the daemon ended with status 0", stage.daemon.terminate() == 0)
    stage.nothing_is_left()


def an_answer_nobody_heard(stage):
    session, events = begin(stage.turnd())
    turn = stage.agent.pausing()
    prompt_id = session.prompt(turn.text)["promptId"]
    go_on = turn.left_alone(session, events, prompt_id)
    stage.daemon.kill()
    go_on()
    until("the turn to end without the daemon", lambda: session.turn_result(prompt_id))
    stage.nothing_is_left()
    stage.keep_store()
    told = Session.load(stage.qwen_serve(), session.id).terminals()
    same("the peer infers that it completed", told, [(prompt_id, "completed", "reconstructed_from_transcript")])
    end(stage)
    stage.put_store_back()
    told = Session.load(stage.turnd(), session.id).terminals()
    same("turnd knows how it completed", told, [(prompt_id, "completed", "end_turn")])
    end(stage)
    told = Session.load(stage.qwen_serve(), session.id).terminals()
    same("and the peer believes turnd", told, [(prompt_id, "completed", "end_turn")])


def one_session_in_turns(stage):
    session, events = begin(stage.qwen_serve())
    order = [finished(session, events)]
    for daemon in (stage.turnd, stage.qwen_serve, stage.turnd):
        end(stage)
        session = Session.load(daemon(), session.id)
        order.append(finished(session, session.events(session.opened["lastEventId"])))
    end(stage)
    session = Session.load(stage.qwen_serve(), session.id)
    wanted = [(prompt_id, "completed", "end_turn") for prompt_id in order]
    same("four turns by two daemons in turn are one ledger", session.terminals(), wanted)
    said = [(u.get("_meta") or {}).get("promptId") for u in flows.user_chunks(session)]
    saw("and one history", [s for s in said if s] == order, said)
    asked = [r for r in stage.agent.model.requests if "one whole answer" in text_of(r["messages"][-1])]
    answers = max(sum(m["role"] == "assistant" for m in r["messages"]) for r in asked)
    same("the model saw all of it at the fourth turn", answers, 3)


def the_peer_reads_what_the_host_recorded(stage):
    # One turn a session: this agent names its tool calls alike in every turn, and the peer then mixes them up.
    daemon = stage.turnd()
    finished_one, events = begin(daemon)
    whole = flows.one_turn(finished_one, events, stage.agent)[0]["promptId"]
    cut_one, events = begin(daemon)
    cut = cut_one.prompt(stage.agent.asking())["promptId"]
    flows.asked(events, cut)
    on_disk(cut_one, cut, "assistant")
    stage.home.kill()
    stage.keep_store()
    daemon = stage.turnd()
    ours = [Session.load(daemon, session.id) for session in (finished_one, cut_one)]
    wanted = [[(whole, "completed", "end_turn")], [(cut, "interrupted", "daemon_lost")]]
    same("turnd tells what happened", [session.terminals() for session in ours], wanted)
    end(stage)
    stage.put_store_back()
    peer = stage.qwen_serve()
    theirs = [Session.load(peer, session.id) for session in ours]
    same("the peer comes to the same by itself", [session.terminals() for session in theirs], wanted)
    same("and shows the same histories", [history(s) for s in theirs], [history(s) for s in ours])


def history(session):
    """What a load shows, in short: (kind, text or status) a frame."""
    updates = [f["data"]["update"] for f in session.opened["compactedReplay"]]
    words = [u["content"]["text"] if isinstance(u.get("content"), dict) else u.get("status") for u in updates]
    return [(u["sessionUpdate"], w) for u, w in zip(updates, words, strict=True)]


ALL = [
    ("interop: the peer writes, both tell", Qwen, the_peer_writes_and_both_tell),
    ("interop: turnd writes, both tell", Qwen, turnd_writes_and_both_tell),
    ("interop: an answer nobody heard", Qwen, an_answer_nobody_heard),
    ("interop: one session in turns", Qwen, one_session_in_turns),
    ("interop: a recorded session", SdkExampleInQwensStore, the_peer_reads_what_the_host_recorded),
]
