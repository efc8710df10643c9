//! Turns the page `docs/openapi.yaml` into the JSON that is served, so that the two cannot differ.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

/// From this folder.
const PAGE: &str = "../../docs/openapi.yaml";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PAGE}");
    let document: serde_json::Value = serde_saphyr::from_str(&fs::read_to_string(PAGE)?)?;
    let folder = env::var_os("OUT_DIR").ok_or("cargo names no folder for what is built")?;
    fs::write(Path::new(&folder).join("openapi.json"), serde_json::to_vec(&document)?)?;
    Ok(())
}
