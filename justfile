# Everything that continuous integration runs, and what a person runs by hand. `just` alone lists it.

set shell := ["bash", "-euo", "pipefail", "-c"]

_default:
    @just --list --unsorted

# The whole check, as continuous integration runs it.
ci: test fmt lint doc e2e schemathesis differential miri (fuzz "10")

# Every test that needs no network and no other program.
test:
    cargo test --workspace

# The formatting, checked.
fmt:
    cargo fmt --all --check

# Clippy, warnings as errors.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# The documentation, warnings as errors.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features

# The release build, without the places where tests stop and kill.
build:
    cargo build --release
    ! grep -q TURND_FAIL_POINTS target/release/turnd

# The real agents and the real client, end to end; each recipe fetches its packages by itself.
e2e: e2e-sdk-agent e2e-qwen e2e-editor conformance

# The peer's TypeScript client, unmodified, drives turnd.
conformance: build
    e2e/run conformance

# The example agent of the official TypeScript SDK, recorded by turnd.
e2e-sdk-agent: build
    e2e/run sdk_agent

# The official SDK's client as an editor at the ACP door.
e2e-editor: build
    e2e/run editor

# The real qwen-code as a native agent, and its own daemon as the peer.
e2e-qwen: build
    e2e/run qwen

# The daemon against its own document (docs/openapi.yaml), with so many requests a route that fit it or do not; a minute or two.
schemathesis EXAMPLES="100" SEED="1": build
    python3 -B e2e/openapi.py {{EXAMPLES}} {{SEED}}

# Judges so many simulated worlds of each kind: just worlds 350000 [SEED].
worlds count="20000" seed="0":
    cargo run --release -p turnd-attribution --features strategies --example worlds -- {{count}} {{seed}}

# What qwen-code's own reconciliation and ours say of the same pairs of files: N generated ones, and the written cases.
differential N="500" SEED="1":
    python3 -B e2e/differential.py {{N}} {{SEED}}
    python3 -B e2e/wishes.py {{N}} {{SEED}}

# Kills within 20 ms after the answer to a cancel, and what the next load says: so many rounds.
cancel-kills ROUNDS="60" SEED="1": build
    python3 -B e2e/wish_kills.py {{ROUNDS}} {{SEED}}

# Sequences of all that may happen to a session, by four clients at once and with kills, against a model: so many of them.
lives SEQUENCES="20" SEED="1": build
    python3 -B e2e/lives.py {{SEQUENCES}} {{SEED}}

# So many kills under return requests that are posted, repeated and cancelled by four clients at once, and what must hold behind each.
return-kills KILLS="40" SEED="1": build
    python3 -B e2e/return_kills.py {{KILLS}} {{SEED}}

# The same, with all else that may happen to the sessions of requests, and a stranger's words in their transcripts.
return-changes KILLS="40" SEED="1": build
    python3 -B e2e/return_changes.py {{KILLS}} {{SEED}}

# What a verdict and a cold load cost us and what a cold load costs qwen-code, on the same 100 MB session.
load-cost: build
    python3 -B e2e/load_cost.py

# What a page of a list costs with so many sessions on disk.
list-cost SESSIONS="10000" ROUNDS="15": build
    python3 -B e2e/list_cost.py {{SESSIONS}} {{ROUNDS}}

# Every fuzz target for so many seconds (docs/fuzzing.md); skipped where that cannot be built.
fuzz SECONDS="20":
    fuzz/run {{SECONDS}}

# The seeds of the fuzz targets, made from fixtures/.
fuzz-corpus:
    fuzz/corpus.py

# The parser of the ledger under Miri; skipped where there is none.
miri:
    #!/usr/bin/env bash
    set -euo pipefail
    if ! cargo +nightly miri --version >/dev/null 2>&1 \
        && ! rustup component add --quiet --toolchain nightly miri rust-src >/dev/null 2>&1; then
        echo "miri: skipped, there is no nightly toolchain with it"
        exit 0
    fi
    cargo +nightly miri test --package turnd-ledger --lib

# The measured figures of docs/performance.md.
bench: build
    cargo bench -p turnd --bench daemon
    cargo bench -p turnd --bench crowd
    cargo bench -p turnd --bench loads
    cargo bench -p turnd --bench returns
    cargo bench -p turnd --bench webhooks
    cargo bench -p turnd-request --bench store
    cargo bench -p turnd-ledger --bench throughput
    cargo run --release -p turnd-attribution --example reading_cost
