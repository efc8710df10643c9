//! The one place that constructs a bridge. Whatever workspace or transport asks for one gets it here, with the sink, so that no
//! prompt can be admitted past the ledger (design, section 2).

use std::sync::Arc;

use bridge::limits::{Limits, Timeouts};
use bridge::{Bounds, Bridge, Clock};

use crate::clock;
use crate::options::ServeOptions;
use crate::returns::Eyewitness;
use crate::sink::LedgerSink;

/// A bridge that writes to `sink`, and tells `witness` of the prompts that have one.
pub(crate) fn wire(sink: Arc<LedgerSink>, witness: Eyewitness, options: &ServeOptions) -> Bridge {
    let limits = Limits {
        pending_prompts: match options.limits.max_pending_prompts {
            0 => usize::MAX,
            limit => limit,
        },
        sessions: options.limits.max_sessions,
        subscribers: options.limits.max_subscribers,
        ring_events: options.limits.event_ring_size,
        compaction: Bounds {
            window_bytes: options.limits.compacted_replay_max_bytes,
            journal_events: options.limits.journal_max_events,
            journal_bytes: options.limits.journal_max_bytes,
        },
    };
    let timeouts = Timeouts {
        initialize_ms: options.initialize_timeout_ms,
        restore_ms: options.restore_timeout_ms,
        settle_ms: options.close_settle_ms,
        grace_ms: options.settle_grace_ms,
        ..Timeouts::default()
    };
    let clock = Clock::new(clock::now_ms);
    Bridge::new(bridge::Options {
        ledger: sink,
        witness: Some(Arc::new(witness)),
        clock,
        limits,
        timeouts,
        mediation: options.mediation,
    })
}
