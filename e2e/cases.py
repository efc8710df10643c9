"""The written cases of fixtures/evidence as pairs of files; what each expects is left out."""

import base64
import json

from flow import ROOT


def files():
    """Gives {name: (ledger, transcript)} of every case that has both files."""
    found = {}
    for line in (ROOT / "fixtures/evidence/cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        ledger, transcript = (content(case["given"], file) for file in ("ledger", "transcript"))
        if ledger is not None and transcript is not None:
            found["case-" + case["id"]] = (ledger, transcript)
    return found


def content(given, file):
    """The bytes of one of the two files; None is no file."""
    if given.get(f"{file}_b64") is not None:
        return base64.b64decode(given[f"{file}_b64"])
    if given.get(f"{file}_lines") is None:
        return None
    lines = [text for line in given[f"{file}_lines"] for text in expanded(line)]
    end = given.get(f"{file}_end")
    end = ("\n" if lines else "") if end is None else end
    return (given.get(f"{file}_sep") or "\n").join(lines).encode() + end.encode()


def expanded(line):
    """A line, or what one that is given in short stands for."""
    if isinstance(line, str):
        return [line]
    if "fill" in line:
        what, count = line["fill"]
        return [line["line"].replace("¤", what * count)]
    numbers = range(line["repeat"])
    return [line["line"].replace("%d", f"{number:06}").replace("%p", f"{number - 1:06}") for number in numbers]
