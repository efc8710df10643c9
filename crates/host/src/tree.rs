//! The agent's process tree: everything that descends from this process, and everything that carries the session's mark.
//!
//! Children of a dead process are adopted by this one (it is their *subreaper*), so that the chain of parents stays
//! whole also for what has moved to a session of its own. The mark, an environment variable, finds what was adopted by
//! somebody else, because the host above it had died. Where the system shows no processes under `/proc`, only the
//! agent's group can be ended.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, wait};

use crate::launch::SESSION_FILE_MARK;

/// One process, as the system lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    /// When it started, in ticks since boot: with the pid it names one process for good.
    pub(crate) start_ticks: u64,
    /// It runs no more and waits to be reaped.
    dead: bool,
}

/// Whose processes are meant.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    me: i32,
    /// The mark of the session, once its lock is held: before that, what is marked belongs to another host.
    mark: Option<Vec<u8>>,
}

/// Makes this process the one that adopts the orphans below it, and takes it out of the daemon's group, so that the
/// death of that group does not reach it. Both may fail, and the host then guards as well as it can.
pub(crate) fn become_guardian() {
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(Some(getpid())) {
        tracing::warn!(%error, "orphans of the agent cannot be adopted");
    }
}

impl Tree {
    /// The descendants of this process.
    pub(crate) fn below_me() -> Self {
        Self { me: getpid().as_raw_nonzero().get(), mark: None }
    }

    /// The descendants of this process, and every process marked with the session's transcript.
    pub(crate) fn of_session(transcript: &OsStr) -> Self {
        let mark = [SESSION_FILE_MARK.as_bytes(), b"=", transcript.as_bytes()].concat();
        Self { mark: Some(mark), ..Self::below_me() }
    }

    /// Every process of the tree that still runs.
    pub(crate) fn members(&self) -> Vec<Process> {
        let all = processes();
        let marked = |process: &Process| self.mark.as_ref().is_some_and(|mark| is_marked(process.pid, mark));
        plan(&all, self.me, marked)
    }

    /// Every process that carries a mark of its own in its environment (`NAME=value`) and still runs.
    pub(crate) fn marked(&self, mark: &[u8]) -> Vec<Process> {
        let is_theirs = |process: &Process| !process.dead && process.pid != self.me && is_marked(process.pid, mark);
        processes().into_iter().filter(is_theirs).collect()
    }

    /// Sends SIGKILL to each. Those that have ended in the meantime are left alone, also when their pid is used anew.
    pub(crate) fn kill(&self, doomed: &[Process]) {
        for process in doomed {
            if let Err(error) = kill(*process) {
                tracing::debug!(pid = process.pid, %error, "a process could not be killed");
            }
        }
    }
}

/// Which of all processes belong to the tree of `me`: descendants, and whatever is marked; never `me`, never those it
/// descends from, never the dead.
fn plan(all: &[Process], me: i32, marked: impl Fn(&Process) -> bool) -> Vec<Process> {
    let parents: HashMap<i32, i32> = all.iter().map(|process| (process.pid, process.parent)).collect();
    let ancestors: HashSet<i32> = chain(&parents, me).collect();
    let descends = |process: &Process| chain(&parents, process.parent).any(|pid| pid == me);
    let belongs = |process: &&Process| {
        !process.dead && !ancestors.contains(&process.pid) && (descends(process) || marked(process))
    };
    all.iter().filter(belongs).copied().collect()
}

/// A process and those it descends from. The list was not taken at one moment and pids are used anew, so a circle is
/// possible; it ends with the length of the list.
fn chain(parents: &HashMap<i32, i32>, pid: i32) -> impl Iterator<Item = i32> {
    std::iter::successors(Some(pid), |pid| parents.get(pid).copied()).take(parents.len() + 1)
}

/// Reaps every child that has ended, ours and adopted ones, whatever its process group: the agent has one of its own.
pub(crate) fn reap() -> Vec<(Pid, WaitStatus)> {
    std::iter::from_fn(|| wait(WaitOptions::NOHANG).ok().flatten()).collect()
}

