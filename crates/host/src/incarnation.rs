//! Which process an agent is: told apart from every other one, also behind a restart of the machine and where pids are used anew.

use std::fs;

use rustix::process::Pid;

use crate::tree;

/// One process for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Incarnation {
    pub(crate) pid: i32,
    /// When it started, in the kernel's ticks since boot.
    pub(crate) start_ticks: u64,
    /// Which boot of the machine that was.
    pub(crate) boot_id: String,
}

impl Incarnation {
    /// The process of that pid, which must not have been reaped. None where the system does not show it.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let pid = pid.as_raw_nonzero().get();
        let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        Some(Self { pid, start_ticks: tree::start_ticks(pid)?, boot_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_the_same_whenever_it_is_looked_at() {
        let me = rustix::process::getpid();
        let first = Incarnation::of(me);
        assert_eq!(first, Incarnation::of(me));
        if let Some(first) = first {
            assert_eq!(first.pid, me.as_raw_nonzero().get());
            assert!(!first.boot_id.is_empty() && first.start_ticks > 0);
        }
    }
}
