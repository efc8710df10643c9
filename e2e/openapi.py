#!/usr/bin/env python3
"""Has schemathesis hold a running turnd against its own document: every route, with requests that fit the document and requests that do not.

    e2e/openapi.py [EXAMPLES [SEED]]

The daemon is a built one with the built-in agent, a throw-away store and a token. Schemathesis comes from PyPI, once, in an exact
version. What the document cannot say is in openapi_hooks.py; what is counted as right in openapi.toml.
"""

import os
import subprocess
import sys

from flow import AGENTS, ROOT, Daemon, FlowFailed, Home
from stage import binary

VERSION = "4.32.5"
EXAMPLES, SEED = "100", "1"
TOKEN = "the-token-of-this-run"
HERE = ROOT / "e2e"
CALL_SECONDS = 20  # no answer takes this long; one that does is a failure


def fetched():
    """How the program is started, fetched if it is not there in this version. Its own first line names the folder it was fetched into, which a
    checkout that was moved is not in any more."""
    home = AGENTS / f"schemathesis-{VERSION}"
    python, program = home / "bin" / "python", home / "bin" / "schemathesis"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"schemathesis=={VERSION}"]
        subprocess.run(pip, check=True)
    return [python, program]


def held(program, examples, seed):
    """The exit status of the run; nothing of the daemon is left behind."""
    home = Home("openapi")
    try:
        serve = [binary(), "serve", "--port", "0", "--workspace", home.workspace, "--store", home.store]
        # No limit that a busy tester would only run into, but for the sessions': each is two processes.
        serve += ["--require-auth", "--max-pending-prompts-per-session", "0", "--log-level", "error"]
        daemon = Daemon(serve, home, home.environment(TURND_TOKEN=TOKEN), home.store)
        url = f"http://127.0.0.1:{daemon.port}"
        run = [*program, "--config-file", HERE / "openapi.toml", "run", f"{url}/openapi.json", "--url", url]
        run += ["--header", f"Authorization: Bearer {TOKEN}", "--request-timeout", str(CALL_SECONDS)]
        # An unknown method is 404, as the peer answers; openapi_hooks.py has a check of its own for it.
        run += ["--checks", "all", "--exclude-checks", "unsupported_method", "--max-examples", examples, "--seed", seed]
        hooks = {"SCHEMATHESIS_HOOKS": "openapi_hooks", "PYTHONPATH": str(HERE), "TURND_WORKSPACE": str(home.workspace)}
        status = subprocess.run(run, cwd=home.path, env=os.environ | hooks, check=False).returncode
        if daemon.process.poll() is not None:
            raise FlowFailed("the daemon ended during the run:\n" + "\n".join(daemon.log[-20:]))
        return status
    finally:
        home.close()


if __name__ == "__main__":
    examples, seed = (sys.argv[1:] + [EXAMPLES, SEED][len(sys.argv) - 1 :])[:2]
    try:
        sys.exit(held(fetched(), examples, seed))
    except (FlowFailed, subprocess.CalledProcessError) as failure:
        sys.exit(f"openapi: {failure}")
