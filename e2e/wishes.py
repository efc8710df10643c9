#!/usr/bin/env python3
"""Puts wishes into generated ledgers, and holds the installed qwen-code to reading each as it reads it without them.

    wishes.py [N [SEED]]      N generated pairs (500)

The same terminals appended, the same recent terminals, the same dispatch marker: a wish is nothing to a reader that does
not know it. Prints what was compared; the status is 1 if any pair is read differently.
"""

import json
import pathlib
import random
import shutil
import sys
import tempfile

import pairs
from differential import Readers
from fetch import fetch
from flow import FlowFailed


def wished(ledger, chance):
    """The ledger with wishes of its own prompts between its whole lines, and how many."""
    ids = sorted({record["promptId"] for record in map(parsed, ledger.split(b"\n")) if record})
    lines, count = [], 0
    for line in ledger.split(b"\n"):
        lines.append(line)
        while ids and chance.random() < 0.5:
            wish = {"v": 1, "promptId": chance.choice(ids), "state": "cancel_requested", "at": chance.randrange(2**41)}
            # In front of the last piece, which may be torn or nothing: what is written behind a torn line is sealed first.
            lines.insert(len(lines) - 1, json.dumps(wish, separators=(",", ":")).encode())
            count += 1
    return b"\n".join(lines), count


def parsed(line):
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("promptId"), str) else None


def main(count=500, seed="1"):
    fetch()
    chance = random.Random(seed)
    plain = {name: (ledger, transcript) for name, ledger, transcript in pairs.pairs(int(count), seed) if ledger}
    with_wishes = {name: (wished(ledger, chance), transcript) for name, (ledger, transcript) in plain.items()}
    total = sum(number for (_, number), _ in with_wishes.values())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="turnd-wishes-"))
    try:
        readers = Readers(folder)
        before = {name: theirs for name, (_, theirs) in readers.read(plain).items()}
        files = {name: (ledger, transcript) for name, ((ledger, _), transcript) in with_wishes.items()}
        after = {name: theirs for name, (_, theirs) in readers.read(files).items()}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    parted = sorted(name for name in before if before[name] != after[name])
    given = sum(bool(read["appended"]) for read in before.values())
    print(f"{len(before)} ledgers with {total} wishes; a terminal appended in {given}; {len(parted)} read differently")
    for name in parted[:20]:
        print(f"{name}:\n  without {before[name]}\n  with    {after[name]}")
    return not parted


if __name__ == "__main__":
    try:
        sys.exit(0 if main(*sys.argv[1:]) else 1)
    except FlowFailed as failure:
        sys.exit(f"wishes: {failure}")
