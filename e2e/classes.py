"""Why two readers of the same pair may part: the classes that are allowed, and a proof for each.

A class explains a difference only if the pair without that class's feature makes both readers agree, and if ours gave
less, for the reason that the class names, or gave the prompt's own result. Features are taken out of the bytes, so
that it works on damaged files too; every record stays in its place.
"""

import dataclasses
import datetime
import itertools
import json
import re
from collections.abc import Callable

ISO = rb'"\d{4}-(?:0[1-9]|1[0-2])-(?:[0-2]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z"'
UNDATED = re.compile(rb'"timestamp":(?!' + ISO + rb')("(?:[^"\\]|\\.)*"|[^,}]*)')
DATED = re.compile(rb'"timestamp":"([^"]*)"')


@dataclasses.dataclass(frozen=True)
class Class:
    row: str  # where it is allowed
    title: str
    reasons: frozenset | None  # what ours says when it gives less because of it; None is whatever it says
    without: Callable | None  # (ledger, transcript) without the feature; None where the two cannot part
    gives_more: bool = False


def renamed(key, value):
    """Every record with this value becomes a note that nothing depends on."""
    old, new = (f'"{key}":"{word}"'.encode() for word in (value, "ui_telemetry"))
    return lambda ledger, transcript: (ledger, transcript.replace(old, new))


def unstamped(ledger, transcript):
    """No record says which prompt it belongs to."""
    return ledger, transcript.replace(b'"daemonPromptId":', b'"nobodysPromptId":')


def untagged(ledger, transcript):
    """What was a task notification is an ordinary text."""
    return ledger, transcript.replace(b"task-notification>", b"task_notification>")


def dated(is_meant, moment):
    """Every record that is meant and has no usable time gets one."""

    def without(ledger, transcript):
        at = moment(ledger, transcript)
        records = re.split(rb'(?=\{"uuid":|\n)', transcript)
        return ledger, b"".join(with_time(record, at) if is_meant(record) else record for record in records)

    return without


def with_time(record, at):
    if b'"timestamp":' not in record:
        return record.replace(b'"type":', b'"timestamp":"%b","type":' % at, 1)
    return UNDATED.sub(b'"timestamp":"%b"' % at, record)


def moments(ledger, transcript):
    found = [int(at) for at in re.findall(rb'"at":(\d+)', ledger)]
    for text in DATED.findall(transcript):
        try:
            found.append(int(datetime.datetime.fromisoformat(text.decode()).timestamp() * 1000))
        except (ValueError, OverflowError, UnicodeDecodeError):
            continue
    return found or [0]


def text_of(at_ms):
    moment = datetime.datetime.fromtimestamp(at_ms / 1000, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


def later(ledger, transcript):
    return text_of(max(moments(ledger, transcript)) + 1_000)


def earlier(ledger, transcript):
    return text_of(min(moments(ledger, transcript)) - 1_000)


def is_snapshot(record):
    return b'"chat_compression"' in record


def is_no_snapshot(record):
    return not is_snapshot(record)


def sealed(ledger, transcript):
    """Every record begins a line."""
    return ledger, re.sub(rb'(?<=[^\n\xbf])\{"uuid":', b'\n{"uuid":', transcript)


def withheld(*reasons):
    return frozenset(reasons)


NOTHING = withheld()


NOT_ANSWERED = withheld("tail_is_no_answer")
CLASSES = [
    Class("section 5", "exact result", NOTHING, renamed("subtype", "turn_result"), gives_more=True),
    Class("section 5", "foreign prompt", withheld("foreign_prompt"), unstamped),
    Class("section 5", "a turn that was taken back", withheld("foreign_prompt"), renamed("subtype", "rewind")),
    Class("row 1", "clean, but the last visible record is a user's", NOT_ANSWERED, renamed("subtype", "slash_command")),
    Class("row 2", "the session's own user records", NOTHING, None),
    Class("row 3", "trailing task notifications", NOT_ANSWERED, untagged),
    Class("row 4", "a goal's turn ended by its last tool", NOT_ANSWERED, renamed("subtype", "goal_turn_end")),
    Class("row 5", "the last visible record is undated", withheld("no_visible_write"), dated(is_no_snapshot, later)),
    Class("row 6", "an undated compression, legacy admission", withheld("compression_fence"), dated(is_snapshot, earlier)),
    Class("row 7", "the ledger changed meanwhile", NOTHING, None),
    Class("row 8", "a tail at or before 1970", NOTHING, None),
    Class("row 9", "terminals of the load response", NOTHING, None),
    Class("row 10", "edge of the turn-result scan", NOTHING, None),
    Class("rule of section 9", "a record behind a torn fragment of one line", None, sealed),
]
REMOVABLE = [kind for kind in CLASSES if kind.without]


def combinations(size):
    return list(itertools.combinations(REMOVABLE, size))


def without(kinds, ledger, transcript):
    for kind in kinds:
        ledger, transcript = kind.without(ledger or b"", transcript or b"")
    return ledger, transcript


def explains(kinds, ours, theirs, transcript):
    """Whether these classes can be what parts the two, once they agree without them: ours gave less for a reason of
    theirs, or the very result that the transcript holds."""
    if not all(is_own_result(record, transcript) for record in ours["appended"]):
        return False
    if ours["appended"]:
        settled = {record["promptId"] for record in ours["appended"]}
        return any(kind.gives_more for kind in kinds) and all(record["promptId"] in settled for record in theirs["appended"])
    return any(kind.reasons is None or ours["withheld"] in kind.reasons for kind in kinds)


def is_own_result(record, transcript):
    """Whether the transcript holds a turn result of this very prompt with this very ending."""
    text = transcript.decode(errors="replace")
    for found in re.finditer('"subtype":"turn_result","systemPayload":', text):
        try:
            payload, _ = json.JSONDecoder().raw_decode(text, found.end())
        except ValueError:
            continue
        code = (payload.get("error") or {}).get("code")
        fields = {"stopReason": payload.get("stopReason")} if payload.get("state") == "completed" else {}
        fields |= {"code": code if code is None else str(code)} if payload.get("state") == "error" else {}
        fields = {key: value for key, value in fields.items() if value is not None}
        if {"v": 1, "promptId": payload.get("promptId"), "terminal": payload.get("state"), **fields} == record:
            return True
    return False
