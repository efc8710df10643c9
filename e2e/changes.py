"""What a client does to a whole session: a rewind, a branch, the archive, a delete. With the real qwen-code, which writes its own session
file, and with its own daemon over the same files."""

import json
import urllib.parse

from agents import Qwen
from flow import Session, brief, is_update, same, saw, until
from interop import begin, end
from model import text_of


def said(session, events, words):
    """A whole turn in which the agent says those words; the prompt's id, once the agent's own record of it is on disk."""
    prompt_id = session.prompt(f"do: say {words}")["promptId"]
    terminal = events.terminal(prompt_id)
    same(f"a turn about {words} ended well", terminal["data"].get("stopReason"), "end_turn")
    until("the agent's own record of it", lambda: session.turn_result(prompt_id))
    return prompt_id


def shown_to_the_model(stage, words):
    """All messages of the newest request that asked for those words."""
    asked = lambda request: f"do: say {words}" in text_of(request["messages"][-1])
    return json.dumps(next(filter(asked, reversed(stage.agent.model.requests)))["messages"])


def told(session):
    """The conversation as a load shows it: questions and answers in their order, pieces of one answer joined."""
    lines = []
    for frame in session.opened["compactedReplay"]:
        for kind, who in (("user_message_chunk", "user"), ("agent_message_chunk", "agent")):
            words = frame["data"]["update"]["content"].get("text", "") if is_update(frame, kind) else ""
            if not words:
                continue
            if lines and lines[-1][0] == who:
                lines[-1] = who, lines[-1][1] + words
            else:
                lines.append((who, words))
    return lines


def talk(*about):
    """The conversation that those turns are."""
    return [line for words in about for line in (("user", f"do: say {words}"), ("agent", words))]


def polls(session, *prompts):
    """What the polls of these prompts say: a state, or a status."""
    answers = [session.turn(prompt_id) for prompt_id in prompts]
    return [body["state"] if status == 200 else status for status, body in answers]


def a_rewind_and_a_kill(stage):
    session, events = begin(stage.turnd())
    stays, goes = said(session, events, "the heron"), said(session, events, "the ibis")
    places = session.ask(200, "GET", "/rewind/snapshots")["snapshots"]
    same("the places have our ids", [place.get("daemonPromptId") for place in places], [stays, goes])
    rewound = session.ask(200, "POST", "/rewind", {"promptId": goes})
    same("a rewind takes our id", (rewound["rewound"], rewound["targetTurnIndex"]), (True, 1))
    same("its readers hear of it under that id", events.of_type("session_rewound")["data"]["promptId"], goes)
    same("what was taken back is no longer polled", polls(session, stays, goes), ["completed", 404])
    after = said(session, events, "the crane")
    shown = shown_to_the_model(stage, "the crane")
    saw("the model is shown what stays and not what went", "the heron" in shown and "ibis" not in shown, shown)
    stage.home.kill()
    stage.nothing_is_left()
    stage.keep_store()

    session = Session.load(stage.turnd(), session.id)
    same("after kill -9 a load shows the active branch only", told(session), talk("the heron", "the crane"))
    same("and the polls know no more than before", polls(session, stays, goes, after), ["completed", 404, "completed"])
    ours = session.terminals()
    same("that the prompt ended is still true", [t[0] for t in ours], [stays, goes, after])
    said(session, session.events(session.opened["lastEventId"]), "the stork")
    shown = shown_to_the_model(stage, "the stork")
    saw("the model of the next life too", "the crane" in shown and "ibis" not in shown, shown)
    another_turn_is_not_taken_back(session, after)
    session.ask(200, "POST", "/rewind", {"promptId": after, "rewindFiles": False})
    same("a prompt of the life before can be taken back", polls(session, stays, after), ["completed", 404])
    end(stage)
    stage.put_store_back()
    theirs = Session.load(stage.qwen_serve(), session.id)
    same("the peer tells the same of the same files", theirs.terminals(), ours)
    same("and shows the same", told(theirs), talk("the heron", "the crane"))


def another_turn_is_not_taken_back(session, prompt_id):
    """qwen-code 0.24.4 goes on counting a turn that was taken back, so that its name for a later one leads to yet another."""
    rewinds = lambda: sum(record.get("subtype") == "rewind" for record in session.transcript())
    before = rewinds()
    places = session.ask(200, "GET", "/rewind/snapshots")["snapshots"]
    saw("a place that the agent counts otherwise has no id of ours", prompt_id not in str(places), places)
    status, body = session.call("POST", "/rewind", {"promptId": prompt_id})
    same("nor is the agent sent there by it", (status, body["code"]), (501, "rewind_not_supported"))
    saw("and told what it can do", "rewindFiles" in body["details"], body)
    same("nothing was taken back", (rewinds(), polls(session, prompt_id)), (before, ["completed"]))


