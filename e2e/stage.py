"""A stage for one flow: a home of its own, an agent, and daemons started on them one after the other."""

import os
import re
import shutil

from flow import ROOT, Daemon, FlowFailed, Home, saw, until


class Stage:
    def __init__(self, agent):
        self.agent = agent
        self.home = Home(agent.transcript)
        self.environment = agent.prepare(self.home)
        self.daemon = None

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.agent.close()
        if kind is not None and self.daemon is not None:
            print("    the daemon's last lines:", *self.daemon.log[-12:], sep="\n      ")
        self.home.close(keep=kind is not None and "KEEP" in os.environ)

    def turnd(self, *flags):
        serve = [binary(), "serve", "--port", "0", "--workspace", self.home.workspace, "--store", self.home.store]
        agent = ["--agent", self.agent.command, "--transcript", self.agent.transcript]
        return self._start([*serve, *agent, *flags])

    def qwen_serve(self):
        """The peer: the real daemon of qwen-code, on the same home."""
        return self._start([*self.agent.serve, "--port", "0", "--workspace", self.home.workspace])

    def _start(self, command):
        folder = re.sub(r"[^A-Za-z0-9]", "-", str(self.home.workspace))
        chats = self.home.store / "projects" / folder / "chats"
        self.daemon = Daemon(command, self.home, self.environment, chats)
        return self.daemon

    def keep_store(self):
        """Keeps the store as it is now, so that two daemons can load the very same."""
        shutil.copytree(self.home.store, self.home.path / "kept")

    def put_store_back(self):
        shutil.rmtree(self.home.store)
        shutil.move(self.home.path / "kept", self.home.store)

    def agent_processes(self):
        """The pids of the agent itself. Daemon and host name it on their command lines too, but they are no Node."""
        lines = self.home.processes().items()
        return [pid for pid, line in lines if self.agent.mark in line and line.split()[0].endswith("/node")]

    def host_processes(self):
        return [pid for pid, line in self.home.processes().items() if line.split()[1:2] == ["host"]]

    def nothing_is_left(self):
        until("every process of the tree to be gone", lambda: not self.home.processes())
        saw("nothing of the process tree is left")


def on_a_stage(agent, flow):
    """The flow as run() wants it: without arguments, on a fresh stage that is always cleared."""

    def staged():
        with Stage(agent()) as stage:
            flow(stage)

    return staged


def binary():
    """The newest turnd that was built, or TURND_BIN."""
    built = [ROOT / "target" / kind / "turnd" for kind in ("release", "debug")]
    built = [os.environ["TURND_BIN"]] if "TURND_BIN" in os.environ else [b for b in built if b.exists()]
    if not built:
        raise FlowFailed("no turnd is built: run cargo build first, or set TURND_BIN")
    return max(built, key=os.path.getmtime)
