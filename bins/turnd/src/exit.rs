//! How the commands that talk to a daemon end: a status for programs, one line on stderr for people.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use crate::client::{Answer, ClientError};

/// The exit statuses, as the help texts list them (return request rules, section 2.14).
pub(crate) const STATUSES: &str = "\
Exit status:
  0    done
  1    something else: an answer that cannot be meant, an output that takes nothing
  2    wrong usage
  3    not found, or expired
  4    the request id was used for other input
  5    refused for certain, nothing sent: busy, over a limit, another incarnation, not allowed
  6    the cursor is too old: what stands behind it was pruned
  7    the cursor is ahead of the stream, or the stream is another one
  8    the daemon cannot use its store
  9    the daemon cannot be reached, or is going away; send: refused, but perhaps taken before
  10   wait: the request ended, but not as completed
  11   wait: still pending at the limit; send: it is on record, and its receipt cannot be had
  12   store recover: there is a store again, but not all of the old one is in it
  141  nobody reads the output any more";

/// The longest text of a daemon that is repeated on stderr, in characters: it is one line for a person.
const TEXT_CHARS_MAX: usize = 400;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Reused = 4,
    Rejected = 5,
    TooOld = 6,
    Ahead = 7,
    Store = 8,
    Unreachable = 9,
    NotCompleted = 10,
    Pending = 11,
    Lost = 12,
    /// What a shell makes of a program that a closed pipe ended.
    Unheard = 141,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl Exit {
    /// What an answer other than a success means. The code decides where it is one of ours; the status decides for those of a proxy or of
    /// a daemon that is newer than this program.
    pub(crate) fn of(status: u16, code: &str) -> Self {
        match code {
            "request_id_reused" => return Self::Reused,
            "request_id_expired" => return Self::NotFound,
            "cursor_too_old" => return Self::TooOld,
            "cursor_ahead" | "stream_changed" | "stream_diverged" => return Self::Ahead,
            "draining" => return Self::Unreachable,
            _ if code.starts_with("store_") || code == "storage_full" => return Self::Store,
            _ => {}
        }
        match status {
            400 => Self::Usage,
            404 | 410 => Self::NotFound,
            401..=499 => Self::Rejected,
            507 => Self::Store,
            502..=504 => Self::Unreachable,
            _ => Self::Failed,
        }
    }
}

/// A command that did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// One line for a person; nothing where nobody reads the output any more.
    pub(crate) text: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, text: impl Into<String>) -> Self {
        Self { exit, text: Some(text.into()) }
    }

    /// Nobody reads the output any more, and nobody is told so.
    pub(crate) fn unheard() -> Self {
        Self { exit: Exit::Unheard, text: None }
    }

    /// What a daemon refused, with its code and its words.
    pub(crate) fn refused(answer: &Answer) -> Self {
        let body = answer.json();
        let code = body["code"].as_str().unwrap_or_default();
        let mut text = if code.is_empty() { answer.status.to_string() } else { code.to_owned() };
        if let Some(words) = body["error"].as_str().filter(|words| *words != code) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {words}");
        }
        if let Some(written) = body["input_written"].as_str() {
            let _ = write!(text, "; input_written: {written}");
        }
        Self::new(Exit::of(answer.status, code), printable(&text))
    }

    /// The same of a request that is known to be on record: what it came to is not known yet, and that is no error.
    pub(crate) fn pending(self, id: &str) -> Self {
        Self { exit: Exit::Pending, ..self.on_record(id) }
    }

    /// The same of a request that is known to be on record, and who tells more of it.
    pub(crate) fn on_record(self, id: &str) -> Self {
        self.and(&format!("the request is on record: `turnd request wait {id}` tells what becomes of it"))
    }

    /// The same of a prompt that may have been taken all the same: whatever refused it now did not refuse it for certain.
    pub(crate) fn doubted(self) -> Self {
        let exit = if self.exit == Exit::Rejected { Exit::Unreachable } else { self.exit };
        Self { exit, ..self }
    }

    /// The same with something more to say, in the same line.
    pub(crate) fn and(mut self, more: &str) -> Self {
        if let Some(text) = &mut self.text {
            text.push_str("; ");
            text.push_str(more);
        }
        self
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let exit = match error {
            ClientError::Request(_) => Exit::Usage,
            ClientError::Answer(_) => Exit::Failed,
            _ => Exit::Unreachable,
        };
        Self::new(exit, printable(&error.to_string()))
    }
}

