"""Return requests to the real qwen-code: an honest agent says nothing outside of its turns, and what it answers is given."""

from flow import Session, same, saw


def _answered(session, request_id, text):
    body = {"requestId": request_id, "prompt": [{"type": "text", "text": f"do: say {text}"}]}
    session.ask(202, "POST", "/return-requests", body)
    ended = session.daemon.ask(200, "GET", f"/return-requests/{request_id}?wait_ms=30000")
    same("a return request is completed", (ended["state"], ended["code"]), ("completed", None))
    final = ended["terminal"]["final_message"]
    saw("with what its agent answered", final == text, final)


def return_requests(stage):
    session = Session.create(stage.turnd())
    for number, text in enumerate(["the heron", "the ibis", "the stork"]):
        _answered(session, f"r-{number}", text)


def loaded(stage):
    session = Session.create(stage.turnd())
    _answered(session, "before", "the heron")
    for how in ["load", "resume"]:
        session.ask(204, "DELETE", "")
        body = {"cwd": str(session.daemon.home.workspace)}
        session = Session(session.daemon, session.daemon.ask(200, "POST", f"/session/{session.id}/{how}", body))
        _answered(session, f"after-{how}", f"the ibis of the {how}")


ALL = [
    ("return requests one behind the other", return_requests),
    ("return requests of a session that is brought back", loaded),
]
