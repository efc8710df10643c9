//! Every number of this crate that bounds something, with its unit and its reason.

/// Largest request body, in bytes. The peer's client never sends more; a prompt with images fits well.
pub const BODY_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Callers whose requests are counted each for himself; all further ones share one count (wire rules, section 5.1).
pub const RATE_KEYS_MAX: usize = 10_000;

/// How often callers that are to be forgotten are looked for while there is no place for new ones, in milliseconds.
pub const RATE_SWEEP_MS: u64 = 1_000;

/// How much of a refused body is read and thrown away, in bytes, so that its sender gets the 413 instead of a reset.
pub const DRAIN_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How much is read and thrown away behind an answer that did not wait for its request's body, in bytes, so that its sender gets the answer
/// instead of a reset: no less than of one that is refused for its size.
pub const REMNANT_BYTES_MAX: usize = DRAIN_BYTES_MAX;

/// How long a client may go on sending behind its answer, in milliseconds: it is told that the connection is over, and holds a place
/// meanwhile, for no longer than one that trickles a head.
pub const REMNANT_MS: u64 = HEAD_READ_MS;

/// How long it may send nothing and not close either, in milliseconds: what is on its way has arrived by then.
pub const REMNANT_SILENCE_MS: u64 = 2_000;

/// Connections beyond the limit that are told so and read on at once. Behind them a connection is closed without: a flood costs no more.
pub const TURNED_AWAY_MAX: usize = 64;

/// How long each of these has to say the rest of its request, in milliseconds: a body on its way over a good line, and no slow one.
pub const TURNED_AWAY_MS: u64 = 5_000;

/// How long a connection may take to send the next request's head, in milliseconds. A client that trickles, or sits idle, holds one
/// connection, and not for long.
pub const HEAD_READ_MS: u64 = 30_000;

/// How long a fresh connection has to send its first request's head, in milliseconds, and before that as long again to shake hands
/// where there is TLS. Whoever opens one has a request at hand; a flood of those who have none is gone after this.
pub const FIRST_HEAD_READ_MS: u64 = 10_000;

/// Largest head of a request, and what is buffered for a connection in either direction, in bytes.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// How long a body may stay silent between two reads, in milliseconds.
pub const BODY_READ_MS: u64 = 30_000;

/// How long a whole body may take, in milliseconds: the largest one over a slow line.
pub const BODY_TOTAL_MS: u64 = 300_000;

/// How long a socket may refuse our bytes before it is cut, unless a flag says otherwise, in milliseconds. Above the heartbeat
/// interval, so that a reader that only pauses survives, and a stalled one cannot pin its buffers for ever.
pub const WRITE_STALL_MS: u64 = 30_000;

/// Interval of the comment frames on an event stream, in milliseconds (wire rules, section 10.2).
pub const HEARTBEAT_MS: u64 = 15_000;

/// Reconnect advice at the head of every event stream, in milliseconds (wire rules, section 10.2).
pub const RECONNECT_MS: u64 = 3_000;

/// Bounds of the `maxQueued` query parameter, in frames (wire rules, section 10.1).
pub const MAX_QUEUED_RANGE: std::ops::RangeInclusive<usize> = 16..=2048;

/// Frames queued for one subscriber when it asks for nothing else.
pub const MAX_QUEUED_DEFAULT: usize = 256;

/// Most bytes of frames written to a stream at once. One write for a burst is cheaper than one for each frame.
pub const STREAM_CHUNK_BYTES: usize = 32 * 1024;

/// How long an agent that was told to stop may take before it is replaced, in milliseconds, where no flag says otherwise.
pub const SETTLE_GRACE_MS: u64 = bridge::limits::SETTLE_GRACE_MS;
/// How long a close waits for the running turn to settle, in milliseconds, where no flag says otherwise.
pub const CLOSE_SETTLE_MS: u64 = bridge::limits::CLOSE_SETTLE_MS;

/// How long an agent may take over an inquiry, in milliseconds: to make a session, or to write down a change.
pub const AGENT_ASK_MS: u64 = 60_000;

/// Letters of a branch's name without its number. With it the name is short enough to be any session's.
pub const BRANCH_NAME_CHARS_MAX: usize = 240;

/// Transcripts in which a name for a branch is looked for, those that were written to last: some hundredths of a second.
pub const TITLES_READ_MAX: usize = 256;

