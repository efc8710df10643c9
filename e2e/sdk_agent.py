#!/usr/bin/env python3
"""The example agent of the official TypeScript SDK behind turnd, unmodified; the host writes its transcript."""

import flows
from agents import SdkExample
from flow import run
from stage import on_a_stage

if __name__ == "__main__":
    run("sdk-agent", [(title, on_a_stage(SdkExample, flow)) for title, flow in flows.ALL])