/// When this process started, in ticks since boot.
pub(crate) fn my_start_ticks() -> Option<u64> {
    Some(process(&fs::read_to_string("/proc/self/stat").ok()?)?.start_ticks)
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| look_at(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// When a process started, in ticks since boot.
pub(crate) fn start_ticks(pid: i32) -> Option<u64> {
    look_at(pid).map(|process| process.start_ticks)
}

fn look_at(pid: i32) -> Option<Process> {
    process(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a `stat` line. The name of the program stands in parentheses and may hold anything, parentheses too.
fn process(stat: &str) -> Option<Process> {
    let (head, tail) = (stat.split_once(' ')?.0, stat.rsplit_once(") ")?.1);
    let mut fields = tail.split_ascii_whitespace();
    let dead = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    // The start is field 22 of the line, and the state was the third.
    let start_ticks = fields.nth(17)?.parse().ok()?;
    Some(Process { pid: head.parse().ok()?, parent, start_ticks, dead })
}

fn is_marked(pid: i32, mark: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark)
}

/// Sends a signal to the host that `owner` names, if it is one: see [`crate::dismiss`].
#[cfg(target_os = "linux")]
pub(crate) fn signal_host(owner: &transcript::Owner, lock: &Path, signal: Signal) -> io::Result<()> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let unproven = || io::Error::other("the holder of the session's lock is not provably a host");
    let raw = i32::try_from(owner.pid).map_err(|_| unproven())?;
    let pid = Pid::from_raw(raw).ok_or_else(unproven)?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    let is_named = owner.start_ticks.is_some() && look_at(raw).map(|now| now.start_ticks) == owner.start_ticks;
    if is_named && has_open(raw, lock) && was_started_as_host(raw) && catches(raw, signal) {
        return Ok(pidfd_send_signal(handle, signal)?);
    }
    Err(unproven())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn signal_host(_owner: &transcript::Owner, _lock: &Path, _signal: Signal) -> io::Result<()> {
    Err(io::Error::other("this system does not show whose the session's lock is"))
}

/// Whether a process has the file open, under whatever name.
#[cfg(target_os = "linux")]
fn has_open(pid: i32, file: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
    let Some(wanted) = identity(file) else { return false };
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.into_iter().any(|entry| identity(&entry.path()) == Some(wanted))
}

/// Whether the first argument of a process is the word by which hosts are started.
#[cfg(target_os = "linux")]
fn was_started_as_host(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|byte| *byte == 0).nth(1) == Some(b"host")
}

/// Whether a process has a use of its own for a signal: an older host that has none would die of it and leave its agent behind.
#[cfg(target_os = "linux")]
fn catches(pid: i32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
    caught.is_some_and(|caught| caught >> (signal.as_raw() - 1) & 1 == 1)
}

#[cfg(target_os = "linux")]
fn kill(process: Process) -> io::Result<()> {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = Pid::from_raw(process.pid) else { return Ok(()) };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        // A system without handles: the moment between the list and the signal is all there is to go wrong.
        Err(rustix::io::Errno::NOSYS) => return Ok(rustix::process::kill_process(pid, Signal::KILL)?),
        Err(error) => return Err(error.into()),
    };
    // The handle is fixed now. If what it names is not what was listed, the pid has been used anew.
    if look_at(process.pid).is_some_and(|now| now.start_ticks == process.start_ticks) {
        pidfd_send_signal(handle, Signal::KILL)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn kill(process: Process) -> io::Result<()> {
    let Some(pid) = Pid::from_raw(process.pid) else { return Ok(()) };
    Ok(rustix::process::kill_process(pid, Signal::KILL)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_program_is_called() {
        let rest = "S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99 100";
        for name in ["sh", "a b", "x) Z 1 (", ""] {
            let read = process(&format!("12 ({name}) {rest}")).unwrap();
            assert_eq!(read, Process { pid: 12, parent: 7, start_ticks: 4242, dead: false }, "{name}");
        }
        assert!(process("12 (sh) Z 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0").unwrap().dead);
        for torn in ["", "12", "12 (sh", "12 (sh) S", "12 (sh) S 7 1"] {
            assert_eq!(process(torn), None, "{torn}");
        }
    }

    /// Processes in a short notation: `pid<parent`, `!` for a dead one, `*` for a marked one.
    fn check(list: &str, me: i32, expected: &[i32]) {
        let mut marked = HashSet::new();
        let mut all = Vec::new();
        for word in list.split(' ') {
            let (pid, parent) = word.trim_end_matches(['!', '*']).split_once('<').unwrap();
            let (pid, parent) = (pid.parse().unwrap(), parent.parse().unwrap());
            if word.ends_with('*') {
                marked.insert(pid);
            }
            all.push(Process { pid, parent, start_ticks: 0, dead: word.ends_with('!') });
        }
        let pids: Vec<_> = plan(&all, me, |process| marked.contains(&process.pid)).iter().map(|it| it.pid).collect();
        assert_eq!(pids, expected, "{list}");
    }

    #[test]
    fn a_tree_is_what_descends_and_what_is_marked() {
        check("1<0 5<1 6<5 7<6 8<1", 5, &[6, 7]);
        check("1<0 5<1 6<5! 7<6 8<1*", 5, &[7, 8]);
        check("1<0 5<1", 5, &[]);
    }

    #[test]
    fn a_host_never_ends_itself_or_those_it_descends_from() {
        check("1<0 4<1* 5<4* 6<5", 5, &[6]);
    }

    #[test]
    fn a_circle_in_a_list_taken_while_it_changed_ends() {
        check("1<0 5<1 6<7 7<6", 5, &[]);
    }

    #[test]
    fn this_process_finds_itself() {
        let me = getpid().as_raw_nonzero().get();
        if let Some(ticks) = my_start_ticks() {
            assert!(processes().iter().any(|process| process.pid == me && process.start_ticks == ticks));
        }
    }
}
