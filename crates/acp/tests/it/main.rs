//! The crate from outside: recorded traffic, and streams of it cut anywhere.

#![expect(clippy::unwrap_used, reason = "a test helper fails by panicking")]

extern crate turnd_acp as acp;

mod authored;
mod recorded;
mod stream;

/// Every recorded line, with the file it is from.
fn recorded_lines() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/acp");
    let mut lines = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            lines.extend(text.lines().map(|line| (name.clone(), line.to_owned())));
        }
    }
    assert!(lines.len() > 100, "the recorded lines are missing");
    lines
}
