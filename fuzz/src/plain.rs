//! A second reader of transcripts, as plain as can be: the whole file in memory, every line by `serde_json`.
//!
//! It is stricter than a browser, so it refuses files in which the two could differ, and says of the rest whether they
//! are *tame*: whether their records stand as a writer appends them, which is what a bounded reading asks of a file
//! (`docs/design/2026-11-29-bounded-evidence.md`).

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use transcript::{Kind, Record};

/// Brackets in one line beyond which nesting may be deeper than `serde_json` goes.
const BRACKETS_MAX: usize = 100;
/// Digits in a row beyond which a number may be too large for a double.
const DIGITS_MAX: usize = 200;

/// One usable record, as far as it is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct PlainRecord {
    /// Its own id.
    pub uuid: String,
    /// The record before it.
    pub parent: Option<String>,
    /// The session.
    pub session_id: String,
    /// Who speaks.
    pub kind: Kind,
    /// Its subtype; the empty text when it is no text.
    pub subtype: Option<String>,
    /// The prompt it is stamped with.
    pub prompt_id: Option<String>,
    /// The folder of the agent.
    pub cwd: Option<String>,
    /// Its timestamp as it is written.
    timestamp: Option<String>,
    /// Its payload.
    pub payload: Value,
}

/// The usable records of a file, in file order.
#[derive(Debug)]
pub struct PlainFile {
    /// Those on a branch and those beside it.
    pub records: Vec<PlainRecord>,
}

impl PlainFile {
    /// Reads a file; none when a browser could see something else in it.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let mut records = Vec::new();
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            if is_read_differently(line) {
                return None;
            }
            records.extend(objects(line.strip_prefix('\u{feff}').unwrap_or(line)).iter().filter_map(record));
        }
        Some(Self { records })
    }

    /// The active branch, newest record first.
    #[must_use]
    pub fn branch(&self) -> Vec<&PlainRecord> {
        let mut first_by_uuid = HashMap::new();
        let mut leaf = None;
        for record in self.on_branch() {
            first_by_uuid.entry(record.uuid.as_str()).or_insert(record);
            leaf = Some(record.uuid.as_str());
        }
        let mut seen = HashSet::new();
        let mut branch = Vec::new();
        while let Some(record) = leaf.filter(|uuid| seen.insert(*uuid)).and_then(|uuid| first_by_uuid.get(uuid)) {
            branch.push(*record);
            leaf = record.parent.as_deref();
        }
        branch
    }

    /// Whether the branch ends because a parent is nowhere in the file.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let branch = self.branch();
        let missing = branch.last().and_then(|first| first.parent.as_ref());
        missing.is_some_and(|missing| self.on_branch().all(|record| record.uuid != *missing))
    }

    /// The dispatch marker: the uuid of the last line, if that is one whole object that has one.
    #[must_use]
    pub fn tail_uuid(bytes: &[u8]) -> Option<String> {
        let line = bytes.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty())?;
        let object: Value = serde_json::from_slice(line).ok()?;
        Some(object.get("uuid")?.as_str()?.to_owned()).filter(|uuid| !uuid.is_empty())
    }

    /// Whether the records are of one session, the pieces of each are neighbours, and every parent that is there stands
    /// before its child.
    #[must_use]
    pub fn is_tame(&self) -> bool {
        let mut place_by_uuid: HashMap<&str, usize> = HashMap::new();
        let mut wholes: Vec<&PlainRecord> = Vec::new();
        for record in self.on_branch() {
            if wholes.last().is_some_and(|last| last.uuid == record.uuid) {
                continue;
            }
            if place_by_uuid.insert(&record.uuid, wholes.len()).is_some() {
                return false;
            }
            wholes.push(record);
        }
        let stands_before = |(place, record): (usize, &&PlainRecord)| {
            let parent = record.parent.as_deref().and_then(|parent| place_by_uuid.get(parent));
            parent.is_none_or(|parent| *parent < place)
        };
        wholes.iter().enumerate().all(stands_before) && self.is_of_one_session()
    }

    /// Whether no record says that it is older than one before it. Texts of one form compare like the times they name.
    #[must_use]
    pub fn is_in_the_order_of_time(&self) -> bool {
        let form = "0000-00-00T00:00:00.000Z";
        let is_formal = |text: &&str| {
            let same = |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
            text.len() == form.len() && text.bytes().zip(form.bytes()).all(same)
        };
        let times: Option<Vec<_>> =
            self.records.iter().map(|record| record.timestamp.as_deref().filter(is_formal)).collect();
        times.is_some_and(|times| times.is_sorted())
    }

    /// The first usable record's session and folder.
    #[must_use]
    pub fn first(&self) -> Option<&PlainRecord> {
        self.records.first()
    }

    fn is_of_one_session(&self) -> bool {
        self.records.windows(2).all(|pair| pair[0].session_id == pair[1].session_id)
    }

    fn on_branch(&self) -> impl Iterator<Item = &PlainRecord> {
        self.records.iter().filter(|record| {
            let is_beside = record.subtype.as_deref().is_some_and(transcript::is_off_branch_subtype);
            record.kind != Kind::System || !is_beside
        })
    }
}

