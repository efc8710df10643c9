"""What a schema cannot say of turnd's API, for openapi.py: schemathesis reads this file and calls what is in it."""

import os
import re

import schemathesis

WORKSPACE = os.environ["TURND_WORKSPACE"]
CLIENT = "X-Qwen-Client-Id"
CLIENT_FORM = re.compile(r"[A-Za-z0-9._:-]{1,128}")
KEY_FORM = re.compile(r'[A-Za-z0-9._:-]{1,128}|"[A-Za-z0-9._:-]{1,128}"')
# These register whoever calls; anywhere else an unknown client is refused.
REGISTERS = {"createSession", "loadSession", "resumeSession"}
# These take a cursor that an answer gave out, and parameters that depend on each other.
LISTS = {"listWorkspaceSessions", "listSessions", "getTranscript"}
# A model of the built-in agent.
MODEL = "scripted"
NOBODY = "00000000-0000-4000-8000-000000000000"


@schemathesis.hook
def before_call(ctx, case, **kwargs):
    """Puts in what only this run knows. A value that is wrong in its form stays wrong."""
    operation = case.operation.definition.raw.get("operationId")
    name = next((name for name in case.headers or {} if name.lower() == CLIENT.lower()), None)
    if operation not in REGISTERS and name and CLIENT_FORM.fullmatch(str(case.headers[name])):
        del case.headers[name]
    body = case.body
    # Two names of one id, which chance does not make the same.
    if isinstance(body, dict) and "promptId" in body:
        for name in [name for name in case.headers or {} if name.lower() == "idempotency-key"]:
            if KEY_FORM.fullmatch(str(case.headers[name])):
                del case.headers[name]
    if isinstance(body, dict) and isinstance(body.get("cwd"), str) and body["cwd"].startswith("/"):
        body["cwd"] = WORKSPACE
    if isinstance(body, dict) and operation == "setModel" and isinstance(body.get("modelId"), str) and body["modelId"]:
        body["modelId"] = MODEL  # the agent's own error about any other is a 500, as the peer answers
    # A stream of a live session has no end to wait for, and a place to go back to is made by a prompt; other tests have both.
    is_place = isinstance(body, dict) and isinstance(body.get("promptId"), str) and body["promptId"]
    if operation == "readEvents" or operation == "rewindSession" and is_place:
        case.path_parameters["id"] = NOBODY
    if operation in LISTS:
        take_out(case.query)
    if operation == "readReturnEvents":
        without_places(case)
    waiting = (case.query or {}).get("wait_ms")
    if operation in {"readReturnEvents", "getReturnRequest"} and re.fullmatch(r"[0-9]{1,5}", str(waiting)):
        if int(waiting) <= 30_000:
            case.query["wait_ms"] = 1  # nothing comes, and the client does not wait so long
    if operation in {"putWebhook", "rotateWebhookSecret"} and isinstance(body, dict):
        name_a_receiver(body)


def without_places(case):
    """A place in the terminal stream is one that an answer gave out."""
    if isinstance((case.query or {}).get("cursor"), str):
        del case.query["cursor"]
    for name in [name for name in case.headers or {} if name.lower() == "last-event-id"]:
        del case.headers[name]


def name_a_receiver(body):
    """What is an address and what a key is more than a pattern says."""
    if isinstance(body.get("url"), str) and len(body["url"]) <= 2048:
        body["url"] = "http://127.0.0.1:9/"
    if isinstance(body.get("secret"), str) and body["secret"].startswith("whsec_"):
        body["secret"] = "whsec_" + "A" * 32


def take_out(query):
    """What a list takes only beside another parameter, or not beside it, and what it has never given out."""
    query = query or {}
    if "sourceType" not in query:
        query.pop("sourceId", None)
    if "view" in query:
        query.pop("parentSessionId", None)
    else:
        query.pop("group", None)
    if isinstance(query.get("cursor"), str) and query["cursor"]:
        del query["cursor"]


@schemathesis.check
def an_unknown_method_is_told_the_known_ones(ctx, response, case):
    """404 with `Allow`, as the peer's clients expect it, where schemathesis' own check wants a 405."""
    known = {method.lower() for method in case.operation.schema[case.operation.path]} | {"head", "options"}
    if case.method.lower() in known:
        return
    assert response.status_code in (401, 404), response.status_code
    if response.status_code == 404:
        assert response.json()["code"] == "route_not_found"
        assert "allow" in response.headers
