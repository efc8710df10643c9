//! What the benchmarks share: how a daemon is asked, and how a figure is told.

use std::time::Instant;

/// The built-in agent without the moment that it takes before an answer, so that the daemon is what is measured.
pub(crate) const AGENT: [&str; 2] = ["--agent", concat!(env!("CARGO_BIN_EXE_turnd"), " agent --answer-after-ms 0")];

/// The text under a key, wherever it stands.
pub(crate) fn member(json: &str, key: &str) -> String {
    let start = json.split(&format!("\"{key}\":\"")).nth(1).unwrap_or_else(|| panic!("no {key} in {json}"));
    start.split('"').next().unwrap().to_owned()
}

/// What a process holds in memory.
pub(crate) fn resident_mb(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

pub(crate) fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Times in milliseconds, as their middle and their worst.
pub(crate) fn spread(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    report(&format!("{what}, p50"), times[times.len() / 2], "ms");
    report(&format!("{what}, p99"), times[times.len() * 99 / 100], "ms");
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
pub(crate) fn report(what: &str, figure: f64, unit: &str) {
    println!("{what:<42} {figure:>12.3} {unit}");
}
