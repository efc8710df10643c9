#!/usr/bin/env python3
"""What a verdict and a cold load cost us, and what a cold load costs the peer, on the same session, in one run.

    load_cost.py [MEGABYTES [ROUNDS]]     100 MB and 9 rounds, of which the first ones warm up

The session has turns as a session writes them, and one open prompt with a marker at its end. The peer is called in a
process of its own that has imported its modules and judged the file before; what is timed is what its cold load does: it
finds the session, reads it for the replay, reads it again and reconciles. Our cold load is one over HTTP, the start of
host and agent and the whole reply included; each round is a load and a close of the same daemon.
"""

import http.client
import json
import os
import re
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from agents import NODE
from differential import CHUNKS, PEER
from fetch import fetch
from flow import ROOT, FlowFailed
from pairs import SESSION_ID, START_MS, WORKSPACE, iso

WARM_UP = 2  # rounds that are not counted
WORDS = "the quick brown fox says \"hello\" and jumps over the lazy dog\n"


def write_session(chats, megabytes, workspace=WORKSPACE):
    """Writes the session and its ledger; gives the number of turns."""
    chats.mkdir(parents=True)
    written, turn, tail = 0, 0, None
    with (chats / f"{SESSION_ID}.jsonl").open("w") as transcript:
        while written < megabytes * 1_000_000:
            for record in one_turn(turn, tail, workspace):
                written += transcript.write(json.dumps(record, separators=(",", ":")) + "\n")
                tail = record["uuid"]
            turn += 1
        records = one_turn(turn, tail, workspace)[:-2]  # cut behind its answer
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


def one_turn(turn, tail, workspace=WORKSPACE):
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
        records.append({**base, "type": kind, "cwd": workspace, "version": "0.24.4", **fields})
        tail = uuid
    return records


def ours(chats, rounds):
    example = ["cargo", "run", "--quiet", "--release", "-p", "turnd-attribution", "--example", "time_verdict", "--"]
    files = [chats / f"{SESSION_ID}.ledger.jsonl", chats / f"{SESSION_ID}.jsonl"]
    output = subprocess.run([*example, *files, str(rounds)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [(float(millis), terminal) for millis, terminal in (line.split() for line in output.splitlines())]


def ours_whole(folder, megabytes, rounds):
    """Milliseconds of each cold load, and the most memory that the daemon took, in megabytes."""
    work, store = folder / "work", folder / "own"
    work.mkdir()
    write_session(store / "projects" / re.sub("[^A-Za-z0-9]", "-", str(work)) / "chats", megabytes, str(work))
    command = [ROOT / "target/release/turnd", "serve", "--port", "0", "--store", store, "--workspace", work]
    daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)\s*$", daemon.stdout.readline())[1])
        times = [cold_load(port) for _ in range(rounds)]
        peak = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{daemon.pid}/status").read_text())
        return times, int(peak[1]) / 1024
    finally:
        daemon.kill()
        daemon.wait()


def cold_load(port):
    def call(method, path, expected):
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        link.request(method, path)
        answer = link.getresponse()
        body = answer.read()
        link.close()
        if answer.status != expected:
            raise FlowFailed(f"{method} {path}: {answer.status} {body[:200]}")
        return body

    started = time.perf_counter()
    reply = call("POST", f"/session/{SESSION_ID}/load", 200)
    taken = (time.perf_counter() - started) * 1000
    if json.loads(reply)["attached"]:
        raise FlowFailed("the load was no cold one")
    call("DELETE", f"/session/{SESSION_ID}", 204)
    return taken


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
        loads, peak = ours_whole(folder, int(megabytes), int(rounds))
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
    own_load = median(loads)
    print(f"our cold load over HTTP, reply included {own_load:9.1f} ms   the peer takes {load / own_load:.0f} times as long")
    print(f"our daemon's memory at most             {peak:9.1f} MB")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except FlowFailed as failure:
        sys.exit(f"load_cost: {failure}")
