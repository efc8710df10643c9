//! Every bound of a live session, with its unit and its reason.

use crate::Bounds;

/// Bytes of a final answer that is handed to a witness whole. One holds it for each turn, and of all agents' answers that were seen the
/// longest had some 200 KB; a longer one is read from the transcript.
pub const FINAL_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Pieces of messages which the agent takes for the user's that a witness hears in one turn: an echo of a prompt has a piece for each of its
/// blocks, and an agent that says more of them tells nothing new.
pub const HEARD_USER_MESSAGES_MAX: usize = acp::ECHO_PIECES_MAX;
/// Warnings about what one agent wrote and nobody can read. More of them would say nothing new.
pub(crate) const UNREADABLE_WARNINGS_MAX: u64 = 10;
/// Milliseconds behind an answer in which words are listened for that the agent says late, before the outcome of a return request is told or
/// the prompt of one is handed on. Such words were written behind the answer in the same breath, and come through the host within one or
/// two; each request waits so long for its end, and none for its dispatch but behind another turn.
pub const LATE_WORDS_MS: u64 = 10;
/// The same behind what makes an agent speak once and not with each turn: the opening of its session, another process in its place, and a
/// change of what it remembers. An agent that introduces itself may look something up first, and on a loaded machine a word that was
/// written 8 ms behind an opening was read more than 10 ms behind it; no request but the first one waits for it.
pub const OPENING_WORDS_MS: u64 = 100;

/// Prompts a session holds at once, the running one included: a queue that grows is a caller that should wait.
pub const PENDING_PROMPTS_MAX: usize = 5;
/// Live sessions of one daemon: each one is an agent process of 55 to 580 MB.
pub const SESSIONS_MAX: usize = 32;
/// Ended prompts a session remembers for the poll; older ones are in the transcript.
pub const OVERLAY_PROMPTS_MAX: usize = 64;
/// Permission requests open at once in one session; real agents were seen with two.
pub const PERMISSIONS_OPEN_MAX: usize = 64;
/// Decisions kept so that a late vote hears what was decided.
pub const PERMISSIONS_DECIDED_MAX: usize = 512;
/// Registered clients of a session; the one not seen for longest makes room, and registers again when it comes back.
pub const CLIENTS_MAX: usize = 1_024;
/// Streams open on one session.
pub const SUBSCRIBERS_MAX: usize = 64;

/// Events a session keeps for clients that come back with a cursor.
pub const RING_EVENTS_MAX: usize = 8_000;
/// Bytes of those events: one session's history must not take the daemon's memory.
pub const RING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes replayed to one subscriber before it is told to load the state anew.
pub const REPLAY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of one event that is sent. The peer's client gives its stream up over a frame beyond 16 MiB, comes back for it, and gives up
/// again; what is larger is therefore a gap that readers are told of.
pub const EVENT_BYTES_MAX: usize = 15 * 1024 * 1024;
/// Bytes of finished turns that a session keeps for clients that attach late (wire specification, section 7.3).
pub const WINDOW_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Events since the last end that a session keeps for them; adjacent pieces of a text count as one (wire specification, section 7.3).
pub const JOURNAL_EVENTS_MAX: usize = 10_000;
/// Bytes of those events (wire specification, section 7.3).
pub const JOURNAL_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Pieces of a text that become one event of the running turn (wire specification, section 7.3).
pub const RUN_EVENTS_MAX: usize = 256;
/// Bytes of a text that is put together. Where something has to be left out, it is little; and no text is copied twice.
pub const RUN_BYTES_MAX: usize = 64 * 1024;
/// Members of an update, or of its metadata, up to which it is put together with others. Those of real agents have up to a dozen.
pub const FOLD_MEMBERS_MAX: usize = 64;
/// Frames that wait for one subscriber unless it asks for another number.
pub const SUBSCRIBER_FRAMES_DEFAULT: usize = 256;
/// Bytes that wait for one subscriber.
pub const SUBSCRIBER_BYTES_MAX: usize = 2 * 1024 * 1024;

/// UTF-16 units of a prompt's or an answer's text in the poll (seed on turn status).
pub const TEXT_UNITS_MAX: usize = 32_768;
/// UTF-16 units of an error message in the poll (seed on turn status).
pub const MESSAGE_UNITS_MAX: usize = 4_096;
/// UTF-16 units of an error code in the poll (seed on turn status).
pub const CODE_UNITS_MAX: usize = 256;
/// UTF-16 units of a stop reason. The set of them is open, and no word of it is that long.
pub const STOP_REASON_UNITS_MAX: usize = 256;
/// Bytes of what names a point to branch at: two UUIDs and their names fit many times.
pub const BRANCH_POINT_BYTES_MAX: usize = 4_096;
/// Bytes of one update kept as state for clients that join late; a larger one is only streamed.
pub const LATEST_UPDATE_BYTES_MAX: usize = 1024 * 1024;

/// Ids of messages into a running turn that are remembered after they were taken, or became prompts: a client that was away for a
/// while learns what became of its own.
pub const STEERING_IDS_MAX: usize = 200;

