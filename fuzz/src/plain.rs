//! A second reader of transcripts, as plain as can be: the whole file in memory, every line by `serde_json`.
//!
//! It is stricter than a browser, so it refuses files in which the two could differ, and says of the rest whether they
//! are *tame*: whether their records stand as a writer appends them, which is what a bounded reading asks of a file
//! (`docs/design/2026-11-29-bounded-evidence.md`).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::Value;
use transcript::{Kind, Record, TurnResult};

/// Brackets in one line beyond which nesting may be deeper than `serde_json` goes.
const BRACKETS_MAX: usize = 100;
/// Open braces in a damaged line beyond which the search for objects may be given up: each costs the rest of the line.
const DAMAGED_BRACES_MAX: usize = 32;
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
    /// Whether it stands in a damaged line, and a reader that counts braces from the line's beginning does not find it.
    is_disputed: bool,
}

/// Where the first object of a file says that it belongs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlainHead {
    /// The session.
    pub session_id: Option<String>,
    /// The folder of the agent.
    pub cwd: Option<String>,
}

/// The usable records of a file, in file order.
#[derive(Debug, Clone)]
pub struct PlainFile {
    /// Those on a branch and those beside it.
    pub records: Vec<PlainRecord>,
    /// What the first object says, a usable record or not.
    pub head: Option<PlainHead>,
}

impl PlainFile {
    /// Reads a file; none when a browser could see something else in it.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let (mut records, mut head) = (Vec::new(), None);
        for line in text.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            if is_read_differently(line) {
                return None;
            }
            for object in objects(line.strip_prefix('\u{feff}').unwrap_or(line)) {
                let record = record(&object);
                // A disputed object that is no record is nothing to anybody.
                if head.is_none() && (record.is_some() || !object.is_disputed) {
                    head = PlainHead::of(&object.value);
                }
                records.extend(record);
            }
        }
        Some(Self { records, head })
    }

    /// Whether any record is disputed.
    #[must_use]
    pub fn is_disputed(&self) -> bool {
        self.records.iter().any(|record| record.is_disputed)
    }

    /// The same file to a reader that does not find disputed records.
    #[must_use]
    pub fn leaving_out_disputed(mut self) -> Self {
        self.records.retain(|record| !record.is_disputed);
        self
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

    /// The newest whole turn result on the branch, or the newest one of a prompt.
    #[must_use]
    pub fn turn_result(&self, prompt_id: Option<&str>) -> Option<TurnResult> {
        let branch = self.branch().into_iter();
        let results = branch.filter(|record| record.kind == Kind::System && record.is("turn_result"));
        let mut results = results.filter_map(|record| TurnResult::from_payload(&record.payload));
        results.find(|result| prompt_id.is_none_or(|wanted| wanted == result.prompt_id))
    }

    /// Whether a record has a time that its pieces allow: none when one of them has none, the latest when all are written as
    /// every writer of the format writes them. Times in another form are not looked into.
    #[must_use]
    pub fn allows_time_of(&self, read: &Record) -> bool {
        let pieces = self.on_branch().filter(|piece| piece.uuid == read.uuid);
        let texts: Option<Vec<_>> = pieces.map(|piece| piece.timestamp.as_deref()).collect();
        let Some((texts, at_ms)) = texts.zip(read.at_ms) else { return read.at_ms.is_none() };
        let is_plain = texts.iter().all(is_formal);
        let text = u64::try_from(at_ms).ok().and_then(transcript::iso_text);
        !is_plain || text.is_none() || text.as_deref() == texts.into_iter().max()
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
        let times: Option<Vec<_>> =
            self.records.iter().map(|record| record.timestamp.as_deref().filter(is_formal)).collect();
        times.is_some_and(|times| times.is_sorted())
    }

    /// The first usable record's session and folder.
    #[must_use]
    pub fn first(&self) -> Option<&PlainRecord> {
        self.records.first()
    }

    /// Whether all usable records, those beside the branch too, are of one session.
    #[must_use]
    pub fn is_of_one_session(&self) -> bool {
        self.records.windows(2).all(|pair| pair[0].session_id == pair[1].session_id)
    }

    fn on_branch(&self) -> impl Iterator<Item = &PlainRecord> {
        self.records.iter().filter(|record| {
            let is_beside = record.subtype.as_deref().is_some_and(transcript::is_off_branch_subtype);
            record.kind != Kind::System || !is_beside
        })
    }
}

