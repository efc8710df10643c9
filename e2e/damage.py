"""From what was written to what lies on the disk: torn, glued, doubled and foreign lines."""

import json

NOISE = [
    b"", b"   ", b"garbage", b"null", b"5", b"[1,2]", b"{}", b"\0\0\0", b'{"uuid":"x"}', b"\xff\xfe", b'{"a":{"b":1}}',
]  # fmt: skip


def damaged_ledger(rng, records):
    """The bytes of a ledger, mostly whole. None is no file."""
    lines = [compact(record) for record in records]
    if rng.random() < 0.12 and lines:
        damage = rng.choice([_fuse, _torn_and_sealed, _torn_end, _lost_line, _noise, _other_version, _end_first, _cr])
        lines = damage(rng, lines)
    if rng.random() < 0.005:
        return None
    return join(lines, has_end=lines[-1:] != [b""])


def damaged_transcript(rng, records):
    """The bytes of a transcript, mostly whole. None is no file."""
    if rng.random() < 0.2 and records:
        records = [dict(record) for record in records]
        rng.choice(RECORD_DAMAGES)(rng, records)
    lines = [compact(record) for record in records]
    if rng.random() < 0.2 and lines:
        lines = rng.choice(LINE_DAMAGES)(rng, lines)
    if rng.random() < 0.005:
        return None
    text = join(lines, has_end=rng.random() < 0.95)
    if rng.random() < 0.01:
        text = b"\xef\xbb\xbf" + text
    return text.replace(b"\n", b"\r\n") if rng.random() < 0.02 else text


def compact(record):
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def join(lines, has_end):
    return b"\n".join(lines) + (b"\n" if has_end and lines else b"")


def place(rng, lines):
    """An index, near the end more often than not: that is what the verdict looks at."""
    return max(0, len(lines) - 1 - min(int(rng.expovariate(0.4)), len(lines) - 1))


# Lines of either file.


def _fuse(rng, lines):
    at = place(rng, lines)
    return [*lines[:at], b"".join(lines[at : at + 2]), *lines[at + 2 :]]


def _torn_and_sealed(rng, lines):
    at = place(rng, lines)
    return [*lines[:at], lines[at][: rng.randrange(1, len(lines[at]))], *lines[at:]]


def _torn_and_glued(rng, lines):
    at = place(rng, lines)
    return [*lines[:at], lines[at][: rng.randrange(1, len(lines[at]))] + lines[at], *lines[at + 1 :]]


def _torn_end(rng, lines):
    return [*lines[:-1], lines[-1][: rng.randrange(len(lines[-1]))]]


def _lost_line(rng, lines):
    at = place(rng, lines)
    return lines[:at] + lines[at + 1 :]


def _doubled(rng, lines):
    at = place(rng, lines)
    return [*lines[: at + 1], *lines[at:]]


def _noise(rng, lines):
    at = rng.randrange(len(lines) + 1)
    return [*lines[:at], rng.choice(NOISE), *lines[at:]]


def _swapped(rng, lines):
    at = place(rng, lines)
    return [*lines[:at], *reversed(lines[at : at + 2]), *lines[at + 2 :]]


# Lines of a ledger.


def _cr(_, lines):
    return [line + b"\r" for line in lines]


def _other_version(rng, lines):
    at = place(rng, lines)
    version = rng.choice([b'"v":2', b'"v":"1"', b'"v":1.0', b'"v":null'])
    return [*lines[:at], lines[at].replace(b'"v":1', version), *lines[at + 1 :]]


def _end_first(rng, lines):
    """A terminal before its admission."""
    ends = [index for index, line in enumerate(lines) if b'"terminal"' in line]
    if not ends:
        return lines
    at = rng.choice(ends)
    return [lines[at], *lines[:at], *lines[at + 1 :]]


# Records of a transcript.


def _same_uuid(rng, records):
    at = place(rng, records)
    records[at]["uuid"] = rng.choice(records)["uuid"]


def _lost_parent(rng, records):
    records[place(rng, records)]["parentUuid"] = rng.choice(["nobody", None, "", 7])


def _cycle(rng, records):
    at = place(rng, records)
    records[rng.randrange(at + 1)]["parentUuid"] = records[at]["uuid"]


def _parent_is_missing(rng, records):
    del records[place(rng, records)]["parentUuid"]


def _other_cwd(rng, records):
    elsewhere = rng.choice(["/ws/.qwen/worktrees/a", "/elsewhere", "/ws/sub", "/ws/", "", None, 7])
    for record in records[: rng.choice([1, len(records)])]:
        record["cwd"] = elsewhere


def _other_session(rng, records):
    records[place(rng, records)]["sessionId"] = rng.choice(["another", "11111111-2222-4333-8444-555555555556", "", None])


def _all_of_another_session(_, records):
    for record in records:
        record["sessionId"] = "21111111-2222-4333-8444-555555555555"


def _unknown_type(rng, records):
    records[place(rng, records)]["type"] = rng.choice(["summary", "", None])


def _odd_parts(rng, records):
    spoken = [record for record in records if "message" in record]
    if spoken:
        record = spoken[place(rng, spoken)]
        parts = rng.choice([None, "text", [], [None], ["text"], [{}], 5, {}])
        record["message"] = rng.choice([None, "text", {}, {"parts": parts}, {"role": "user", "parts": parts}])


RECORD_DAMAGES = [
    _same_uuid, _same_uuid, _lost_parent, _cycle, _parent_is_missing, _other_cwd, _other_session,
    _all_of_another_session, _unknown_type, _odd_parts,
]  # fmt: skip
LINE_DAMAGES = [
    _fuse, _torn_and_sealed, _torn_and_glued, _torn_end, _torn_end, _lost_line, _doubled, _noise, _noise, _swapped,
]  # fmt: skip
