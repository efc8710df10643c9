#!/usr/bin/env python3
"""Fills fuzz/corpus with seeds made from fixtures/: each ledger, each transcript, and each pair of them as one input.

What is there already stays: the fuzzer keeps what it found in the same folders.
"""

import base64
import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"

# Stands between the two files of one input; see fuzz/src/lib.rs.
SEPARATOR = b"\x1e"

# Bytes of one seed: the fuzzer reads no more of any (fuzz/run), and slows down with its length.
SEED_BYTES_MAX = 4 * 1024


def expanded(line):
    """A line of a case as bytes; some are said by a rule, because they are many or long."""
    if isinstance(line, str):
        return [line.encode("utf-8", "surrogatepass")]
    if "fill" in line:
        character, count = line["fill"]
        return [line["line"].replace("\u00a4", character * count).encode()]
    return [
        line["line"].replace("%d", f"{index:06}").replace("%p", f"{index - 1:06}").encode()
        for index in range(line["repeat"])
    ]


def side(given, name):
    """The bytes of a case's ledger or transcript; nothing where it has none."""
    if f"{name}_b64" in given:
        return base64.b64decode(given[f"{name}_b64"])
    lines = [part for line in given.get(f"{name}_lines") or [] for part in expanded(line)]
    if not lines:
        return b""
    separator = given.get(f"{name}_sep", "\n").encode()
    return separator.join(lines) + given.get(f"{name}_end", "\n").encode()


def from_cases():
    for line in (ROOT / "fixtures/evidence/cases.jsonl").read_text().splitlines():
        given = json.loads(line)["given"]
        yield side(given, "ledger"), side(given, "transcript")


def from_recordings():
    for folder in ("qwen-serve", "qwen-serve-own"):
        for transcript in sorted((ROOT / "fixtures" / folder).rglob("*.jsonl")):
            if transcript.name.endswith(".ledger.jsonl"):
                continue
            ledger = transcript.with_name(transcript.stem + ".ledger.jsonl")
            yield ledger.read_bytes() if ledger.exists() else b"", transcript.read_bytes()


def from_ledgers():
    for ledger in sorted((ROOT / "fixtures/ledger").glob("*.ledger.jsonl")):
        yield ledger.read_bytes(), b""


def shortened(transcript, room):
    """The end of a transcript from the beginning of a line, if it does not fit: there lies what is judged."""
    if len(transcript) <= room:
        return transcript
    return transcript[-room:].partition(b"\n")[2]


def keep(target, seed):
    if 0 < len(seed) <= SEED_BYTES_MAX:
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)


def main():
    archived = b'{"v":1,"promptId":"A","terminal":"completed","stopReason":"end_turn","at":1}\n{"v":1,"pro'
    for ledger, transcript in [*from_cases(), *from_recordings(), *from_ledgers()]:
        transcript = shortened(transcript, SEED_BYTES_MAX - len(ledger) - len(SEPARATOR))
        keep("ledger_reader", ledger)
        keep("ledger_reader", ledger + SEPARATOR + archived)
        keep("transcript_reader", transcript)
        keep("projection", transcript)
        keep("verdict", ledger + SEPARATOR + transcript)
    for folder in sorted(CORPUS.iterdir()):
        print(f"{folder.name}: {sum(1 for _ in folder.iterdir())} inputs")


if __name__ == "__main__":
    main()