def a_second_rewind(stage):
    session, events = begin(stage.turnd())
    stays, goes = said(session, events, "the heron"), said(session, events, "the ibis")
    session.ask(200, "POST", "/rewind", {"promptId": goes})
    after, last = said(session, events, "the crane"), said(session, events, "the stork")
    another_turn_is_not_taken_back(session, after)
    session.ask(200, "POST", "/rewind", {"promptId": after, "rewindFiles": False})
    same("a second rewind takes back what it names", polls(session, stays, goes, after, last), ["completed", 404, 404, 404])
    said(session, events, "the swan")
    shown = shown_to_the_model(stage, "the swan")
    saw("the model knows the first turn only", "heron" in shown and not any(w in shown for w in ("ibis", "crane", "stork")), shown)


def a_rewind_to_the_beginning(stage):
    session, events = begin(stage.turnd())
    first, second = said(session, events, "the heron"), said(session, events, "the ibis")
    session.ask(200, "POST", "/rewind", {"promptId": first})
    same("nothing is left to poll", polls(session, first, second), [404, 404])
    again = session.call("POST", "/rewind", {"promptId": second})
    same("what went cannot be taken back again", (again[0], again[1]["code"]), (400, "invalid_rewind_target"))
    said(session, events, "the crane")
    shown = shown_to_the_model(stage, "the crane")
    saw("the model knows neither", "heron" not in shown and "ibis" not in shown, shown)
    stage.home.kill()
    session = Session.load(stage.turnd(), session.id)
    same("nor does a load", told(session), talk("the crane"))


def a_branch(stage):
    daemon = stage.turnd()
    source, events = begin(daemon)
    prompts = [said(source, events, words) for words in ("the heron", "the ibis", "the crane")]
    whole = Session(daemon, source.ask(201, "POST", "/branch", {"name": "all of it"}))
    part = source.ask(201, "POST", "/branch", {"name": "all of it", "atRecordId": prompts[1]})
    names = whole.opened["displayName"], part["displayName"]
    same("each copy has a name of its own", names, ("all of it(1)", "all of it(2)"))
    part = Session.load(daemon, part["sessionId"])
    same("a copy of the whole shows all of it", told(whole), talk("the heron", "the ibis", "the crane"))
    same("one at a prompt ends with its turn", told(part), talk("the heron", "the ibis"))
    for name, copy in (("whole", whole), ("part", part)):
        same(f"{name}: the source's prompts are nobody's there", polls(copy, *prompts), [404, 404, 404])
        same(f"{name}: and no end of one is told", copy.opened.get("promptTerminals", []), [])
    own = [said(copy, copy.events(copy.opened["lastEventId"]), words) for copy, words in ((whole, "one"), (part, "two"))]
    shown = shown_to_the_model(stage, "one")
    saw("the model of the whole copy is shown all of it", all(w in shown for w in ("heron", "ibis", "crane")), shown)
    shown = shown_to_the_model(stage, "two")
    saw("that of the other only its part", "ibis" in shown and "crane" not in shown, shown)
    same("the source's prompts are as they were", polls(source, *prompts), ["completed"] * 3)
    same("and the copies' prompts are not its own", polls(source, *own), [404, 404])
    ids = source.id, whole.id, part.id
    stage.home.kill()
    stage.nothing_is_left()
    the_peer_tells_the_same(stage, ids, prompts, own)


def the_peer_tells_the_same(stage, ids, prompts, own):
    """Source and copies, loaded by turnd and by the peer from the same files."""
    stage.keep_store()
    daemon = stage.turnd()
    ours = [Session.load(daemon, session_id) for session_id in ids]
    about = ("the heron", "the ibis", "the crane")
    wanted = [talk(*about), talk(*about, "one"), talk(*about[:2], "two")]
    same("after kill -9 each shows its own", [told(session) for session in ours], wanted)
    ends = [[(p, "completed", "end_turn") for p in turns] for turns in (prompts, own[:1], own[1:])]
    same("and tells the ends of its own prompts", [session.terminals() for session in ours], ends)
    same("the copies still know none of the source's", [polls(s, *prompts) for s in ours[1:]], [[404] * 3] * 2)
    end(stage)
    stage.put_store_back()
    peer = stage.qwen_serve()
    theirs = [Session.load(peer, session_id) for session_id in ids]
    same("the peer shows the same of the same files", [told(session) for session in theirs], wanted)
    same("and tells the same", [session.terminals() for session in theirs], ends)
    for session, words in zip(theirs[1:], ("the stork", "the swan"), strict=True):
        said(session, session.events(session.opened["lastEventId"]), words)
    shown = shown_to_the_model(stage, "the swan")
    saw("and goes on in a copy", "two" in shown and "crane" not in shown, shown)


def listed(daemon, state):
    """The ids that a daemon lists as active, or as archived."""
    folder = urllib.parse.quote(str(daemon.home.workspace), safe="")
    page = daemon.ask(200, "GET", f"/workspace/{folder}/sessions?archiveState={state}")
    return [entry["sessionId"] for entry in page["sessions"]]