impl PlainRecord {
    /// Whether the record that was read backward says the same.
    #[must_use]
    pub fn is(&self, read: &Record) -> bool {
        self.uuid == read.uuid
            && self.parent == read.parent
            && self.session_id == read.session_id
            && self.kind == read.kind
            && self.subtype == read.subtype
            && self.prompt_id == read.prompt_id
            && self.cwd == read.cwd
    }
}

/// Whether there may be something in the line that a browser reads and `serde_json` does not: half a surrogate pair, a
/// number too large for a double, deep nesting.
fn is_read_differently(line: &str) -> bool {
    let bytes = line.as_bytes();
    let has_surrogate = bytes.windows(3).any(|three| three.eq_ignore_ascii_case(br"\ud"));
    let has_exponent = bytes.windows(2).any(|two| two[0].is_ascii_digit() && matches!(two[1], b'e' | b'E'));
    let has_long_number = bytes.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > DIGITS_MAX);
    let brackets = bytes.iter().filter(|byte| matches!(byte, b'{' | b'[')).count();
    has_surrogate || (has_exponent && has_number_with_exponent(bytes)) || has_long_number || brackets > BRACKETS_MAX
}

/// Most digits before an `e` are those of an id; one that begins a number does so behind a token.
fn has_number_with_exponent(bytes: &[u8]) -> bool {
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E');
    let mut runs = bytes.split(|byte| !is_of_number(byte));
    runs.any(|run| {
        run.iter().any(|byte| matches!(byte, b'e' | b'E')) && run.iter().any(u8::is_ascii_digit) && {
            let exponent = run.rsplit(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or_default();
            exponent.iter().filter(|byte| byte.is_ascii_digit()).count() > 2
        }
    })
}

/// The values of a line: the line itself, or every object that can be found in it.
fn objects(line: &str) -> Vec<Value> {
    if let Ok(whole) = serde_json::from_str(line) {
        return vec![whole];
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(brace) = line[at..].find('{') {
        at += brace;
        let mut values = serde_json::Deserializer::from_str(&line[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                found.push(value);
                at += values.byte_offset();
            }
            _ => at += 1,
        }
    }
    found
}

fn record(value: &Value) -> Option<PlainRecord> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = |key: &str| text(key).filter(|name| !name.is_empty());
    let kind = match value.get("type")?.as_str()? {
        "user" => Kind::User,
        "assistant" => Kind::Assistant,
        "tool_result" => Kind::ToolResult,
        "system" => Kind::System,
        _ => return None,
    };
    let parent = value.get("parentUuid")?;
    if !(parent.is_null() || parent.is_string()) {
        return None;
    }
    let subtype = value.get("subtype").filter(|subtype| !subtype.is_null());
    Some(PlainRecord {
        uuid: name("uuid")?,
        parent: name("parentUuid"),
        session_id: name("sessionId")?,
        kind,
        // A longer subtype than any that is known counts as unknown.
        subtype: subtype
            .map(|subtype| subtype.as_str().filter(|text| text.len() <= 256).unwrap_or_default().to_owned()),
        prompt_id: text("daemonPromptId"),
        cwd: text("cwd"),
        timestamp: text("timestamp"),
        payload: value.get("systemPayload").cloned().unwrap_or_default(),
    })
}