/// How long an agent may take to answer that it is set to something, in milliseconds: some ask their provider first.
pub const SETTING_TIMEOUT_MS: u64 = 60_000;

/// Characters of a session's name (wire rules, section 13.7).
pub const NAME_CHARS_MAX: usize = 256;

/// Characters of the name of a session's source, beside its type.
pub const SOURCE_ID_CHARS_MAX: usize = 256;

/// Longest deadline a caller may ask for, in milliseconds: a whole number to every client that counts in doubles.
pub const DEADLINE_MS_MAX: u64 = 9_000_000_000_000_000;

/// Longest message into a running turn, in UTF-16 units (wire rules, section 13.6).
pub const MESSAGE_CHARS_MAX: usize = 16 * 1024;

/// How long the agent may take to answer what is no prompt, or to begin a text, in milliseconds: one call of a model.
pub const ASIDE_MS: u64 = 60_000;

/// How long the host may take to answer for a command of a user, in milliseconds: the command's own two minutes, and time to end it.
pub const SHELL_MS: u64 = 150_000;

/// Characters of a command's output that a native agent is told. It cuts them there itself.
pub const SHELL_HISTORY_CHARS_MAX: usize = 10_000;

/// How long a text beside the conversation may take, in milliseconds: a long answer of a slow model.
pub const GENERATE_MS: u64 = 300_000;

/// Longest prompt for such a text, in bytes (wire rules, section 13.3).
pub const GENERATE_PROMPT_BYTES_MAX: usize = 32 * 1024;

/// Longest question beside the conversation, in UTF-16 units, as the peer's callers count (wire rules, section 13.3).
pub const QUESTION_CHARS_MAX: usize = 4_096;

/// Media blocks one prompt may carry (wire rules, section 8.1).
pub const MEDIA_BLOCKS_MAX: usize = 256;

/// How deep arrays and objects of a prompt may stand in each other, its own array included. The records and events that hold
/// one are a few levels deeper, and all have to stay below the 128 that readers of JSON commonly take.
pub const PROMPT_NESTING_MAX: usize = 100;

/// Upper bound of `historyPageSize`, in transcript records (wire rules, section 7.1).
pub const HISTORY_PAGE_MAX: u64 = 500;

/// Records of a page of the transcript where nobody says how many (wire rules, section 13.8).
pub const TRANSCRIPT_PAGE_DEFAULT: usize = 100;

/// How often a page of a live session is read again because the session did not keep still, before its events are shown instead.
pub const PAGE_TRIES: usize = 3;

/// Bytes of one piece of a long answer that is made of many small parts: one write for them is cheaper than one for each.
pub const PIECE_BYTES: usize = 64 * 1024;

/// Bytes from which on a part of an answer is sent as it is and not copied.
pub const SHARED_PART_BYTES: usize = 16 * 1024;

/// Numbers that a session's next life leaves free for the lives before it, per millisecond of the clock: more events than any agent
/// sends. They stay whole numbers to a client that counts in doubles until the year 2255.
pub const EVENTS_PER_MS_MAX: u64 = 1_000;

/// Longest `cwd` a caller may name, in bytes: the path limit of the systems we run on.
pub const CWD_BYTES_MAX: usize = 4096;

/// How long open connections may go on after the sessions are down, in milliseconds.
pub const DRAIN_MS: u64 = 3_000;

/// Between two looks for sessions that nobody uses, in milliseconds (wire rules, section 6.7).
pub const REAP_INTERVAL_MS: u64 = 60_000;

/// How long a session may rest that nobody reads, in milliseconds (wire rules, section 6.7): its agent takes memory and a place.
pub const SESSION_IDLE_MS: u64 = 30 * 60_000;

/// How often clients are told to ask for the live state, in milliseconds (wire rules, section 2.2).
pub const LIVE_STATE_POLL_MS: u64 = 5_000;

/// Sessions of one page of a list where nothing is asked for: what the peer's client asks for.
pub const LIST_PAGE_DEFAULT: usize = 20;

/// Sessions of one page of a list at most. Each costs a look at its transcript.
pub const LIST_PAGE_MAX: usize = 500;

