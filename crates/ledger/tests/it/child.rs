//! The other side of the tests that need real processes: this test binary, started again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use turnd_ledger::{AppendError, Durability, Ledger, Record};

/// Tells a started test binary which part it plays; its absence, that it plays none.
const PART: &str = "TURND_LEDGER_TEST_PART";

/// A user with no rights, on the systems where tests may run as the one who has all of them.
pub(crate) const NOBODY: u32 = 65_534;

/// What a child does to the ledger at its path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Appends this many records `<writer>-<number>` and ends.
    Append { writer: u32, records: u32 },
    /// Appends records `<number>`, many more than its caller waits for before it kills the child.
    AppendLong { durability: Durability },
    /// Appends until the file may not grow, and expects a short write or none, and then a full disk.
    FillUp,
    /// Appends once and expects to be told that the place is read-only.
    FindReadOnly,
    /// Appends to a ledger whose name, or the name of a folder made for it, is in a folder that may not be looked into and
    /// so not synced: that is told, each time anew, with the promise that needs it and not without.
    FindNotSynced,
}

/// A command that plays `part` on the ledger at `path`, started by `shell` (a line that ends in `exec "$0" "$@"`), as
/// a limit or a mask of the process has to be set before the process is.
pub(crate) fn playing(part: Part, path: &Path, shell: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", shell]);
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "child::the_part_of_a_child", "--test-threads=1"]);
    command.env(PART, format!("{}\n{}", spell(part), path.display()));
    command.stdout(Stdio::null());
    command
}

/// A running child that plays `part`.
pub(crate) fn spawn(part: Part, path: &Path) -> Child {
    playing(part, path, r#"exec "$0" "$@""#).spawn().unwrap()
}

/// Runs a child that plays `part` to its end. What it does not find as expected fails the caller's test.
pub(crate) fn run(part: Part, path: &Path, shell: &str) {
    let status = playing(part, path, shell).status().unwrap();
    assert!(status.success(), "a child did not find what it expected as {part:?}: {status}");
}

fn spell(part: Part) -> String {
    match part {
        Part::Append { writer, records } => format!("append {writer} {records}"),
        Part::AppendLong { durability: Durability::Process } => "long process".to_owned(),
        Part::AppendLong { durability: Durability::Fsync } => "long fsync".to_owned(),
        Part::FillUp => "fill".to_owned(),
        Part::FindReadOnly => "read-only".to_owned(),
        Part::FindNotSynced => "not-synced".to_owned(),
    }
}

/// Not a test of its own: what a child runs. In the first process it has no part and nothing to do.
#[test]
fn the_part_of_a_child() {
    let Some(part) = std::env::var_os(PART) else {
        return;
    };
    let part = part.into_string().unwrap();
    let (words, path) = part.split_once('\n').unwrap();
    let path = PathBuf::from(path);
    match words.split(' ').collect::<Vec<_>>()[..] {
        ["append", writer, records] => append(&path, writer, records.parse().unwrap()),
        ["long", "process"] => append_long(&path, Durability::Process),
        ["long", "fsync"] => append_long(&path, Durability::Fsync),
        ["fill"] => fill_up(&path),
        ["read-only"] => find_read_only(&path),
        ["not-synced"] => find_not_synced(&path),
        _ => panic!("no such part: {words}"),
    }
}

/// Half by single appends, half by an appender, with lines from a few bytes to several pages.
fn append(path: &Path, writer: &str, records: u32) {
    let ledger = Ledger::new(path, Durability::Process);
    let mut appender = ledger.appender();
    for number in 0..records {
        let record = numbered(writer, number);
        if number % 2 == 0 {
            ledger.append(&record).unwrap();
        } else {
            appender.append(&record).unwrap();
        }
    }
}

/// The record that `writer` appends as its `number`th.
pub(crate) fn numbered(writer: &str, number: u32) -> Record {
    let filler = "\u{4efb}".repeat(number as usize * 37 % 5_000);
    Record::error(format!("{writer}-{number}"), Some(&filler), u64::from(number))
}

fn append_long(path: &Path, durability: Durability) {
    let ledger = Ledger::new(path, durability);
    let mut appender = ledger.appender();
    for number in 0..4_000 {
        // Up to two pages long, so that a kill has something to cut.
        let filler = "x".repeat(number as usize * 991 % 9_000);
        appender.append(&Record::error(number.to_string(), Some(&filler), number)).unwrap();
    }
}

fn fill_up(path: &Path) {
    let ledger = Ledger::new(path, Durability::Process);
    let before = ledger.read().unwrap().records.len();
    let mut appended = 0;
    let first = loop {
        match ledger.append(&Record::cancelled(format!("fill-{appended}"), 1)) {
            Ok(()) => appended += 1,
            Err(error) => break error,
        }
        assert!(appended < 10_000, "no limit was met");
    };
    let after = ledger.read().unwrap();
    assert_eq!(after.records.len(), before + appended, "what was answered with Ok is in the file, and nothing else");
    match first {
        AppendError::Short { written_bytes, line_bytes } => assert!(written_bytes < line_bytes),
        AppendError::DiskFull => assert_eq!(after.dropped_lines, 0),
        other => panic!("{other}"),
    }
    let second = ledger.append(&Record::cancelled("never", 1));
    assert!(matches!(second, Err(AppendError::DiskFull)), "{second:?}");
}

fn find_read_only(path: &Path) {
    let refused = Ledger::new(path, Durability::Process).append(&Record::cancelled("A", 1));
    assert!(matches!(refused, Err(AppendError::ReadOnly)), "{refused:?}");
}

fn find_not_synced(path: &Path) {
    let record = Record::cancelled("A", 1);
    let synced = Ledger::new(path, Durability::Fsync);
    let mut appender = synced.appender();
    // Who finds a folder there has not to sync what names that one.
    let is_folder_made = !path.parent().unwrap().exists();
    for _ in 0..2 {
        assert_not_synced(&appender.append(&record));
        if !is_folder_made {
            assert_not_synced(&synced.append(&record));
        }
    }
    Ledger::new(path, Durability::Process).append(&record).unwrap();
    let expected = if is_folder_made { 3 } else { 5 };
    assert_eq!(synced.read().unwrap().records.len(), expected, "what is not synced is written nevertheless");
}

fn assert_not_synced(outcome: &Result<(), AppendError>) {
    let Err(AppendError::NotSynced(error)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}
