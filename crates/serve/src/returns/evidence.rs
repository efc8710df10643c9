//! What is found of a request after a crash, in its session's transcript and ledger. Nothing here decides; everything blocks.

use std::path::Path;

use ledger::Ledger;
use request::recovery::{LedgerFound, Loss, PromptSeen, Seen, TextSeen, TranscriptFound, TurnSeen, TurnState};
use request::{Hash, Request};
use sha2::{Digest as _, Sha256};
use transcript::{Answer, Asked, Contradiction, ExactTurn, NoCertainty, Own, OwnTurn, find_own_turn};

use crate::returns::{RECORD_HASH, final_text, host_word};

/// What a user record with these texts hashes to: each with its length before it, so that no two lists have the same bytes.
pub(crate) fn record_hash(texts: &[String]) -> Hash {
    let mut record = RecordHash::default();
    for text in texts {
        record.text(text.len() as u64);
        record.piece(text.as_bytes());
    }
    Hash(record.0.finalize().into())
}

#[derive(Default)]
struct RecordHash(Sha256);

impl RecordHash {
    fn text(&mut self, bytes: u64) {
        self.0.update(bytes.to_be_bytes());
    }

    fn piece(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

/// The texts of a user record on their way into their hash.
struct Compared {
    record: RecordHash,
    wanted: Option<Hash>,
}

impl Asked for Compared {
    fn text(&mut self, bytes: u64) {
        self.record.text(bytes);
    }

    fn piece(&mut self, bytes: &[u8]) {
        self.record.piece(bytes);
    }

    fn agrees(&mut self) -> bool {
        self.wanted == Some(Hash(self.record.0.clone().finalize().into()))
    }
}

/// What a transcript says of a request's turn.
pub(crate) fn in_transcript(path: &Path, request: &Request) -> TranscriptFound {
    let registration = &request.registration;
    let own = Own {
        session_id: &registration.session_id,
        prompt_id: &registration.prompt_id,
        armed_tail: request.armed.as_ref().and_then(|armed| armed.tail.as_deref()),
    };
    let wanted = registration.options.others.get(RECORD_HASH).and_then(|hash| Hash::parse(hash.as_str()?));
    let mut compared = Compared { record: RecordHash::default(), wanted };
    match find_own_turn(path, own, &mut compared) {
        Ok(found) => of_own_turn(found, &registration.prompt_id),
        Err(error) => {
            tracing::warn!(request = %request.id(), %error, "a transcript cannot be searched for a return request");
            TranscriptFound::Lost(Loss::Unreadable)
        }
    }
}

fn of_own_turn(found: OwnTurn, prompt_id: &str) -> TranscriptFound {
    let asked = |stamp: Option<&str>, prompt| Seen::User {
        record_id: String::new(),
        prompt_id: stamp.map(str::to_owned),
        prompt,
    };
    let ours = |prompt| asked(Some(prompt_id), prompt);
    TranscriptFound::Behind(match found {
        OwnTurn::Exact(exact) => match exact.result.contradiction {
            // What its host heard of it; the daemon would have too.
            Some(Contradiction::PromptMismatch) => vec![ours(PromptSeen::Other)],
            Some(Contradiction::ExtraUserMessage) => vec![ours(PromptSeen::Same), asked(None, PromptSeen::Untold)],
            None => vec![ours(PromptSeen::Same), turn(&exact)],
        },
        OwnTurn::Interrupted => vec![ours(PromptSeen::Same)],
        OwnTurn::Nothing => Vec::new(),
        OwnTurn::OrderOnly => vec![asked(None, PromptSeen::Untold)],
        OwnTurn::ExtraUserMessage => vec![ours(PromptSeen::Same), asked(None, PromptSeen::Untold)],
        OwnTurn::OtherText => vec![ours(PromptSeen::Other)],
        OwnTurn::Lost(why) => return TranscriptFound::Lost(loss(why)),
    })
}

fn turn(exact: &ExactTurn) -> Seen {
    let result = &exact.result;
    let text = match &exact.answer {
        Answer::Nothing => TextSeen::None,
        Answer::Lost(_) => TextSeen::Lost,
        answer => final_text::of(answer).map_or(TextSeen::Lost, TextSeen::Whole),
    };
    let state = match result.state {
        transcript::TurnState::Completed => TurnState::Completed,
        transcript::TurnState::Cancelled => TurnState::Cancelled,
        transcript::TurnState::Error => match result.error.as_ref().and_then(|error| error.code.as_deref()) {
            Some(code) if host_word::is_gone(code) => TurnState::AgentGone,
            Some(code) if host_word::is_unread(code) => TurnState::Unread,
            code => code.and_then(host_word::ended_by).map_or(TurnState::Error, TurnState::Closed),
        },
    };
    // Of a cancelled turn the host says that it is one, and the agent what it answered.
    let is_cancelled = result.state == transcript::TurnState::Cancelled;
    let word = if is_cancelled { &result.agent_stop_reason } else { &result.stop_reason };
    let (stop_reason, ended_at_ms) = (word.clone(), result.ended_at);
    let is_unreadable = result.unreadable_words;
    let seen = TurnSeen { state, stop_reason, text, is_strayed: exact.has_strayed, is_unreadable, ended_at_ms };
    Seen::Turn { prompt_id: Some(result.prompt_id.clone()), turn: seen }
}

fn loss(why: NoCertainty) -> Loss {
    match why {
        NoCertainty::NoFile => Loss::Missing,
        NoCertainty::MarkerAbsent => Loss::MarkerAbsent,
        NoCertainty::Compressed | NoCertainty::Rewound => Loss::TakenBack,
        NoCertainty::OutOfReach | NoCertainty::Damaged => Loss::Unreadable,
    }
}

/// Whether a transcript shows the request's own turn as the last one, and without an end.
pub(crate) fn is_open(found: &TranscriptFound) -> bool {
    let TranscriptFound::Behind(seen) = found else { return false };
    matches!(seen.as_slice(), [Seen::User { prompt_id: Some(_), prompt: PromptSeen::Same, .. }])
}

/// Whether a ledger says that somebody wishes a prompt cancelled that is open there. One that cannot be read says nothing.
pub(crate) fn is_wished(ledger: &Ledger, prompt_id: &str) -> bool {
    ledger.read().is_ok_and(|reading| reading.open_wishes().iter().any(|wish| wish.prompt_id == prompt_id))
}

/// What a ledger says of a prompt. One that cannot be read says nothing.
pub(crate) fn in_ledger(ledger: &Ledger, prompt_id: &str) -> LedgerFound {
    let reading = match ledger.read() {
        Ok(reading) => reading,
        Err(error) => {
            tracing::warn!(%error, "a ledger cannot be read for a return request");
            return LedgerFound::Open;
        }
    };
    let ends = reading.records.iter().filter(|record| record.prompt_id == prompt_id);
    let mut ended = ends.filter_map(|record| match &record.fact {
        ledger::Fact::Terminal { code, stop_reason, .. } => Some((code.as_deref(), stop_reason.as_deref())),
        ledger::Fact::InFlight { .. } => None,
    });
    match ended.next_back() {
        None => LedgerFound::Open,
        Some((Some(attribution::DAEMON_LOST), _) | (_, Some(attribution::RECONSTRUCTED))) => LedgerFound::Reconstructed,
        Some(_) => LedgerFound::Ended,
    }
}

#[cfg(test)]
mod tests;