/// Sessions that are looked at for one page, those included that a filter leaves out: some tenths of a second on a cold disk.
pub const LIST_LOOKS_MAX: usize = 2_000;

/// Sessions of one list, at about 100 bytes each while it is made; of a folder that holds more, the newest.
pub const LIST_ROWS_MAX: usize = 100_000;

/// Walks through one workspace's list whose rows are kept; a client that pages has one.
pub const WALKS_MAX: usize = 32;

/// Rows of all those lists together, at about 90 bytes each: two of the longest, or as many walks as may be through a thousand sessions.
pub const WALK_ROWS_MAX: usize = 2 * LIST_ROWS_MAX;

/// Transcripts whose headlines are kept, at half a kilobyte each: those of the pages that are asked for again and again.
pub const HEADLINES_MAX: usize = 4_096;

/// Longest wait that a poll may ask for, in milliseconds: below the minute after which proxies commonly give a silent request up.
pub const POLL_WAIT_MS_MAX: u64 = 60_000;

/// Bytes of one piece of a whole answer on its way out.
pub const ANSWER_CHUNK_BYTES: usize = 64 * 1024;

/// Pieces of a whole answer that wait for a slow reader, who holds a thread meanwhile, until the socket is cut.
pub const ANSWER_CHUNKS: usize = 4;

/// Answers whose digests are kept. To make one anew is to read the answer once more.
pub const DIGESTS_MAX: usize = 64;

/// Answers whose places in their transcripts are kept, each with an open file. A client that fetches an answer range by range asks for
/// one of them.
pub const RECALLED_MAX: usize = 16;

/// Parts of an answer whose places are kept, at 24 bytes each. The largest that a host records has some hundreds.
pub const RECALLED_PARTS_MAX: usize = 4_096;

/// How long a connection task sleeps after an accept error that is not the peer's fault (out of descriptors), in milliseconds.
pub const ACCEPT_BACKOFF_MS: u64 = 100;

/// `Retry-After` of every answer that says to come back, in seconds (wire rules, section 18.1).
pub const RETRY_AFTER_S: u32 = 5;

/// Ledger records that wait for a disk that refuses them. More than a full set of sessions can leave open at once.
pub const HELD_RECORDS_MAX: usize = 1024;

/// Interval at which held ledger records are tried again, in milliseconds.
pub const HELD_RETRY_MS: u64 = 1_000;

/// Between two looks at a store that another daemon holds, in milliseconds.
pub const STORE_LOOK_MS: u64 = 20;

/// How often a held store is looked at again before the daemon is refused: for a second, which a killed daemon with a hundred
/// threads and files does not need to be gone.
pub const STORE_LOOKS: usize = 50;

/// How long a new session's host waits for the session's lock, in milliseconds: nobody should hold it.
pub const NEW_LOCK_WAIT_MS: u64 = 1_000;

/// How much earlier than the restore itself the wait for the lock ends at most, in milliseconds, so that the answer names the holder.
pub const LOCK_WAIT_MARGIN_MS: u64 = 5_000;

/// Workspaces one daemon serves. Each holds a lock, a bridge and some maps, and is looked through for a session that is nowhere.
pub const WORKSPACES_MAX: usize = 256;

/// Largest message at the ACP door, in bytes: a prompt's body, and what stands around it.
pub const DOOR_MESSAGE_BYTES_MAX: usize = BODY_BYTES_MAX + 64 * 1024;

/// Sessions that one editor's connection may be in. Each costs a reader of its events.
pub const DOOR_SESSIONS_MAX: usize = 64;

/// Sessions that one editor's connection may have on their way. Each may start a process.
pub const DOOR_OPENINGS_MAX: usize = 8;

/// Events of all sessions that wait for one editor behind what is being written to it. What does not fit waits in the sessions' own
/// queues, whose bounds decide that a reader is too slow.
pub const DOOR_EVENTS_QUEUED: usize = 64;

/// Interval of the pings to an editor, in milliseconds. One that answers neither of two is gone, and so is one that has not introduced
/// itself by then.
pub const DOOR_PING_MS: u64 = 20_000;

/// How long the agent may take to answer what an editor has us pass on, in milliseconds.
pub const DOOR_ASK_MS: u64 = 30_000;

/// How long the end of a connection may take to be said, in milliseconds.
pub const DOOR_CLOSE_MS: u64 = 1_000;

