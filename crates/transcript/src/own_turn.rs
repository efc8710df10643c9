//! What a transcript says of one prompt's own turn, and of no other: the evidence on which the outcome of a prompt may be told after a
//! crash (return requests, section 2.7).
//!
//! Behind the record that was the last one at dispatch, there must be one user record, stamped with the prompt's id and saying what was
//! asked, and then the turn's result under the same id. Anything else that a person or a program said in between, on the active branch or
//! beside it, a history that was replaced or taken back, a record that not every reader finds, an answer that its own record does not repeat:
//! each takes the certainty away, and each has a name.

use std::ops::Range;
use std::path::Path;

use crate::answer::{Answer, texts, whole_answer};
use crate::branch::Transcript;
use crate::json::Sink;
use crate::record::{Kind, Payload, Record};
use crate::results::{Pages, REACH, SCAN_WINDOW_BYTES};
use crate::snapshot::PageError;
use crate::turn_result::{TurnResult, TurnState};
use crate::writer::REWIND_SUBTYPE;

/// Which turn is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Own<'a> {
    /// The session that all records must belong to.
    pub session_id: &'a str,
    /// The prompt.
    pub prompt_id: &'a str,
    /// The uuid of the transcript's last record when the prompt was dispatched; none when there was none: then its whole branch is new.
    pub armed_tail: Option<&'a str>,
}

/// Compares what a user record says with what was asked, piece by piece.
pub trait Asked {
    /// The next text of the record begins, which has so many bytes.
    fn text(&mut self, bytes: u64);
    /// The next bytes of it. A piece may end inside a character.
    fn piece(&mut self, bytes: &[u8]);
    /// Whether all texts were what was asked.
    fn agrees(&mut self) -> bool;
}

/// What was found.
#[derive(Debug, Clone)]
pub enum OwnTurn {
    /// Its own result, and nothing that speaks against it.
    Exact(Box<ExactTurn>),
    /// The prompt was written and its turn has no result.
    Interrupted,
    /// Nobody has asked anything since.
    Nothing,
    /// Something was asked since, and the records do not say under which id: order is not ownership.
    OrderOnly,
    /// Somebody else has said something in between.
    ExtraUserMessage,
    /// The prompt's own user record says something else than what was asked.
    OtherText,
    /// It is not certain what the file says.
    Lost(NoCertainty),
}

/// The outcome of a turn that is certain.
#[derive(Debug, Clone)]
pub struct ExactTurn {
    /// The uuid of the user record.
    pub user_record: String,
    /// The result.
    pub result: TurnResult,
    /// Its agent has said words that belong to no turn, before this one or right behind it: what is on record as its answer may be another
    /// turn's, or not all of it.
    pub has_strayed: bool,
    /// All that was said at last; [`Answer::Nothing`] of a turn that did not complete.
    pub answer: Answer,
}

/// Why nothing can be said for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCertainty {
    /// There is no transcript.
    NoFile,
    /// The last record at dispatch is not on the active branch.
    MarkerAbsent,
    /// It lies further back than is looked.
    OutOfReach,
    /// The history was replaced since.
    Compressed,
    /// The conversation was taken back since.
    Rewound,
    /// Records are damaged, twice there, or another session's.
    Damaged,
}

/// Looks for a prompt's own turn on the active branch, no further back than [`find_turn_result`](crate::find_turn_result) looks.
///
/// # Errors
/// When the file cannot be read.
pub fn find_own_turn(path: &Path, own: Own<'_>, asked: &mut dyn Asked) -> Result<OwnTurn, PageError> {
    let failed = |cause| PageError::of(path, cause);
    let Some(transcript) = Transcript::open(path).map_err(failed)? else {
        return Ok(OwnTurn::Lost(NoCertainty::NoFile));
    };
    let walk = Walk::of(&transcript, own).map_err(failed)?;
    if let Some(why) = transcript.fate(path).map_err(failed)? {
        return Err(PageError::unavailable(path, why));
    }
    let (is_continued, behind) = (walk.is_continued, walk.tail_ends_at);
    let (user, result) = match walk.judge() {
        Ok(found) => found,
        Err(otherwise) => return Ok(otherwise),
    };
    let until = result.as_ref().map_or(transcript.len_bytes(), |(_, span)| span.start);
    if transcript.is_asked_by_another(behind..until, own.prompt_id).map_err(failed)? {
        return Ok(OwnTurn::ExtraUserMessage);
    }
    if !is_asked(&transcript, &user, asked).map_err(failed)? {
        return Ok(OwnTurn::OtherText);
    }
    let Some((result, span)) = result else { return Ok(OwnTurn::Interrupted) };
    let answer = match result.state {
        TurnState::Completed => whole_answer(transcript, &result, &span).map_err(failed)?,
        TurnState::Cancelled | TurnState::Error => Answer::Nothing,
    };
    let has_strayed = result.stray_words || is_continued;
    Ok(OwnTurn::Exact(Box::new(ExactTurn { user_record: user.uuid, result, has_strayed, answer })))
}

/// A turn's result, and where it stands.
type Placed = (TurnResult, Range<u64>);