/// Milliseconds from the cancel of a turn to the replacement of its agent. Agents that obey were seen to need up to 6.5 s behind
/// a running tool, and to end a process that would have obeyed costs its memory; a caller who wants it sooner has a flag.
pub const SETTLE_GRACE_MS: u64 = 30_000;

/// Milliseconds that a close gives the running turn to settle after its cancel: more than agents that obey were seen to need, and less
/// than what a caller of a close would wait.
pub const CLOSE_SETTLE_MS: u64 = 8_000;

/// Milliseconds that a daemon that stops leaves a return request's turn to itself: one that is about to answer completes, while a cut one
/// could not be told from it.
pub const SHUTDOWN_ANSWER_MS: u64 = 5_000;
/// Milliseconds that its agent has behind that to obey the cancel.
pub const SHUTDOWN_OBEY_MS: u64 = 4_000;

/// Events of one text beside the conversation that wait for its reader: a few seconds of a fast model.
pub const GENERATION_EVENTS_MAX: usize = 256;
/// Bytes of one of those events. A model's piece has some dozens.
pub const GENERATION_EVENT_BYTES_MAX: usize = 256 * 1024;

/// Messages of an agent kept while its session is being opened.
pub const EARLY_MESSAGES_MAX: usize = 4_096;
/// Bytes of those messages.
pub const EARLY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Frames that may wait for the agent before its own output is no longer read: only an agent that asks without reading gets here.
pub const WRITER_FRAMES_MAX: usize = 1_024;

const _: () = assert!(REPLAY_BYTES_MAX <= RING_BYTES_MAX, "a replay is a part of the ring");
const _: () = assert!(EVENT_BYTES_MAX < RING_BYTES_MAX, "every event that is sent is remembered for a while");
const _: () =
    assert!(RUN_BYTES_MAX < WINDOW_BYTES_MAX && RUN_BYTES_MAX < JOURNAL_BYTES_MAX, "a text is a part of either");
const _: () = assert!(SUBSCRIBER_BYTES_MAX < RING_BYTES_MAX, "one reader's arrears are less than the history");
const _: () = assert!(
    SHUTDOWN_ANSWER_MS + SHUTDOWN_OBEY_MS < 10_000,
    "answers have up to 10 s, and what they come to is on disk by then (return requests, section 2.11)"
);
const _: () = assert!(PERMISSIONS_OPEN_MAX < WRITER_FRAMES_MAX, "every open permission can be answered at once");

/// The bounds that a flag may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Prompts per session, running and queued.
    pub pending_prompts: usize,
    /// Live sessions.
    pub sessions: usize,
    /// Streams per session.
    pub subscribers: usize,
    /// Events that a session keeps for readers that come back.
    pub ring_events: usize,
    /// What it keeps for clients that attach late.
    pub compaction: Bounds,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pending_prompts: PENDING_PROMPTS_MAX,
            sessions: SESSIONS_MAX,
            subscribers: SUBSCRIBERS_MAX,
            ring_events: RING_EVENTS_MAX,
            compaction: Bounds::default(),
        }
    }
}

/// How long the daemon waits for an agent in matters other than a prompt, which has no time limit of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of the host to the answer to `initialize`, and again for the answer to `session/new`.
    pub initialize_ms: u64,
    /// For each answer of a restore: `initialize`, for which a host may have to wait for the one before it, and `session/load`.
    pub restore_ms: u64,
    /// What a close gives the running turn to settle after its cancel.
    pub settle_ms: u64,
    /// What the host gets to end the agent and close its stream.
    pub end_ms: u64,
    /// What an agent that was told to stop gets before it is replaced.
    pub grace_ms: u64,
    /// What the running turn of a return request gets to answer undisturbed when the daemon stops.
    pub answer_ms: u64,
    /// What it gets behind that to settle after its cancel.
    pub obey_ms: u64,
}

impl Timeouts {
    /// How long a daemon that stops waits for a running turn at most.
    pub(crate) fn drain_ms(&self) -> u64 {
        self.answer_ms.saturating_add(self.obey_ms)
    }

    /// For the host's answer to the request to replace the agent: it ends one, starts another, and restores the session.
    pub(crate) fn replace_ms(&self) -> u64 {
        self.end_ms.saturating_add(self.initialize_ms).saturating_add(self.restore_ms)
    }
}

impl Default for Timeouts {
    /// Starts were measured up to 7 s for `initialize` under load and 3 s for a new session; a load reads a history. A host
    /// needs 2 s, a SIGTERM, 5 s and a SIGKILL to end the most stubborn agent.
    fn default() -> Self {
        let (settle_ms, grace_ms) = (CLOSE_SETTLE_MS, SETTLE_GRACE_MS);
        let (answer_ms, obey_ms) = (SHUTDOWN_ANSWER_MS, SHUTDOWN_OBEY_MS);
        Self { initialize_ms: 10_000, restore_ms: 60_000, settle_ms, end_ms: 10_000, grace_ms, answer_ms, obey_ms }
    }
}