/// What one daemon allows. All counts are inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Live sessions of one workspace, those being opened included.
    pub max_sessions: usize,
    /// Live sessions of all workspaces, those being opened included.
    pub max_total_sessions: usize,
    /// Running and queued prompts of one session; 0 switches the limit off.
    pub max_pending_prompts: usize,
    /// Open sockets; the next one is told that it is one too many.
    pub max_connections: usize,
    /// How long a fresh connection has for its first request's head, and for the handshake before it, in milliseconds.
    pub first_head_ms: u64,
    /// How long an open connection may be idle, or take for the next head, in milliseconds. An open stream is not idle.
    pub head_ms: u64,
    /// How long a body may stay silent between two reads, in milliseconds.
    pub body_read_ms: u64,
    /// How long a whole body may take, in milliseconds.
    pub body_total_ms: u64,
    /// Events one session keeps for replay.
    pub event_ring_size: usize,
    /// Bytes of history and of finished turns one load answer may carry.
    pub compacted_replay_max_bytes: usize,
    /// Events of the running turn that an attach shows.
    pub journal_max_events: usize,
    /// Bytes of those events.
    pub journal_max_bytes: usize,
    /// Subscribers of one session's events.
    pub max_subscribers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_sessions: 32,
            max_total_sessions: 800,
            max_pending_prompts: 5,
            max_connections: 256,
            first_head_ms: FIRST_HEAD_READ_MS,
            head_ms: HEAD_READ_MS,
            body_read_ms: BODY_READ_MS,
            body_total_ms: BODY_TOTAL_MS,
            event_ring_size: 8_000,
            compacted_replay_max_bytes: bridge::limits::WINDOW_BYTES_MAX,
            journal_max_events: bridge::limits::JOURNAL_EVENTS_MAX,
            journal_max_bytes: bridge::limits::JOURNAL_BYTES_MAX,
            max_subscribers: 64,
        }
    }
}

const _: () = assert!(FIRST_HEAD_READ_MS <= HEAD_READ_MS);
const _: () = assert!(SHARED_PART_BYTES <= PIECE_BYTES);
const _: () = assert!(LIST_PAGE_DEFAULT <= LIST_PAGE_MAX && LIST_PAGE_MAX <= LIST_LOOKS_MAX);
const _: () =
    assert!(HEADLINES_MAX >= 2 * LIST_LOOKS_MAX, "what one page looked at is known when it is asked for again");
const _: () = assert!(WRITE_STALL_MS > HEARTBEAT_MS);
const _: () = assert!(SUBMIT_WAIT_MS > AGENT_INPUT_MS);
const _: () = assert!(REMNANT_SILENCE_MS < REMNANT_MS && REMNANT_SILENCE_MS < DRAIN_MS);
const _: () = assert!(DOOR_OPENINGS_MAX <= DOOR_SESSIONS_MAX);
const _: () = assert!(DRAIN_BYTES_MAX > BODY_BYTES_MAX);

/// Largest transcript of which two copies are made one, in bytes: both are held in memory for it.
pub const RESOLVED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Sessions that one request may archive, unarchive or delete (wire rules, section 6.8).
pub const SHELF_IDS_MAX: usize = 100;

/// How many of them are in work at once: a close may wait for its agent, and a store is not made faster by more.
pub const SHELF_AT_ONCE: usize = 8;

/// Between two looks at a session's lock, in milliseconds.
pub const HOST_GONE_POLL_MS: u64 = 20;

/// How long the host of a session that was closed may take to be gone, in milliseconds. Its agent is given 7 s to end before it is
/// killed.
pub const HOST_GONE_MS: u64 = 20_000;

/// Return requests that have not ended, of one session and of one daemon (return requests, section 2.11).
pub const RETURNS_SESSION_MAX: usize = 64;
/// See [`RETURNS_SESSION_MAX`].
pub const RETURNS_MAX: usize = 1_024;

/// Return requests whose prompts have ended and which are still found by them: an agent that answers late does so soon or never.
pub const RETURNS_ENDED_MAX: usize = 1_024;

/// How long an agent may leave a part of a return request's prompt in its input unread, unless a flag says otherwise, in milliseconds: a
/// pipe holds 64 KiB, and an agent that reads is never that busy.
pub const AGENT_INPUT_MS: u64 = 30_000;

