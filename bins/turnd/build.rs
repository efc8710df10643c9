//! Links the one thing that has to happen before Rust's runtime begins.

fn main() {
    let source = "src/closed_stdout.c";
    println!("cargo::rerun-if-changed={source}");
    // Its objects by name, since nothing calls what is in them, and a linker leaves out of a library what nobody calls.
    for object in cc::Build::new().file(source).warnings_into_errors(true).compile_intermediates() {
        println!("cargo::rustc-link-arg-bins={}", object.display());
    }
}
