//! The `turnd` program: parse, bind, wire, wait.

fn main() {}
