"""Return requests to the real qwen-code: an honest agent says nothing outside of its turns, and what it answers is given."""

from flow import Session, same, saw


def return_requests(stage):
    session = Session.create(stage.turnd())
    for number, text in enumerate(["do: say the heron", "do: say the ibis", "do: say the stork"]):
        body = {"requestId": f"r-{number}", "prompt": [{"type": "text", "text": text}]}
        session.ask(202, "POST", "/return-requests", body)
        ended = session.daemon.ask(200, "GET", f"/return-requests/r-{number}?wait_ms=30000")
        same("a return request is completed", (ended["state"], ended["code"]), ("completed", None))
        final = ended["terminal"]["final_message"]
        saw("with what its agent answered", final == text.removeprefix("do: say "), final)


ALL = [("return requests one behind the other", return_requests)]