def batch(daemon, act, session_id):
    """The lists of a batch's answer that are not empty."""
    answer = daemon.ask(200, "POST", f"/sessions/{act}", {"sessionIds": [session_id]})
    return {name: entries for name, entries in answer.items() if entries}


def put_away(daemon, name, session_id):
    """Archives a session and sees that the daemon takes it for archived."""
    same(f"{name} puts it away", batch(daemon, "archive", session_id), {"archived": [session_id]})
    is_away(daemon, name, session_id)


def is_away(daemon, name, session_id):
    same(f"{name} lists it as archived", listed(daemon, "archived"), [session_id])
    same(f"{name} does not list it as active", listed(daemon, "active"), [])
    status, body = daemon.call("POST", f"/session/{session_id}/load", {"cwd": str(daemon.home.workspace)})
    same(f"{name} does not load it", (status, body["code"]), (409, "session_archived"))


def taken_back(daemon, name, session_id, wanted):
    """Takes it back, loads it, and gives the session."""
    same(f"{name} takes it back", batch(daemon, "unarchive", session_id), {"unarchived": [session_id]})
    session = Session.load(daemon, session_id)
    same(f"{name} tells what became of its prompts", session.terminals(), wanted)
    same(f"{name} lists it as active again", (listed(daemon, "active"), listed(daemon, "archived")), ([session_id], []))
    return session


def files_of(stage, session_id):
    """Every path of the store with that id in its name."""
    return sorted(str(path.relative_to(stage.home.store)) for path in stage.home.store.rglob(f"*{session_id}*"))


def the_archive(stage):
    daemon = stage.turnd()
    session, events = begin(daemon)
    wanted = [(said(session, events, "the heron"), "completed", "end_turn")]
    put_away(daemon, "turnd", session.id)
    events.end()
    same("its readers were told", events.kinds()[-1], "session_closed")
    session = taken_back(daemon, "turnd", session.id, wanted)
    prompt_id = said(session, session.events(session.opened["lastEventId"]), "the ibis")
    wanted.append((prompt_id, "completed", "end_turn"))
    put_away(daemon, "turnd", session.id)
    end(stage)

    peer = stage.qwen_serve()
    is_away(peer, "the peer", session.id)
    session = taken_back(peer, "the peer", session.id, wanted)
    prompt_id = said(session, session.events(session.opened["lastEventId"]), "the crane")
    wanted.append((prompt_id, "completed", "end_turn"))
    put_away(peer, "the peer", session.id)
    end(stage)

    daemon = stage.turnd()
    is_away(daemon, "turnd", session.id)
    session = taken_back(daemon, "turnd", session.id, wanted)
    same("with all three turns", told(session), talk("the heron", "the ibis", "the crane"))
    same("and the polls of them", polls(session, *[t[0] for t in wanted]), ["completed"] * 3)
    prompt_id = said(session, session.events(session.opened["lastEventId"]), "the stork")
    shown = shown_to_the_model(stage, "the stork")
    saw("the model is shown all of it", all(w in shown for w in ("heron", "ibis", "crane")), shown)


def a_delete(stage):
    daemon = stage.turnd()
    kept, kept_events = begin(daemon)
    said(kept, kept_events, "the crane")
    live, events = begin(daemon)
    said(live, events, "the heron")
    away, away_events = begin(daemon)
    said(away, away_events, "the ibis")
    same("one is put away", batch(daemon, "archive", away.id), {"archived": [away.id]})
    for name, session in (("one that lives", live), ("one that was put away", away)):
        saw(f"{name} has files", files_of(stage, session.id))
        same(f"{name} is removed", batch(daemon, "delete", session.id), {"removed": [session.id]})
        left = files_of(stage, session.id)
        saw(f"{name}: no transcript, ledger or sidecar is left", not [p for p in left if "chats" in p], left)
        same(f"{name}: nothing at all is left", left, [])
        same(f"{name}: a second delete finds nothing", batch(daemon, "delete", session.id), {"notFound": [session.id]})
    same("another session is as it was", listed(daemon, "active"), [kept.id])
    end(stage)
    peer = stage.qwen_serve()
    same("the peer finds neither", (listed(peer, "active"), listed(peer, "archived")), ([kept.id], []))
    status, body = peer.call("POST", f"/session/{live.id}/load", {"cwd": str(stage.home.workspace)})
    saw("nor loads one", status == 404, brief(body))


ALL = [
    ("changes: a rewind, and kill -9 of everything", Qwen, a_rewind_and_a_kill),
    ("changes: a second rewind", Qwen, a_second_rewind),
    ("changes: a rewind to the beginning", Qwen, a_rewind_to_the_beginning),
    ("changes: a branch", Qwen, a_branch),
    ("changes: the archive", Qwen, the_archive),
    ("changes: a delete", Qwen, a_delete),
]