/// What was met on the way from the end of the branch to the armed tail.
#[derive(Default)]
struct Walk {
    doubt: Option<NoCertainty>,
    /// The prompt's own result.
    result: Option<Placed>,
    /// The prompt's own user record.
    user: Option<Record>,
    /// User records under no id, before the result.
    nameless: usize,
    /// Other user records before the result.
    others: usize,
    /// The agent went on to speak when the prompt's turn was over.
    is_continued: bool,
    /// Whether anything behind the tail was asked at all.
    is_asked: bool,
    /// A turn ended, and its result does not say whose it was.
    has_nameless_result: bool,
    /// Where the armed tail ends in the file, in bytes; its beginning where nothing was armed.
    tail_ends_at: u64,
}

impl Walk {
    fn of(transcript: &Transcript, own: Own<'_>) -> std::io::Result<Self> {
        let window_bytes = SCAN_WINDOW_BYTES.min(REACH.file_bytes());
        let branch = transcript.branch_within(window_bytes, REACH.file_bytes())?;
        let mut pages = Pages::new(branch, REACH);
        let mut walk = Self::default();
        let (mut has_tail, mut is_first) = (false, false);
        while let Some(record) = pages.next()? {
            if own.armed_tail == Some(record.uuid.as_str()) {
                (has_tail, walk.tail_ends_at) = (true, record.span.end);
                break;
            }
            is_first = record.parent.is_none();
            walk.take(transcript, &own, record)?;
        }
        let branch = pages.branch();
        if branch.is_disputed() || branch.session_id() != Some(own.session_id) {
            walk.doubt = Some(NoCertainty::Damaged);
        } else if has_tail {
            return Ok(walk);
        } else if branch.is_cut() || is_first && own.armed_tail.is_some() {
            walk.doubt = Some(NoCertainty::MarkerAbsent);
        } else if !is_first {
            walk.doubt = Some(NoCertainty::OutOfReach);
        }
        Ok(walk)
    }

    fn take(&mut self, transcript: &Transcript, own: &Own<'_>, record: Record) -> std::io::Result<()> {
        if record.is_disputed || record.session_id != own.session_id {
            self.doubt = Some(NoCertainty::Damaged);
        }
        if record.is_note(REWIND_SUBTYPE) {
            self.doubt.get_or_insert(NoCertainty::Rewound);
        }
        match &record.payload {
            Payload::Compression(_) => drop(self.doubt.get_or_insert(NoCertainty::Compressed)),
            Payload::TurnResult { prompt_id: Some(of) } if of == own.prompt_id => {
                self.take_result(transcript, &record)?
            }
            Payload::TurnResult { prompt_id: None } => self.has_nameless_result |= self.user.is_none(),
            Payload::LateOutput { prompt_id: Some(of) } if of == own.prompt_id => self.is_continued = true,
            _ => {}
        }
        if record.kind == Kind::User {
            self.take_user(own, record);
        }
        Ok(())
    }

    /// A second result of one prompt, one behind which its own prompt stands, or one that cannot be read: nobody knows what holds.
    fn take_result(&mut self, transcript: &Transcript, record: &Record) -> std::io::Result<()> {
        match transcript.turn_result(record)? {
            Some(result) if self.result.is_none() && self.user.is_none() => {
                self.result = Some((result, record.span.clone()));
                // What was said behind the end is another turn's.
                (self.nameless, self.others) = (0, 0);
            }
            _ => self.doubt = Some(NoCertainty::Damaged),
        }
        Ok(())
    }

    fn take_user(&mut self, own: &Own<'_>, record: Record) {
        self.is_asked = true;
        match record.prompt_id.as_deref() {
            Some(id) if id == own.prompt_id && self.user.is_none() => self.user = Some(record),
            None => self.nameless += 1,
            Some(_) => self.others += 1,
        }
    }

    /// The user record and the result, or what else is to be said.
    fn judge(self) -> Result<(Record, Option<Placed>), OwnTurn> {
        if let Some(doubt) = self.doubt {
            return Err(OwnTurn::Lost(doubt));
        }
        match (self.user, self.result) {
            (Some(_), _) if self.nameless + self.others > 0 => Err(OwnTurn::ExtraUserMessage),
            (Some(_), None) if self.has_nameless_result => Err(OwnTurn::OrderOnly),
            (Some(user), result) => Ok((user, result)),
            (None, Some(_)) => Err(OwnTurn::OrderOnly),
            (None, None) if self.nameless > 0 => Err(OwnTurn::OrderOnly),
            (None, None) if self.is_asked => Err(OwnTurn::ExtraUserMessage),
            (None, None) => Err(OwnTurn::Nothing),
        }
    }
}

/// Whether the record says what was asked, in texts and nothing else.
fn is_asked(transcript: &Transcript, user: &Record, asked: &mut dyn Asked) -> std::io::Result<bool> {
    let Some(texts) = texts(transcript, user)? else { return Ok(false) };
    if user.message.as_ref().is_none_or(|message| message.parts != texts.len()) {
        return Ok(false);
    }
    for text in texts {
        asked.text(text.bytes);
        transcript.string_at(&text.span, &mut Hear(asked))?;
    }
    Ok(asked.agrees())
}

/// Hands what is decoded on.
struct Hear<'a>(&'a mut dyn Asked);

impl Sink for Hear<'_> {
    fn push(&mut self, piece: &[u8]) {
        self.0.piece(piece);
    }
}