/// How long a return request's caller waits for its prompt to be handed to the agent, in milliseconds. It is told how things stand then. A
/// host has given up on an agent that does not read by then, unless a flag gives it longer.
pub const SUBMIT_WAIT_MS: u64 = 35_000;

/// How long the end of a prompt waits for the store to keep it, in milliseconds: ten times what a slow disk takes for a commit.
pub const STAGE_WAIT_MS: u64 = 2_000;

/// Longest `wait_ms` of what is asked about return requests, in milliseconds (return requests, section 2.13).
pub const RETURNS_WAIT_MS_MAX: u64 = 30_000;

/// Readers of the terminal stream at once (return requests, section 2.12).
pub const RETURNS_SUBSCRIBERS_MAX: usize = 256;

/// Events of a page of the terminal stream that a reader has in memory.
pub const RETURNS_PAGE_EVENTS: usize = 100;

/// Between two looks at the lock of a session whose requests are to be decided, in milliseconds.
pub const RECOVERY_LOOK_MS: u64 = 50;

/// Between two looks at a turn of an earlier life whose request has ended, in milliseconds: nobody waits for what it comes to.
pub const AFTERWARDS_LOOK_MS: u64 = 500;

/// How many of the newest ends a new life looks through for turns that were to stop, and how many turns are followed behind the ends of their
/// requests at a time: each is a look at a lock and a transcript, again and again. What ended as a daemon died is among the newest.
pub const AFTERWARDS_TURNS_MAX: u32 = 256;

/// How much longer than a host may linger its session's lock is waited for before nothing more is expected, in milliseconds (return
/// requests, section 2.7).
pub const RECOVERY_WAIT_MS: u64 = 60_000;

/// How long a caller waits for the request store to be opened, in milliseconds: that of a thousand requests takes a few. Whoever comes while
/// one of a million is looked through is told to come again.
pub const RETURNS_OPEN_MS: u64 = 2_000;

/// Between two tries to open a request store that somebody else has, or whose disk is full, in milliseconds: at first, and at most.
pub const RETURNS_REOPEN_FIRST_MS: u64 = 1_000;
/// See [`RETURNS_REOPEN_FIRST_MS`].
pub const RETURNS_REOPEN_LAST_MS: u64 = 30_000;

/// The largest number that every reader of JSON keeps exactly.
pub const JSON_INTEGER_MAX: u64 = 9_007_199_254_740_991;

/// How long behind a deadline the host of an earlier life is still waited for, in milliseconds: a turn that ended in time is recorded, and its
/// host gone, in much less.
pub const DEADLINE_GRACE_MS: u64 = 1_000;

/// Between two looks for what may be pruned, in milliseconds.
pub const RETURNS_PRUNE_MS: u64 = 600_000;

/// How long the request store may take to write what waits at the end, in milliseconds (return requests, section 2.11).
pub const RETURNS_CLOSE_MS: u64 = 10_000;

/// How long a reader of the terminal stream may accept nothing before its connection ends, in milliseconds (return requests, section
/// 2.12).
pub const RETURNS_WRITE_MS: u64 = 30_000;

/// Return requests on one page of their list: what is shown without being asked for a number, and the most there are.
pub const RETURNS_LIST_DEFAULT: usize = 100;
/// See [`RETURNS_LIST_DEFAULT`].
pub const RETURNS_LIST_MAX: usize = 1_000;

/// How long one try to deliver a webhook may take, in milliseconds, from the connection to the last byte of the answer: ten times what a
/// receiver needs that only puts the event into a queue of its own.
pub const WEBHOOK_TRY_MS: u64 = 15_000;

/// Bytes that are read of the body of a webhook's answer, which nobody looks at. What is longer is cut off, and the status counts.
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the head of a webhook's answer, at most. What is longer is no answer.
pub const WEBHOOK_ANSWER_HEAD_BYTES_MAX: usize = 64 * 1024;

/// How far behind what its store saw last a clock has to be for the log to say so, in milliseconds: less is what keeping it right does to it.
pub const CLOCK_SET_BACK_MS: u64 = 1_000;
/// Between two times at which a webhook's courier asks a store in trouble, in milliseconds.
pub const WEBHOOK_STORE_PAUSE_MS: u64 = 1_000;
