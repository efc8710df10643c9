//! The arrows between crates, as a table: a new arrow is a visible edit here and in `docs/architecture.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// What each crate may depend on: ours first, then from outside. Features and versions are the manifests' business.
const ARROWS: &[(&str, &[&str], &[&str])] = &[
    ("turnd-ledger", &[], &[]),
    ("turnd-transcript", &[], &["jiff", "memchr", "serde", "serde_json", "thiserror", "uuid"]),
    ("turnd-attribution", &["turnd-ledger", "turnd-transcript"], &["thiserror"]),
    ("turnd-acp", &[], &["agent-client-protocol-schema", "bytes", "serde", "serde_json"]),
    (
        "turnd-bridge",
        &["turnd-acp"],
        &["bytes", "parking_lot", "serde", "serde_json", "thiserror", "tokio", "tracing", "uuid"],
    ),
    (
        "turnd-host",
        &["turnd-acp", "turnd-transcript"],
        &["bytes", "rustix", "serde", "serde_json", "thiserror", "tokio", "tracing", "uuid"],
    ),
    (
        "turnd-request",
        &[],
        &["base64", "rusqlite", "rustix", "serde", "serde_json", "sha2", "thiserror", "tracing", "uuid"],
    ),
    ("turnd-agent", &["turnd-acp"], &["bytes", "serde_json", "tokio"]),
    (
        "turnd-serve",
        &["turnd-acp", "turnd-attribution", "turnd-bridge", "turnd-ledger", "turnd-request", "turnd-transcript"],
        &[
            "bytes",
            "futures-util",
            "http-body-util",
            "httpdate",
            "hyper",
            "hyper-util",
            "matchit",
            "percent-encoding",
            "rustls-native-certs",
            "serde",
            "serde-saphyr",
            "serde_json",
            "sha2",
            "subtle",
            "thiserror",
            "tokio",
            "tokio-rustls",
            "tokio-tungstenite",
            "tracing",
            "uuid",
        ],
    ),
    (
        "turnd",
        &[
            "turnd-agent",
            "turnd-attribution",
            "turnd-host",
            "turnd-ledger",
            "turnd-request",
            "turnd-serve",
            "turnd-transcript",
        ],
        &[
            "bytes",
            "clap",
            "clap_complete",
            "clap_mangen",
            "getrandom",
            "http-body-util",
            "hyper",
            "hyper-util",
            "percent-encoding",
            "rustix",
            "rustls-native-certs",
            "serde_json",
            "shlex",
            "tokio",
            "tokio-rustls",
            "tracing",
            "tracing-subscriber",
            "uuid",
        ],
    ),
];

#[test]
fn the_manifests_have_exactly_the_arrows_of_the_table() {
    let manifests = dependencies(&[Value::Null, Value::from("build")]);
    let table: BTreeMap<String, BTreeSet<String>> = ARROWS
        .iter()
        .map(|(name, ours, outside)| {
            ((*name).to_owned(), ours.iter().chain(*outside).map(|name| (*name).to_owned()).collect())
        })
        .collect();
    assert_eq!(manifests, table);
}

#[test]
fn the_ledger_needs_nothing_not_even_to_be_tested() {
    let all = dependencies(&[Value::Null, Value::from("build"), Value::from("dev")]);
    assert_eq!(all["turnd-ledger"], BTreeSet::new());
}

/// What a crate from outside may be licensed under; one alternative of its expression must consist of these.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "Zlib",
    // Only the tables of `unicode-ident`, which runs inside the compiler and ships in nothing.
    "Unicode-3.0",
];

#[test]
fn every_crate_from_outside_is_licensed_for_us() {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(rustc.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    // Only what this platform builds with has been fetched.
    let metadata = metadata(&["--filter-platform", host]);
    let barred: Vec<&Value> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| !is_licensed(package["license"].as_str().unwrap_or_default()))
        .map(|package| &package["name"])
        .collect();
    assert_eq!(barred, Vec::<&Value>::new());
}

/// Every part that is joined by AND offers an alternative that we may take.
fn is_licensed(expression: &str) -> bool {
    let ours = |alternative: &str| LICENCES.contains(&alternative.trim_matches(['(', ')', ' ']));
    expression.split(" AND ").all(|part| part.split(" OR ").flat_map(|part| part.split('/')).any(ours))
}

/// Each workspace member's dependencies of the given kinds; an optional one does not count.
fn dependencies(kinds: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let names = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|dependency| kinds.contains(&dependency["kind"]) && dependency["optional"] == false)
                .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
                .collect();
            (package["name"].as_str().unwrap().to_owned(), names)
        })
        .collect()
}

/// What cargo knows of the workspace.
fn metadata(flags: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .args(flags)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
