//! Taste as a test: what a reader is promised about the tree.

use std::fs;
use std::path::{Path, PathBuf};

/// Production lines a source file may have: beyond this it is no longer one thing.
const FILE_LINES_MAX: usize = 500;

#[test]
fn no_source_file_is_longer_than_one_thing() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter_map(|path| {
            let lines = production_lines(&fs::read_to_string(&path).unwrap());
            (lines > FILE_LINES_MAX).then(|| format!("{} has {lines} lines", path.display()))
        })
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn every_source_file_opens_with_what_it_is() {
    let bare: Vec<PathBuf> =
        sources().into_iter().filter(|path| !fs::read_to_string(path).unwrap().starts_with("//! ")).collect();
    assert_eq!(bare, Vec::<PathBuf>::new());
}

#[test]
fn the_map_names_every_crate() {
    let map = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let missing: Vec<String> = members().into_iter().filter(|name| !map.contains(&format!("`{name}`"))).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_file_that_the_documents_name_is_there() {
    let mut missing = Vec::new();
    for document in ["README.md", "docs/architecture.md", "docs/formats.md", "docs/performance.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let named = text.split('`').skip(1).step_by(2).filter(|word| {
            ["crates/", "bins/", "docs/", "fixtures/", "e2e/"].iter().any(|folder| word.starts_with(folder))
        });
        missing.extend(named.filter(|path| !root().join(path).exists()).map(|path| format!("{document}: {path}")));
    }
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn one_function_constructs_a_bridge() {
    let sites: usize = sources()
        .iter()
        .filter(|path| path.starts_with(root().join("crates/serve")) || path.starts_with(root().join("bins")))
        .map(|path| fs::read_to_string(path).unwrap().matches("Bridge::new(").count())
        .sum();
    assert_eq!(sites, 1, "the ledger sink is handed over in one place");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn members() -> Vec<String> {
    let mut names = Vec::new();
    for folder in ["crates", "bins"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            names.push(entry.unwrap().file_name().into_string().unwrap());
        }
    }
    names
}

/// Every file below a `src` folder that ships: a `tests.rs` beside the code it tests does not.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("bins")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if ships(&path) {
                found.push(path);
            }
        }
    }
    found
}

fn ships(path: &Path) -> bool {
    let in_src = path.iter().any(|part| part == "src");
    in_src && path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs")
}

/// Lines that are neither blank nor below the file's test module.
fn production_lines(text: &str) -> usize {
    text.lines().take_while(|line| *line != "#[cfg(test)]").filter(|line| !line.trim().is_empty()).count()
}
