//! A command that a user runs in the workspace, not the agent: one process group, no input, one stream of output, an end.
//!
//! It is part of the session's tree, so that nothing of it outlives the session. What it leaves behind itself goes on until then,
//! with nobody to read it. What it carries beside the session's mark is a mark of its own, by which its processes are found when it
//! takes too long, also those that left its group.

use std::io;

use rustix::process::{Pid, Signal, WaitStatus, kill_process_group};
use tokio::net::unix::pipe;

use crate::launch::{self, Order};
use crate::limits::{COMMAND_OUTPUT_BYTES_MAX, READ_BYTES};
use crate::tree::Tree;

/// A command that runs.
#[derive(Debug)]
pub(crate) struct Command {
    /// None once it was reaped.
    pid: Option<Pid>,
    status: Option<WaitStatus>,
    /// None once everything was read, or nothing more is waited for.
    output: Option<pipe::Receiver>,
    chunk: Box<[u8]>,
    kept: Vec<u8>,
    is_cut: bool,
    is_aborted: bool,
    /// The variable that all its processes carry.
    mark: Vec<u8>,
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Both of its streams as they came, up to a limit.
    pub(crate) output: String,
    /// Whether there was more than the limit.
    pub(crate) is_cut: bool,
    /// Whether it was ended by us.
    pub(crate) is_aborted: bool,
}

impl Command {
    /// Starts it. Must run inside a tokio runtime, on a thread that lives as long as the host.
    pub(crate) fn start(order: &Order, text: &str) -> io::Result<Self> {
        let mark = uuid::Uuid::new_v4().to_string();
        let launch::Started { pid, output } = launch::start_command(order, text, &mark)?;
        Ok(Self {
            pid: Some(pid),
            status: None,
            output: Some(output),
            chunk: vec![0; READ_BYTES].into(),
            kept: Vec::new(),
            is_cut: false,
            is_aborted: false,
            mark: [launch::COMMAND_MARK.as_bytes(), b"=", mark.as_bytes()].concat(),
        })
    }

    /// Reads what comes next; 0 bytes are the end. Waits for ever behind it; dropping it loses nothing.
    pub(crate) async fn read(&mut self) -> io::Result<usize> {
        match &mut self.output {
            Some(output) => tokio::io::AsyncReadExt::read(output, &mut self.chunk).await,
            None => std::future::pending().await,
        }
    }

    /// Takes in what was read last.
    pub(crate) fn take(&mut self, read: &io::Result<usize>) {
        match read {
            Ok(length) if *length > 0 => {
                let room = COMMAND_OUTPUT_BYTES_MAX - self.kept.len();
                self.kept.extend_from_slice(&self.chunk[..room.min(*length)]);
                self.is_cut |= room < *length;
            }
            _ => self.output = None,
        }
    }

    /// Looks through what was reaped for the command. True when it was among it.
    pub(crate) fn was_reaped(&mut self, reaped: &[(Pid, WaitStatus)]) -> bool {
        let Some((_, status)) = reaped.iter().find(|(pid, _)| Some(*pid) == self.pid) else { return false };
        self.status = Some(*status);
        self.pid = None;
        true
    }

    /// Whether it has ended and all it said was read.
    pub(crate) fn is_over(&self) -> bool {
        self.pid.is_none() && self.output.is_none()
    }

    /// Ends it, with everything that it started.
    pub(crate) fn abort(&mut self, tree: &Tree) {
        self.is_aborted = true;
        if let Some(pid) = self.pid {
            // Its group is its own as long as it is not reaped.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        tree.kill(&tree.marked(&self.mark));
    }

    /// What is known of its end. What it said and nobody read yet is read as far as it is there and is kept: what it left behind may go on
    /// saying something for ever.
    pub(crate) fn end(mut self) -> Ended {
        while let Some(output) = &self.output {
            let read = output.try_read(&mut self.chunk);
            let is_more = matches!(read, Ok(length) if length > 0);
            self.take(&read);
            if !is_more || self.is_cut {
                break;
            }
        }
        Ended {
            exit_code: self.status.and_then(WaitStatus::exit_status),
            signal: self.status.and_then(WaitStatus::terminating_signal),
            output: text(self.kept, self.is_cut),
            is_cut: self.is_cut,
            is_aborted: self.is_aborted,
        }
    }
}

/// Output as text. Where it was cut, the character that was cut with it goes too.
fn text(mut bytes: Vec<u8>, is_cut: bool) -> String {
    if is_cut
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn output_is_cut_between_characters_and_what_is_no_text_is_replaced() {
        for (bytes, is_cut, expected) in [
            (&b"a\xc3\xbc"[..], false, "aü"),
            (b"a\xc3\xbcb\xc3", true, "aüb"),
            (b"a\xf0\x9f\x98", true, "a"),
            (b"a\xc3", false, "a\u{fffd}"),
            (b"\xffa\xc3", true, "\u{fffd}a\u{fffd}"),
            (b"", true, ""),
        ] {
            assert_eq!(text(bytes.to_vec(), is_cut), expected, "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn an_end_reads_no_further_than_what_is_kept() {
        let (mut sender, output) = pipe::pipe().unwrap();
        let mut rest = std::fs::File::from(output.as_fd().try_clone_to_owned().unwrap());
        let mut command = Command {
            pid: None,
            status: None,
            output: Some(output),
            chunk: vec![0; 1_000].into(),
            kept: vec![b'k'; COMMAND_OUTPUT_BYTES_MAX - 10],
            is_cut: false,
            is_aborted: false,
            mark: Vec::new(),
        };
        tokio::io::AsyncWriteExt::write_all(&mut sender, &[b's'; 5_000]).await.unwrap();
        command.output.as_mut().unwrap().readable().await.unwrap();
        let ended = command.end();
        drop(sender);
        assert_eq!((ended.output.len(), ended.is_cut), (COMMAND_OUTPUT_BYTES_MAX, true));
        let mut unread = Vec::new();
        rest.read_to_end(&mut unread).unwrap();
        assert_eq!(unread.len(), 4_000, "what goes on for ever is not followed");
    }
}
