-- The request store, version 1; what each later one adds is in `schema/`. Times are UTC milliseconds; every table is strict.
-- Words of states are text, so that a shell on the file can be read without this program.

CREATE TABLE meta (
    only           INTEGER PRIMARY KEY CHECK (only = 1),
    stream_id      TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    daemon_epoch   INTEGER NOT NULL,
    -- The only source of numbers.
    head_seq       INTEGER NOT NULL,
    head_chain     BLOB    NOT NULL CHECK (length(head_chain) = 32),
    pruned_through INTEGER NOT NULL CHECK (pruned_through >= 0 AND pruned_through <= head_seq),
    -- The chain value at `pruned_through`: what is left is recomputed from it.
    pruned_chain   BLOB    NOT NULL CHECK (length(pruned_chain) = 32),
    tombstone_floor INTEGER NOT NULL,
    clean_shutdown INTEGER NOT NULL CHECK (clean_shutdown IN (0, 1)),
    last_wall_ms   INTEGER NOT NULL,
    -- Raised by every commit: after an error of the disk it says whether the last one is in the file.
    commit_no      INTEGER NOT NULL,
    -- Set when the store was exported: it lives elsewhere now.
    closed_at      INTEGER
) STRICT;

CREATE TABLE incarnation (
    incarnation_id    TEXT    PRIMARY KEY,
    daemon_epoch      INTEGER NOT NULL,
    boot_id           TEXT    NOT NULL,
    child_pid         INTEGER NOT NULL,
    child_start_ticks INTEGER NOT NULL,
    nonce             TEXT    NOT NULL,
    agent_name        TEXT,
    agent_version     TEXT,
    protocol_version  TEXT,
    workspace_key     TEXT    NOT NULL,
    spawned_at        INTEGER NOT NULL,
    ended_at          INTEGER,
    end_reason        TEXT
) STRICT;

CREATE TABLE request (
    request_id         TEXT    PRIMARY KEY,
    owner              TEXT    NOT NULL,
    input_hash         BLOB    NOT NULL CHECK (length(input_hash) = 32),
    hash_version       INTEGER NOT NULL,
    session_id         TEXT    NOT NULL,
    incarnation_id     TEXT    REFERENCES incarnation (incarnation_id),
    prompt_id          TEXT    NOT NULL UNIQUE,
    state              TEXT    NOT NULL,
    phase              TEXT    NOT NULL,
    input_written      TEXT    NOT NULL CHECK (input_written IN ('no', 'maybe', 'yes')),
    code               TEXT,
    detail             TEXT,
    rev                INTEGER NOT NULL,
    options            TEXT    NOT NULL,
    timeout_ms         INTEGER NOT NULL,
    deadline_at        INTEGER,
    prompt_hash        BLOB    NOT NULL CHECK (length(prompt_hash) = 32),
    prompt_bytes       INTEGER NOT NULL,
    baseline_prompt_id TEXT,
    baseline_turn      INTEGER NOT NULL,
    armed_event_id     INTEGER,
    armed_tail         TEXT,
    user_record_id     TEXT,
    evidence           TEXT,
    created_at         INTEGER NOT NULL,
    admitted_at        INTEGER,
    dispatched_at      INTEGER,
    submitted_at       INTEGER,
    bound_at           INTEGER,
    ended_at           INTEGER,
    stop_reason        TEXT,
    final_message      TEXT,
    final_bytes        INTEGER,
    final_sha256       BLOB CHECK (final_sha256 IS NULL OR length(final_sha256) = 32),
    final_truncated    INTEGER NOT NULL CHECK (final_truncated IN (0, 1)),
    terminal_seq       INTEGER UNIQUE,
    CHECK ((terminal_seq IS NULL) = (state IN ('registered', 'submitted', 'bound'))),
    CHECK (state IN ('registered', 'submitted', 'bound', 'completed', 'aborted', 'timed_out', 'cancelled',
                     'delivery_failed', 'indeterminate')),
    CHECK ((final_message IS NOT NULL) = (state = 'completed'))
) STRICT;