/// Stdout takes nothing, and the error says so: whoever closed the pipe has read enough and is not told.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::unheard()
        } else {
            Self::new(Exit::Failed, error.to_string())
        }
    }
}

/// A text of somebody else as part of one line on a terminal: no control character, and not without end.
pub(crate) fn printable(text: &str) -> String {
    let mut shown: String =
        text.chars().take(TEXT_CHARS_MAX).map(|char| if char.is_control() { ' ' } else { char }).collect();
    if text.chars().nth(TEXT_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn every_answer_of_the_rules_has_its_exit_status() {
        for (status, code, expected) in [
            (400, "invalid_request_id", 2),
            (404, "session_not_found", 3),
            (404, "request_not_found", 3),
            (410, "request_id_expired", 3),
            (422, "request_id_reused", 4),
            (409, "busy", 5),
            (409, "stale_incarnation", 5),
            (409, "session_tainted", 5),
            (409, "session_closed", 5),
            (413, "payload_too_large", 5),
            (422, "something_new", 5),
            (429, "too_many_requests", 5),
            (401, "unauthorized", 5),
            (403, "origin_not_allowed", 5),
            (410, "cursor_too_old", 6),
            (409, "cursor_ahead", 7),
            (409, "stream_changed", 7),
            (409, "stream_diverged", 7),
            (503, "store_busy", 8),
            (503, "store_unavailable", 8),
            (503, "store_corrupt", 8),
            (507, "storage_full", 8),
            (503, "draining", 9),
            (503, "too_many_subscribers", 9),
            (502, "", 9),
            (504, "", 9),
            (500, "internal_error", 1),
            (301, "", 1),
        ] {
            assert_eq!(Exit::of(status, code) as u8, expected, "{status} {code}");
        }
    }

    #[test]
    fn the_help_lists_every_exit_status() {
        use Exit::{
            Ahead, Done, Failed, Lost, NotCompleted, NotFound, Pending, Rejected, Reused, Store, TooOld, Unheard,
            Unreachable, Usage,
        };
        let listed: Vec<u8> =
            STATUSES.lines().skip(1).map(|line| line.split_whitespace().next().unwrap().parse().unwrap()).collect();
        let all = [
            Done,
            Failed,
            Usage,
            NotFound,
            Reused,
            Rejected,
            TooOld,
            Ahead,
            Store,
            Unreachable,
            NotCompleted,
            Pending,
            Lost,
            Unheard,
        ];
        assert_eq!(listed, all.map(|exit| exit as u8));
    }

    #[test]
    fn a_refusal_is_one_line_with_the_daemons_code() {
        let long = format!(r#"{{"error":"{}"}}"#, "x".repeat(1_000));
        for (status, body, expected) in [
            (
                409,
                r#"{"error":"a turn is running","code":"busy","input_written":"no"}"#,
                "busy: a turn is running; input_written: no",
            ),
            (502, "<html>\n<body>", "502"),
            (404, r#"{"error":"two\nlines \u001b[31mred"}"#, "404: two lines  [31mred"),
            (500, &long, &format!("500: {}…", "x".repeat(TEXT_CHARS_MAX - 5))),
        ] {
            let answer = Answer { status, retry_after: None, body: Bytes::copy_from_slice(body.as_bytes()) };
            assert_eq!(Failure::refused(&answer).text.as_deref(), Some(expected), "{body}");
        }
    }
}
