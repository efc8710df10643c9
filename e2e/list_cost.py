#!/usr/bin/env python3
"""What a page of a list costs with very many sessions on disk.

    list_cost.py [SESSIONS [ROUNDS [PROGRAM]]]     10,000 sessions and 15 rounds of the release build

Each session has a transcript, a ledger and a lock file, as a session leaves them. A page of 20 and one of 500 are asked for over HTTP,
each round anew from the first page, so that the folder is gone through every time; the first answer of each size, which knows none
of the transcripts, is told apart.
"""

import http.client
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write_sessions(chats, count, workspace):
    chats.mkdir(parents=True)
    for number in range(count):
        session = f"{number:08x}-0000-4000-8000-000000000000"
        base = {"parentUuid": None, "sessionId": session, "timestamp": "2026-11-29T18:33:40.001Z", "cwd": workspace}
        user = {"uuid": "u", **base, "type": "user", "message": {"role": "user", "parts": [{"text": f"prompt {number}"}]}}
        answer = {"uuid": "a", **base, "type": "assistant", "message": {"role": "model", "parts": [{"text": "word " * 800}]}}
        lines = [json.dumps(record, separators=(",", ":")) for record in (user, answer)]
        (chats / f"{session}.jsonl").write_text("\n".join(lines) + "\n")
        (chats / f"{session}.ledger.jsonl").write_text('{"v":1,"promptId":"p","state":"in_flight","at":1}\n')
        (chats / f"{session}.lock").write_text("")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    program = sys.argv[3] if len(sys.argv) > 3 else str(ROOT / "target/release/turnd")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        workspace, store = folder / "ws", folder / "store"
        workspace.mkdir()
        name = re.sub("[^A-Za-z0-9]", "-", str(workspace))
        write_sessions(store / "projects" / name / "chats", count, str(workspace))
        command = [program, "serve", "--port", "0", "--workspace", str(workspace), "--store", str(store)]
        daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            port = int(daemon.stdout.readline().rsplit(":", 1)[1])
            connection = http.client.HTTPConnection("127.0.0.1", port)
            path = f"/workspaces/{str(workspace).replace('/', '%2F')}/sessions"
            for size in (20, 500):
                times = []
                for _ in range(rounds + 1):
                    start = time.perf_counter()
                    connection.request("GET", f"{path}?size={size}")
                    body = connection.getresponse().read()
                    times.append((time.perf_counter() - start) * 1000)
                    assert len(json.loads(body)["sessions"]) == min(size, count), body[:300]
                first, later = times[0], times[1:]
                print(f"{count} sessions, a page of {size}: first {first:.1f} ms, then median {statistics.median(later):.1f} ms, "
                      f"least {min(later):.1f} ms, most {max(later):.1f} ms")
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
