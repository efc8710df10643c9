"""The flows every agent must get through behind turnd. Each takes a stage and starts its own daemons."""

from itertools import groupby

from flow import FlowFailed, Session, kill, same, saw, text_said, until


def vote_for(option):
    return {"outcome": {"outcome": "selected", "optionId": option}}


def in_order(kinds):
    """Kinds with repeats joined: how many chunks an answer has is the agent's business."""
    return [kind for kind, _ in groupby(kinds)]


def asked(events, prompt_id):
    """The id of the permission request of that prompt's turn; a turn that ends instead fails the flow."""
    request = events.within_turn(prompt_id, "a permission request", lambda f: f["type"] == "permission_request")
    return request["data"]["requestId"]


def one_turn(session, events, agent, vote=None):
    """A whole turn with a vote (allowed if not said otherwise); gives receipt and terminal."""
    receipt = session.prompt(agent.asking())
    request = asked(events, receipt["promptId"])
    session.ask(200, "POST", f"/permission/{request}", vote or vote_for(agent.allow))
    return receipt, events.terminal(receipt["promptId"])


def a_turn_is_watched_from_prompt_to_answer(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    receipt = session.prompt(agent.asking())
    prompt_id = receipt["promptId"]
    saw(
        "the prompt was admitted with an id and a cursor",
        prompt_id and isinstance(receipt["lastEventId"], int),
        receipt,
    )
    request = asked(events, prompt_id)
    saw("while it waits for a vote the poll says running", session.turn(prompt_id)[1]["state"] == "running")
    saw("the status counts the open question", session.ask(200, "GET", "/status")["pendingInteractionCount"] == 1)
    answer = session.call("POST", f"/permission/{request}", vote_for("no such option"))
    saw(
        "an option that was not offered is refused",
        answer[0] == 400 and answer[1]["code"] == "invalid_option_id",
        answer,
    )
    session.ask(200, "POST", f"/permission/{request}", vote_for(agent.allow))
    terminal = events.terminal(prompt_id)
    same("the turn completed under its own id", ending(terminal), ("turn_complete", "end_turn"))
    answer = session.call("POST", f"/permission/{request}", vote_for(agent.allow))
    saw("a late vote finds nothing to decide", answer[0] == 404, answer)
    events.of_type("permission_already_resolved")

    turn = [f for f in events.frames if receipt["lastEventId"] < f.get("id", 0) <= terminal["id"]]
    kinds = in_order(events.kinds(turn))
    same("its events came in order: " + " ".join(kinds), kinds, agent.order)
    ids = [f["id"] for f in events.frames if "id" in f]
    same("event ids have no gap", ids, list(range(1, len(ids) + 1)))
    saw("the agent's words arrived", agent.last_words in text_said(turn), text_said(turn))

    polled = session.turn(prompt_id)[1]
    same("the poll says completed, with the answer", settled(polled), ("completed", "end_turn"))
    saw("its text is the agent's", agent.last_words in polled.get("resultText", ""), polled)
    saw("the current turn is that one", session.turn("current")[1]["promptId"] == prompt_id)
    saw("an unknown prompt is not found", session.turn("nobody")[0] == 404)
    again = session.events(receipt["lastEventId"])
    again.terminal(prompt_id)
    replayed = [f["id"] for f in again.frames if f.get("id", 0) > receipt["lastEventId"]][: len(turn)]
    same("a second reader replays the turn from the receipt's cursor", replayed, [f["id"] for f in turn])
    same(
        "admission and outcome are on disk, in that order",
        facts(session),
        [(prompt_id, "in_flight"), (prompt_id, "completed")],
    )
    until("the turn result in the transcript", lambda: session.turn_result(prompt_id))
    saw("the transcript names the prompt's result", session.turn_result(prompt_id)["state"] == "completed")


def a_refusal_and_the_older_route(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    receipt = session.prompt(agent.asking())
    request = asked(events, receipt["promptId"])
    daemon.ask(200, "POST", f"/permission/{request}", vote_for(agent.reject), session.client)
    resolved = events.of_type("permission_resolved")
    saw("the older route took the vote", resolved["data"]["outcome"].get("optionId") == agent.reject, resolved)
    terminal = events.terminal(receipt["promptId"])
    same("a refused tool ends the turn, not the prompt", ending(terminal), ("turn_complete", "end_turn"))


def cancel_and_queue(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    running = session.prompt(agent.asking())["promptId"]
    asked(events, running)
    removed, waiting = (session.prompt(agent.asking())["promptId"] for _ in range(2))
    listed = [(p["promptId"], p["state"]) for p in session.ask(200, "GET", "/pending-prompts")["pendingPrompts"]]
    same("one prompt runs and two wait", listed, [(running, "running"), (removed, "queued"), (waiting, "queued")])
    saw(
        "a waiting prompt can be removed",
        session.ask(200, "DELETE", f"/pending-prompts/{removed}") == {"removed": True},
    )
    saw("its end was published at once", ending(events.terminal(removed)) == ("turn_complete", "cancelled"))
    session.ask(204, "POST", "/cancel", {})
    terminal = events.terminal(running)
    same("the cancelled prompt ended as cancelled", ending(terminal), ("turn_complete", "cancelled"))
    saw("with the time it took", "promptCancelled" in terminal["data"], terminal)
    kinds = in_order(events.kinds([f for f in events.frames if f.get("id", 0) <= terminal["id"]]))
    saw(
        "first the word that it is cancelled, then its question closed",
        follows(kinds, "prompt_cancelled", "permission_resolved", "turn_complete"),
        kinds,
    )
    polled = session.turn(running)[1]
    saw(
        "the poll says cancelled and gives no result",
        settled(polled) == ("cancelled", "cancelled") and "resultText" not in polled,
        polled,
    )
    request = asked(events, waiting)
    saw("the next prompt started by itself", bool(request))
    session.ask(200, "POST", f"/permission/{request}", vote_for(agent.allow))
    saw("and was not touched by the cancel", ending(events.terminal(waiting)) == ("turn_complete", "end_turn"))
    outcomes = {prompt: fact for prompt, fact in facts(session)}
    same(
        "the ledger holds all three outcomes",
        outcomes,
        {running: "cancelled", removed: "cancelled", waiting: "completed"},
    )
    session.ask(204, "DELETE", "")
    events.end()
    saw("closing ends the stream with session_closed", events.kinds()[-1] == "session_closed", events.kinds()[-3:])
    until("the agent to be gone", lambda: not stage.agent_processes())
    saw("and the agent with it")


def everything_is_killed_in_the_middle_of_a_turn(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    done = one_turn(session, events, agent)[0]["promptId"]
    gone = session.prompt(agent.asking())["promptId"]
    asked(events, gone)
    session.ask(204, "POST", "/cancel", {})
    events.terminal(gone)
    cut = session.prompt(agent.asking())["promptId"]
    asked(events, cut)
    until("the prompt in the transcript", lambda: cut in [r.get("daemonPromptId") for r in session.transcript()])
    stage.home.kill()
    stage.nothing_is_left()
    saw("the ledger ends with an open prompt", facts(session)[-1] == (cut, "in_flight"), facts(session))

    session = Session.load(stage.turnd(), session.id)
    told = session.terminals()
    wanted = [(done, "completed", "end_turn"), (gone, "cancelled", None), (cut, "interrupted", "daemon_lost")]
    same("the load tells all three: completed, cancelled, interrupted", told, wanted)
    said = [(u.get("_meta") or {}).get("promptId") for u in user_chunks(session)]
    saw("the history shows the three prompts under their ids", [s for s in said if s] == [done, gone, cut], said)
    polled = session.turn(cut)[1]
    saw(
        "the poll knows the cut prompt's end",
        polled.get("state") == "error" and polled["error"]["code"] == "daemon_lost",
        polled,
    )
    saw("and the finished one's", settled(session.turn(done)[1]) == ("completed", "end_turn"), session.turn(done))
    lines = len(session.ledger())
    session.ask(204, "DELETE", "")
    session = Session.load(stage.daemon, session.id)
    saw(
        "a second load adds nothing",
        len(session.ledger()) == lines and session.terminals() == wanted,
        session.terminals(),
    )
    events = session.events(session.opened["lastEventId"])
    saw("and the session goes on", ending(one_turn(session, events, agent)[1]) == ("turn_complete", "end_turn"))


def everything_is_killed_with_a_prompt_waiting(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    cut, never = (session.prompt(agent.asking())["promptId"] for _ in range(2))
    asked(events, cut)
    stage.home.kill()
    stage.nothing_is_left()
    session = Session.load(stage.turnd(), session.id)
    same("with two prompts open nothing is guessed", session.terminals(), [])
    saw("not even about the one that ran", session.turn(cut)[0] == 404 and session.turn(never)[0] == 404)


def only_the_daemon_is_killed(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    turn = agent.pausing()
    prompt_id = session.prompt(turn.text)["promptId"]
    go_on = turn.left_alone(session, events, prompt_id)
    daemon.kill()
    saw("the daemon is dead and the prompt open", facts(session)[-1] == (prompt_id, "in_flight"), facts(session))
    go_on()
    result = until("the host to record the end of the turn", lambda: session.turn_result(prompt_id))
    saw("the host let the turn end and wrote its result", result["state"] == "completed", result)
    stage.nothing_is_left()

    session = Session.load(stage.turnd(), session.id)
    told = session.terminals()
    same("the load gives the exact outcome, not an inference", told, [(prompt_id, "completed", "end_turn")])
    polled = session.turn(prompt_id)[1]
    saw(
        "the poll has the whole text, also what nobody was there to hear",
        turn.whole_text in polled.get("resultText", ""),
        polled,
    )
    lines = [u["content"].get("text", "") for u in chunks(session, "agent_message_chunk")]
    saw("and so has the history", turn.whole_text in "".join(lines), lines)


def the_daemon_is_killed_while_a_question_is_open(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    prompt_id = session.prompt(agent.asking())["promptId"]
    asked(events, prompt_id)
    daemon.kill()
    until("the host to record the end of the turn", lambda: session.turn_result(prompt_id))
    saw("the host answered for the people who could not, and the turn ended")
    stage.nothing_is_left()
    session = Session.load(stage.turnd(), session.id)
    same("the load gives its outcome", session.terminals(), [(prompt_id, "completed", "end_turn")])


def the_host_is_killed(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    running, queued = (session.prompt(agent.asking())["promptId"] for _ in range(2))
    asked(events, running)
    kill(stage.host_processes())
    for prompt_id, name in ((running, "running"), (queued, "queued")):
        same(f"the {name} prompt ended", ending(events.terminal(prompt_id)), ("turn_error", "channel_closed"))
    events.end()
    until("the agent to be gone", lambda: not stage.agent_processes())
    saw("the agent did not outlive its host")
    session = Session.load(daemon, session.id)
    events = session.events(session.opened["lastEventId"])
    same("the session goes on", ending(one_turn(session, events, agent)[1]), ("turn_complete", "end_turn"))


def a_prompt_is_sent_again(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    body = {"prompt": [{"type": "text", "text": agent.asking()}], "promptId": "order-66:first"}
    first = session.ask(202, "POST", "/prompt", body)
    same("the client's own id was taken", first["promptId"], "order-66:first")
    again = session.ask(202, "POST", "/prompt", body)
    same(
        "sent again while it runs, it is the same prompt",
        (again["promptId"], again["replayed"]),
        (first["promptId"], True),
    )
    request = asked(events, first["promptId"])
    session.ask(200, "POST", f"/permission/{request}", vote_for(agent.allow))
    events.terminal(first["promptId"])
    session.ask(202, "POST", "/prompt", body)
    stage.home.kill()
    session = Session.load(stage.turnd(), session.id)
    status, answer = session.call("POST", "/prompt", body)
    saw("after kill -9 and load it is still known", status == 202 and answer["replayed"], answer)
    other = body | {"prompt": [{"type": "text", "text": "something else"}]}
    status, answer = session.call("POST", "/prompt", other)
    saw("other words under that id are refused", status == 409 and answer["code"] == "prompt_id_conflict", answer)
    same("it ran once", facts(session), [(first["promptId"], "in_flight"), (first["promptId"], "completed")])


def a_second_daemon(stage):
    daemon = stage.turnd()
    try:
        stage.turnd()
    except FlowFailed as refusal:
        told = str(refusal)
    else:
        told = "it started"
    saw("a second daemon on the store is refused, and told who has it", str(daemon.process.pid) in told, told)
    saw("before it says that it listens", "http://" not in told, told)
    saw("the first one does not mind", daemon.ask(200, "GET", "/health") == {"status": "ok"})


def a_graceful_end(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    done = one_turn(session, events, agent)[0]["promptId"]
    running, queued = (session.prompt(agent.asking())["promptId"] for _ in range(2))
    asked(events, running)
    status = daemon.terminate()
    same("SIGTERM ends the daemon with status 0", status, 0)
    events.end()
    for prompt_id, name in ((running, "running"), (queued, "queued")):
        code = events.terminal(prompt_id)["data"].get("code")
        same(f"the {name} prompt's end was published with its code", code, "daemon_shutdown")
    saw("the stream ended with session_died", events.kinds()[-1] == "session_died", events.kinds()[-4:])
    wanted = {
        (done, "completed", "end_turn"),
        (running, "error", "daemon_shutdown"),
        (queued, "error", "daemon_shutdown"),
    }
    on_disk = {
        (r["promptId"], r["terminal"], r.get("code") or r.get("stopReason"))
        for r in session.ledger()
        if "terminal" in r
    }
    saw("all three outcomes are on disk", on_disk == wanted, sorted(on_disk))
    stage.nothing_is_left()
    session = Session.load(stage.turnd(), session.id)
    saw("and the next load tells them", set(session.terminals()) == wanted, session.terminals())


def the_agent_is_killed(stage):
    agent, daemon = stage.agent, stage.turnd()
    session = Session.create(daemon)
    events = session.events(0)
    done = one_turn(session, events, agent)[0]["promptId"]
    running, queued = (session.prompt(agent.asking())["promptId"] for _ in range(2))
    asked(events, running)
    kill(stage.agent_processes())
    for prompt_id, name in ((running, "running"), (queued, "queued")):
        terminal = events.terminal(prompt_id)
        same(f"the {name} prompt ended with channel_closed", ending(terminal), ("turn_error", "channel_closed"))
    events.end()
    saw("the session died and said so", events.kinds()[-1] == "session_died", events.kinds()[-4:])
    saw("the daemon lives", daemon.ask(200, "GET", "/health") == {"status": "ok"})
    session = Session.load(daemon, session.id)
    wanted = [
        (done, "completed", "end_turn"),
        (running, "error", "channel_closed"),
        (queued, "error", "channel_closed"),
    ]
    same("the load tells what became of each", session.terminals(), wanted)
    events = session.events(session.opened["lastEventId"])
    saw("and the session goes on", ending(one_turn(session, events, agent)[1]) == ("turn_complete", "end_turn"))


def ending(terminal):
    """(type, stop reason or code) of a terminal event."""
    return terminal["type"], terminal["data"].get("stopReason") or terminal["data"].get("code")


def settled(polled):
    """(state, stop reason or code) of a turn status."""
    return polled.get("state"), polled.get("stopReason") or polled.get("error", {}).get("code")


def facts(session):
    """The ledger in short: (prompt id, in_flight or terminal) a line."""
    return [(r["promptId"], r.get("state") or r["terminal"]) for r in session.ledger()]


def chunks(session, kind):
    frames = session.opened.get("compactedReplay", [])
    return [u for u in (f["data"].get("update", {}) for f in frames) if u.get("sessionUpdate") == kind]


def user_chunks(session):
    return chunks(session, "user_message_chunk")


def follows(kinds, *wanted):
    """Whether the wanted kinds stand in that order, other things between them or not."""
    rest = iter(kinds)
    return all(kind in rest for kind in wanted)


ALL = [
    ("a turn is watched from prompt to answer", a_turn_is_watched_from_prompt_to_answer),
    ("a refusal, and the older route", a_refusal_and_the_older_route),
    ("cancel, removal and the queue", cancel_and_queue),
    ("kill -9 of everything in the middle of a turn", everything_is_killed_in_the_middle_of_a_turn),
    ("kill -9 of everything with a prompt waiting", everything_is_killed_with_a_prompt_waiting),
    ("kill -9 of the daemon alone", only_the_daemon_is_killed),
    ("kill -9 of the daemon while a question is open", the_daemon_is_killed_while_a_question_is_open),
    ("kill -9 of the host", the_host_is_killed),
    ("kill -9 of the agent", the_agent_is_killed),
    ("a prompt is sent again", a_prompt_is_sent_again),
    ("a second daemon on the store", a_second_daemon),
    ("a graceful end", a_graceful_end),
]
