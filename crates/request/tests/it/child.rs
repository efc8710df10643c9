//! This test binary started again, to be killed where a plan says.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};

/// Tells a started test binary what to do; its absence, that it was not started for anything.
const PART: &str = "TURND_REQUEST_TEST_PART";

/// A shell's words before the test binary takes its place: everything is made as open as it is asked for.
pub(crate) const LOOSE: &str = "umask 000";

/// What this process was started for.
pub(crate) fn part() -> Option<String> {
    std::env::var_os(PART)?.into_string().ok()
}

/// Lets one test play a part in a process of its own, which its plan kills with signal 9.
pub(crate) fn killed(test: &str, part: &str, plan: &str) {
    let status = run(test, part, plan, "true");
    assert_eq!(status.signal(), Some(9), "{plan}: {status}");
}

/// Lets one test play a part in a process of its own, of which a shell sets before what only a whole process has.
pub(crate) fn run(test: &str, part: &str, plan: &str, set: &str) -> ExitStatus {
    Command::new("sh")
        .args(["-c", &format!(r#"{set}; exec "$0" "$@""#)])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env(PART, part)
        .env("TURND_FAIL_POINTS", plan)
        .stdout(Stdio::null())
        .status()
        .unwrap()
}
