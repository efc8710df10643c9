#!/usr/bin/env python3
"""Kills what runs at any moment within 20 ms after the answer to a cancel, and holds the next load to what was promised.

    wish_kills.py [ROUNDS [SEED]]      so many rounds (60) with the built-in agent

Of a round are drawn: the agent (one that stops when told, a deaf one, one that has spoken), whether another prompt waits, whether
the daemon dies alone or with host and agent, the delay, and, in one of four, that nobody cancels at all. A cancel that was
answered is never told as a plain crash, and nothing of an earlier life is dispatched again. Prints a table of what was told.
"""

import collections
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from flow import FlowFailed, until
from stage import binary

BINARY = binary()
DELAY_MS_MAX = 20


class Daemon:
    """One life of a daemon over a folder."""

    def __init__(self, base):
        self.base = base
        agent = f"'{BINARY}' agent --journal '{base}/journal'"
        workspace = base / "workspace"
        workspace.mkdir(exist_ok=True)
        command = [BINARY, "serve", "--port", "0", "--log-level", "error", "--store", base / "store"]
        command += ["--workspace", workspace, "--linger-ms", "100", "--agent", agent]
        self.process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        port = int(self.process.stdout.readline().strip().rsplit(":", 1)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method, path, body=None):
        headers = {"content-type": "application/json"}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise FlowFailed(f"{method} {path}: {answer.status} {text}")
        return json.loads(text) if text else None

    def family(self):
        parents = {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                except OSError:
                    pass
        family = [self.process.pid]
        for pid in family:
            family += [child for child, parent in parents.items() if parent == pid and child not in family]
        return family

    def kill(self, pids):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def asked(base):
    """The prompts that any agent was asked for, by their ids."""
    lines = (base / "journal").read_text().splitlines() if (base / "journal").exists() else []
    heard = [json.loads(line).get("heard", {}) for line in lines]
    prompts = [message["params"]["_meta"] for message in heard if message.get("method") == "session/prompt"]
    return [meta["qwen-code/invocation"]["promptId"] for meta in prompts]


def told(loaded, prompt):
    """What a load says of a prompt: its terminal or its reason, and whether it shows a wish."""
    entries = loaded.get("promptTerminals", []) + loaded.get("unresolvedPrompts", [])
    own = [entry for entry in entries if entry["promptId"] == prompt]
    if len(own) != 1:
        raise FlowFailed(f"{prompt} is told of {len(own)} times: {entries}")
    word = own[0].get("terminal") or own[0]["reason"] + "?"
    return word, "cancelRequestedAt" in own[0]


def play(chance, base):
    """One round; gives its kind, what was told, and whether that is honest."""
    text, queued = chance.choice(["hang", "deaf", "stuck"]), chance.random() < 0.5
    alone, wished = chance.random() < 0.4, chance.random() < 0.75
    daemon = Daemon(base)
    session = daemon.call("POST", "/session", {"sessionScope": "thread"})["sessionId"]
    path = f"/session/{session}"
    submit = lambda text: daemon.call("POST", f"{path}/prompt", {"prompt": [{"type": "text", "text": text}]})["promptId"]
    prompt = submit(text)
    transcripts = base / "store/projects"
    until("the turn", lambda: any(prompt in file.read_text() for file in transcripts.glob(f"*/chats/{session}.jsonl")))
    behind = submit("hello") if queued else None
    pids = [daemon.process.pid] if alone else daemon.family()
    if wished:
        daemon.call("POST", f"{path}/cancel", {})
    time.sleep(chance.uniform(0, DELAY_MS_MAX) / 1000)
    daemon.kill(pids)
    again = Daemon(base)
    try:
        loaded = again.call("POST", f"{path}/load", {})
        word, shows = told(loaded, prompt)
        prompts = asked(base)
        if len(prompts) != len(set(prompts)) or not set(prompts) <= {prompt, behind}:
            raise FlowFailed(f"a prompt of the earlier life was dispatched again: {prompts}")
        if behind is not None and told(loaded, behind)[1]:
            raise FlowFailed("a wish is shown of a prompt that nobody cancelled")
    finally:
        again.kill(again.family())
    honest = (word == "cancelled" or shows) if wished else (not shows and word != "cancelled")
    kind = f"{'cancelled' if wished else 'not cancelled'}, {text}, {'daemon' if alone else 'all'} killed"
    return kind + (", one queued" if queued else ""), word + (" wished" if shows else ""), honest


def main(rounds=60, seed="1"):
    chance = random.Random(seed)
    table, wrong = collections.defaultdict(collections.Counter), 0
    for number in range(int(rounds)):
        with tempfile.TemporaryDirectory(prefix="turnd-kills-") as folder:
            kind, word, honest = play(chance, pathlib.Path(folder).resolve())
        table[kind][word] += 1
        if not honest:
            wrong += 1
            print(f"round {number}: {kind}: {word}", flush=True)
    for kind, words in sorted(table.items()):
        print(f"{kind}: " + ", ".join(f"{count} {word}" for word, count in words.most_common()))
    print(f"{rounds} rounds, {wrong} of them told wrongly")
    return wrong == 0


if __name__ == "__main__":
    try:
        sys.exit(0 if main(*sys.argv[1:]) else 1)
    except FlowFailed as failure:
        sys.exit(f"wish_kills: {failure}")