CREATE INDEX request_open ON request (created_at) WHERE terminal_seq IS NULL;
CREATE INDEX request_deadline ON request (deadline_at) WHERE terminal_seq IS NULL AND deadline_at IS NOT NULL;
-- A process that nobody refers to can be forgotten without looking through all requests.
CREATE INDEX request_incarnation ON request (incarnation_id);
CREATE INDEX request_session ON request (session_id, state);

CREATE TABLE outcome_stage (
    request_id TEXT    PRIMARY KEY REFERENCES request (request_id) ON DELETE CASCADE,
    outcome    TEXT    NOT NULL,
    at         INTEGER NOT NULL
) STRICT;

CREATE TABLE terminal_event (
    seq        INTEGER PRIMARY KEY,
    request_id TEXT    NOT NULL UNIQUE REFERENCES request (request_id),
    at         INTEGER NOT NULL,
    payload    TEXT    NOT NULL,
    chain      BLOB    NOT NULL CHECK (length(chain) = 32)
) STRICT;

CREATE TABLE late_evidence (
    id         INTEGER PRIMARY KEY,
    request_id TEXT    NOT NULL REFERENCES request (request_id) ON DELETE CASCADE,
    at         INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    payload    TEXT    NOT NULL
) STRICT;

CREATE INDEX late_request ON late_evidence (request_id);

CREATE TABLE consumer (
    name       TEXT    PRIMARY KEY,
    owner      TEXT    NOT NULL,
    acked_seq  INTEGER NOT NULL,
    protect    INTEGER NOT NULL CHECK (protect IN (0, 1)),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- An endpoint is a protected consumer that the daemon serves; its name there is `webhook:` and its own.
CREATE TABLE webhook (
    consumer      TEXT    PRIMARY KEY REFERENCES consumer (name),
    url           TEXT    NOT NULL,
    secret        BLOB    NOT NULL CHECK (length(secret) BETWEEN 24 AND 64),
    -- Another one each time that URL or secret change.
    generation    INTEGER NOT NULL,
    standing      TEXT    NOT NULL CHECK (standing IN ('active', 'disabled', 'gap')),
    gap_from      INTEGER,
    gap_through   INTEGER,
    -- How it goes with the event behind the consumer's number.
    tries         INTEGER NOT NULL,
    first_at      INTEGER,
    next_at       INTEGER,
    fault         TEXT,
    status        INTEGER,
    -- What is on its way, and whether on demand.
    sending_seq   INTEGER,
    sending_again INTEGER CHECK (sending_again IN (0, 1)),
    CHECK ((standing = 'gap') = (gap_from IS NOT NULL AND gap_through IS NOT NULL)),
    CHECK ((sending_seq IS NULL) = (sending_again IS NULL))
) STRICT;

-- What an endpoint did not take, and what is to be sent to it again.
CREATE TABLE webhook_letter (
    consumer TEXT    NOT NULL REFERENCES webhook (consumer) ON DELETE CASCADE,
    seq      INTEGER NOT NULL,
    -- Its place among those that are wanted again.
    wanted   INTEGER,
    tries    INTEGER NOT NULL,
    fault    TEXT,
    status   INTEGER,
    at       INTEGER NOT NULL,
    PRIMARY KEY (consumer, seq)
) STRICT;

CREATE TABLE tombstone (
    request_id   TEXT    PRIMARY KEY,
    input_hash   BLOB    NOT NULL CHECK (length(input_hash) = 32),
    hash_version INTEGER NOT NULL,
    owner        TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    code         TEXT,
    terminal_seq INTEGER NOT NULL,
    ended_at     INTEGER NOT NULL
) STRICT;

CREATE INDEX tombstone_ended ON tombstone (ended_at);
