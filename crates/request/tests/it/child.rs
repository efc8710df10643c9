//! This test binary started again, to be killed where a plan says.

use std::process::{Command, Stdio};

/// Tells a started test binary what to do; its absence, that it was not started for anything.
pub(crate) const PART: &str = "TURND_REQUEST_TEST_PART";

/// What this process was started for.
pub(crate) fn part() -> Option<String> {
    std::env::var_os(PART)?.into_string().ok()
}

/// Lets one test play a part in a process of its own, which its plan kills with signal 9.
pub(crate) fn killed(test: &str, part: &str, plan: &str) {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env(PART, part)
        .env("TURND_FAIL_POINTS", plan)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{plan}: {status}");
}