impl PlainHead {
    fn of(value: &Value) -> Option<Self> {
        value.is_object().then(|| Self { session_id: name(value, "sessionId"), cwd: text(value, "cwd") })
    }
}

impl PlainRecord {
    fn is(&self, subtype: &str) -> bool {
        self.subtype.as_deref() == Some(subtype)
    }

    /// Whether the record that was read backward says the same.
    #[must_use]
    pub fn is_read_as(&self, read: &Record) -> bool {
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
/// number too large for a double, deep nesting. Or so much damage that the search is given up.
fn is_read_differently(line: &str) -> bool {
    let bytes = line.as_bytes();
    let has_surrogate = bytes.windows(3).any(|three| three.eq_ignore_ascii_case(br"\ud"));
    let has_exponent = bytes.windows(2).any(|two| two[0].is_ascii_digit() && matches!(two[1], b'e' | b'E'));
    let has_long_number = bytes.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > DIGITS_MAX);
    let count = |wanted: u8| bytes.iter().filter(|byte| **byte == wanted).count();
    let is_deep = count(b'{') + count(b'[') > BRACKETS_MAX;
    let is_costly = count(b'{') > DAMAGED_BRACES_MAX && serde_json::from_str::<Value>(line).is_err();
    has_surrogate || (has_exponent && has_number_with_exponent(bytes)) || has_long_number || is_deep || is_costly
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

/// Whether a time is written as every writer of the format writes it.
fn is_formal(text: &&str) -> bool {
    let form = "0000-00-00T00:00:00.000Z";
    let same = |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(same)
}

/// A value of a line.
struct Object {
    value: Value,
    is_disputed: bool,
}

/// The values of a line: the line itself, or every object that can be found in it.
fn objects(line: &str) -> Vec<Object> {
    if let Ok(value) = serde_json::from_str(line) {
        return vec![Object { value, is_disputed: false }];
    }
    let balanced = balanced(line);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(brace) = line[at..].find('{') {
        at += brace;
        let mut values = serde_json::Deserializer::from_str(&line[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                let span = at..at + values.byte_offset();
                at = span.end;
                found.push(Object { value, is_disputed: !balanced.contains(&span) });
            }
            _ => at += 1,
        }
    }
    found
}

/// What a reader takes for the objects of a line that counts braces outside of texts from its beginning. A closing brace
/// that closes nothing counts for nothing.
fn balanced(line: &str) -> Vec<Range<usize>> {
    let (mut opened, mut found) = (Vec::new(), Vec::new());
    let (mut is_in_text, mut is_escaped) = (false, false);
    for (at, byte) in line.bytes().enumerate() {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            _ if was_escaped => {}
            b'\\' if is_in_text => is_escaped = true,
            b'"' => is_in_text = !is_in_text,
            b'{' if !is_in_text => opened.push(at),
            b'}' if !is_in_text => {
                let closed = opened.pop().filter(|_| opened.is_empty());
                found.extend(closed.map(|from| from..at + 1));
            }
            _ => {}
        }
    }
    found
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A text that is not empty.
fn name(value: &Value, key: &str) -> Option<String> {
    text(value, key).filter(|name| !name.is_empty())
}

fn record(Object { value, is_disputed }: &Object) -> Option<PlainRecord> {
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
        uuid: name(value, "uuid")?,
        parent: name(value, "parentUuid"),
        session_id: name(value, "sessionId")?,
        kind,
        // A longer subtype than any that is known counts as unknown.
        subtype: subtype
            .map(|subtype| subtype.as_str().filter(|text| text.len() <= 256).unwrap_or_default().to_owned()),
        prompt_id: text(value, "daemonPromptId"),
        cwd: text(value, "cwd"),
        timestamp: text(value, "timestamp"),
        payload: value.get("systemPayload").cloned().unwrap_or_default(),
        is_disputed: *is_disputed,
    })
}
