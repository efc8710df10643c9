//! The one place that constructs a bridge (design, section 2).

use std::path::Path;

fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The text without its tests.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

#[test]
fn one_place_constructs_a_bridge_and_it_takes_the_sink() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 20, "{} files found", files.len());
    let sites: Vec<_> = files.iter().filter(|(_, text)| text.contains("Bridge::new(")).collect();
    assert_eq!(sites.len(), 1, "{:?}", sites.iter().map(|(path, _)| path).collect::<Vec<_>>());
    let (path, text) = sites[0];
    assert!(path.ends_with("src/wiring.rs"), "{path}");
    assert_eq!(text.matches("Bridge::new(").count(), 1);
    assert!(text.contains("ledger: sink"), "the sink goes in");
    // Whoever has a workspace has its bridge: the primary one, further ones, and editors who come by a WebSocket.
    let files = || files.iter().filter(|(path, _)| !path.ends_with("tests.rs"));
    let count = |what: &str| files().map(|(_, text)| shipped(text).matches(what).count()).sum::<usize>();
    assert_eq!((count("wire(Arc::clone(&sink)"), count("LedgerSink::new("), count("Workspace::new(")), (1, 1, 1));
}
