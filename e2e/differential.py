#!/usr/bin/env python3
"""Runs the installed qwen-code's reconciliation and ours over the same pairs of files, and says where they part.

    differential.py [N [SEED]]      N generated pairs (500) and every case of fixtures/evidence that has both files

Each difference must be explained by a class of classes.py; anything else is printed, its files are kept, and the
status is 1.
"""

import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import cases
import classes
import pairs
from agents import NODE
from fetch import fetch
from flow import AGENTS, ROOT, FlowFailed

CHUNKS = AGENTS / "node_modules/@qwen-code/qwen-code/chunks"
PEER = pathlib.Path(__file__).resolve().parent / "differential.mjs"
SHOWN = 20  # how many unexplained differences are printed


class Readers:
    """The two programs, and the folder in which everything happens."""

    def __init__(self, folder):
        self.folder = folder
        build = ["cargo", "build", "--quiet", "-p", "turnd-attribution", "--example", "judge_pairs", "--message-format=json"]
        built = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        executables = [json.loads(line).get("executable") for line in built.splitlines()]
        self.ours = [next(path for path in executables if path)]
        self.theirs = [NODE, PEER, CHUNKS]

    def read(self, files):
        """Gives {name: (ours, theirs)} for {name: (ledger, transcript)}."""
        pairs_folder = self.folder / "pairs"
        for name, contents in files.items():
            pair = pairs_folder / name
            pair.mkdir(parents=True)
            for file, content in zip(("ledger.jsonl", "transcript.jsonl"), contents, strict=True):
                if content is not None:
                    (pair / file).write_bytes(content)
        both = [self.start(command, pairs_folder) for command in (self.ours, self.theirs)]
        ours, theirs = (self.finish(process) for process in both)
        shutil.rmtree(pairs_folder, ignore_errors=True)
        if not ours.keys() == theirs.keys() == files.keys():
            raise FlowFailed("a program did not judge every pair")
        return {name: (ours[name], theirs[name]) for name in files}

    def start(self, command, pairs_folder):
        home, scratch = self.folder / "home", self.folder / "scratch"
        home.mkdir(exist_ok=True)
        scratch.mkdir(exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(scratch), "LANG": "C.UTF-8"}
        output = tempfile.TemporaryFile(dir=self.folder)
        process = subprocess.Popen([str(part) for part in (*command, pairs_folder)], env=environment, stdout=output)
        return process, output

    @staticmethod
    def finish(started):
        process, output = started
        if process.wait():
            raise FlowFailed(f"{process.args[0]} failed with {process.returncode}")
        output.seek(0)
        judged = [json.loads(line) for line in output]
        return {line.pop("id"): line for line in judged}


class Comparison:
    """Every pair, what both said, and which class explains where they part."""

    def __init__(self, readers, files):
        self.readers, self.files = readers, files
        self.read = readers.read(files)
        self.explained = {}  # name: the classes
        self.parted = {name for name, (ours, theirs) in self.read.items() if ours["appended"] != theirs["appended"]}
        self.misread = {
            f"{name} {key}": (ours[key], theirs[key])
            for name, (ours, theirs) in self.read.items()
            for key in ("tailUuid", "terminals")
            if ours[key] != theirs[key]
        }

    def explain(self):
        """Takes out each class alone, then two together, then three, until both agree."""
        for size in (1, 2, 3):
            open_names = sorted(self.parted - self.explained.keys())
            tried = {
                f"{name}-{number}": (name, kinds)
                for name in open_names
                for number, kinds in enumerate(classes.combinations(size))
                if classes.explains(kinds, *self.read[name], self.files[name][1] or b"")
            }
            reduced = {key: classes.without(kinds, *self.files[name]) for key, (name, kinds) in tried.items()}
            again = self.readers.read(reduced) if reduced else {}
            for key, (ours, theirs) in again.items():
                name, kinds = tried[key]
                if ours["appended"] == theirs["appended"]:
                    self.explained.setdefault(name, kinds)

    def table(self):
        counts = collections.defaultdict(list)
        for name, kinds in sorted(self.explained.items()):
            counts[" + ".join(kind.title for kind in kinds)].append(name)
        rows = {kind.title: kind.row for kind in classes.CLASSES}
        for title in (*rows, *(title for title in sorted(counts) if title not in rows)):
            names = counts[title]
            given = " / ".join(self.gave(names, side) for side in (0, 1)) if names else "–"
            yield rows.get(title, "several"), title, str(len(names)), given, names[0] if names else "–"

    def gave(self, names, side):
        appended = collections.Counter(
            ", ".join(record["terminal"] for record in self.read[name][side]["appended"]) or "nothing" for name in names
        )
        return ", ".join(f"{count} {what}" for what, count in appended.most_common())

    def totals(self):
        agreed = [both for name, both in self.read.items() if name not in self.parted]
        appended = sum(bool(ours["appended"]) for ours, _ in agreed)
        either = sum(bool(ours["appended"] or theirs["appended"]) for ours, theirs in self.read.values())
        return (
            f"{len(self.read)} pairs; {len(agreed)} agreed: {appended} with the same terminal, {len(agreed) - appended} "
            f"with none; {len(self.parted)} parted; a terminal from either in {either}"
        )

    def unexplained(self):
        return sorted(self.parted - self.explained.keys())


def report(comparison):
    """Prints the table; gives whether everything is explained."""
    print(comparison.totals())
    print("\n| allowed by | class | pairs | ours / theirs | example |\n|---|---|---|---|---|")
    for row in comparison.table():
        print(f"| {' | '.join(row)} |")
    reasons = collections.Counter(ours["withheld"] for ours, _ in comparison.read.values() if ours["withheld"])
    print("\nours withheld: " + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()))
    unexplained = comparison.unexplained()
    if unexplained:
        keep(comparison, unexplained)
    for what, (ours, theirs) in list(comparison.misread.items())[:SHOWN]:
        print(f"\n{what}: ours {ours}, theirs {theirs}")
    return not unexplained and not comparison.misread


def keep(comparison, names):
    kept = pathlib.Path(tempfile.mkdtemp(prefix="turnd-differential-"))
    for name in names:
        (kept / name).mkdir()
        for file, content in zip(("ledger.jsonl", "transcript.jsonl"), comparison.files[name], strict=True):
            if content is not None:
                (kept / name / file).write_bytes(content)
    print(f"\n{len(names)} differences that nothing explains; their files are kept in {kept}")
    for name in names[:SHOWN]:
        ours, theirs = comparison.read[name]
        print(f"{name}:\n  ours   {ours['appended']} {ours['withheld']}\n  theirs {theirs['appended']} {theirs['withheld']}")


def main(count=500, seed="1"):
    fetch()
    files = {name: (ledger, transcript) for name, ledger, transcript in pairs.pairs(int(count), seed)} | cases.files()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="turnd-differential-"))
    try:
        comparison = Comparison(Readers(folder), files)
        comparison.explain()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report(comparison)


if __name__ == "__main__":
    try:
        sys.exit(0 if main(*sys.argv[1:]) else 1)
    except FlowFailed as failure:
        sys.exit(f"differential: {failure}")
