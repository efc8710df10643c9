#!/usr/bin/env python3
"""What a verdict costs us and what a cold load costs the peer, on the same session file, in one run.

    load_cost.py [MEGABYTES [ROUNDS]]     100 MB and 9 rounds, of which the first ones warm up

The session has turns as a session writes them, and one open prompt with a marker at its end. The peer is called in a
process of its own that has imported its modules and judged the file before; what is timed is what its cold load does: it
finds the session, reads it for the replay, reads it again and reconciles.
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from agents import NODE
from differential import CHUNKS, PEER
from fetch import fetch
from flow import ROOT, FlowFailed
from pairs import SESSION_ID, START_MS, WORKSPACE, iso

WARM_UP = 2  # rounds that are not counted
WORDS = "the quick brown fox says \"hello\" and jumps over the lazy dog\n"


def write_session(chats, megabytes):
    """Writes the session and its ledger; gives the number of turns."""
    chats.mkdir(parents=True)
    written, turn, tail = 0, 0, None
    with (chats / f"{SESSION_ID}.jsonl").open("w") as transcript:
        while written < megabytes * 1_000_000:
            for record in one_turn(turn, tail):
                written += transcript.write(json.dumps(record, separators=(",", ":")) + "\n")
                tail = record["uuid"]
            turn += 1
        records = one_turn(turn, tail)[:-2]  # cut behind its answer
        transcript.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    with (chats / f"{SESSION_ID}.ledger.jsonl").open("w") as ledger:
        for number in range(turn):
            at = moment(number)
            end = {"terminal": "completed", "stopReason": "end_turn", "at": at + 990}
            lines = [{"state": "in_flight", "at": at - 1}, end]
            ledger.writelines(json.dumps({"v": 1, "promptId": f"p{number}", **line}) + "\n" for line in lines)
        admission = {"v": 1, "promptId": f"p{turn}", "state": "in_flight", "tailUuid": tail, "at": moment(turn) - 1}
        ledger.write(json.dumps(admission) + "\n")
    return turn


def moment(turn):
    return START_MS + turn * 1_000


def one_turn(turn, tail):
    """A question, a tool, an answer: about 16 KB in nine records."""
    call = {"id": f"c{turn}", "name": "read_file", "args": {"path": f"src/{turn}.rs"}}
    answered = {"id": call["id"], "name": call["name"], "response": {"output": WORDS * 100}}
    result = {"promptId": f"p{turn}", "state": "completed", "stopReason": "end_turn"}
    result |= {"promptText": WORDS, "resultText": WORDS * 30}
    said = [
        ("user", {"daemonPromptId": f"p{turn}", "message": {"role": "user", "parts": [{"text": WORDS}]}}),
        ("system", {"subtype": "file_history_snapshot", "systemPayload": {"snapshots": []}}),
        ("system", {"subtype": "ui_telemetry", "systemPayload": {"uiEvent": {"event.name": "qwen-code.api_response"}}}),
        ("assistant", {"message": {"role": "model", "parts": [{"text": WORDS * 3}, {"functionCall": call}]}}),
        ("tool_result", {"message": {"role": "user", "parts": [{"functionResponse": answered}]},
                         "toolCallResult": {"callId": call["id"], "status": "success", "resultDisplay": WORDS * 50}}),
        ("system", {"subtype": "ui_telemetry", "systemPayload": {"uiEvent": {"event.name": "qwen-code.tool_call"}}}),
        ("assistant", {"message": {"role": "model", "parts": [{"text": WORDS * 30}]}}),
        ("system", {"subtype": "branch_checkpoint", "systemPayload": {"v": 1}}),
        ("system", {"subtype": "turn_result", "systemPayload": result}),
    ]  # fmt: skip
    records = []
    for index, (kind, fields) in enumerate(said):
        uuid = f"{turn:08}-0000-4000-8000-{index:012}"
        base = {"uuid": uuid, "parentUuid": tail, "sessionId": SESSION_ID, "timestamp": iso(moment(turn) + index * 100)}
        records.append({**base, "type": kind, "cwd": WORKSPACE, "version": "0.24.4", **fields})
        tail = uuid
    return records


def ours(chats, rounds):
    example = ["cargo", "run", "--quiet", "--release", "-p", "turnd-attribution", "--example", "time_verdict", "--"]
    files = [chats / f"{SESSION_ID}.ledger.jsonl", chats / f"{SESSION_ID}.jsonl"]
    output = subprocess.run([*example, *files, str(rounds)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [(float(millis), terminal) for millis, terminal in (line.split() for line in output.splitlines())]


def theirs(store, home, rounds):
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
    command = [NODE, PEER, CHUNKS, "--load", store, str(rounds)]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def median(values):
    counted = list(values)[WARM_UP:]
    return statistics.median(counted)


def main(megabytes=100, rounds=9):
    fetch()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="turnd-load-cost-"))
    try:
        chats = folder / "store/projects/-ws/chats"
        turns = write_session(chats, int(megabytes))
        peer, own = theirs(folder / "store", folder, int(rounds)), ours(chats, int(rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    terminals = {line["appended"] for line in peer} | {terminal for _, terminal in own}
    if len(terminals) != 1:
        raise FlowFailed(f"the two do not say the same: {terminals}")
    verdict = median(millis for millis, _ in own)
    reconcile, load = median(line["reconcile"] for line in peer), median(line["load"] + line["reconcile"] for line in peer)
    print(f"{megabytes} MB, {turns} turns, medians of {int(rounds) - WARM_UP}: both say {terminals.pop()}")
    print(f"our verdict                             {verdict:9.1f} ms")
    print(f"the peer reads the session, reconciles  {reconcile:9.1f} ms   {reconcile / verdict:6.0f} times")
    print(f"the peer's cold load as a whole         {load:9.1f} ms   {load / verdict:6.0f} times")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except FlowFailed as failure:
        sys.exit(f"load_cost: {failure}")
