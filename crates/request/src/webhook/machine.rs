//! All that can happen to an endpoint, all that can come of it, and the one function between them.

use super::limits::{RETRY_AFTER_MAX_MS, TRIES_MAX, TRYING_MAX_MS, WANTED_MAX};
use super::pause::pause_ms;
use super::{Endpoint, Fault, Sending, Standing, Ticket};

/// When something happens, and the chance that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time, in epoch milliseconds.
    pub at_ms: u64,
    /// 32 random bits.
    pub dice: u32,
}

/// What the stream holds: the numbers above `pruned_through` up to `head`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The highest number there is.
    pub head: u64,
    /// Up to which number everything was pruned.
    pub pruned_through: u64,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The daemon lives anew: nobody will hear the answer to what was on its way.
    Started,
    /// It may be time for the next event.
    Due,
    /// An answer came, whole.
    Answered {
        /// To what.
        ticket: Ticket,
        /// Its status.
        status: u16,
        /// Milliseconds for which the receiver wants to be left alone, where it said so.
        retry_after_ms: Option<u64>,
    },
    /// No answer came, or none that is one.
    Failed {
        /// To what.
        ticket: Ticket,
        /// What there was instead.
        fault: Fault,
    },
    /// Somebody wants it to have an event again.
    Redeliver {
        /// Which.
        seq: u64,
    },
    /// Somebody says that it is to be served: again, behind a gap, or without waiting.
    Resumed,
}

/// What can come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// An event is to be posted. It is on record that it is on its way.
    Send {
        /// What the answer is told with.
        ticket: Ticket,
        /// Which try of the event it is, from 1.
        number: u32,
    },
    /// There is nothing to do before a time in epoch milliseconds, or before something happens.
    Sleep {
        /// The time.
        until_ms: Option<u64>,
    },
    /// The same event is sent again.
    Retry {
        /// Not before this time, in epoch milliseconds; none for at once.
        next_at_ms: Option<u64>,
        /// What became of this try.
        fault: Fault,
    },
    /// The endpoint has an event, and the next one's turn has come.
    MoveOn {
        /// The event.
        seq: u64,
    },
    /// An event is not sent any more, unless on demand. If it was the next one, its successor's turn has come.
    DeadLetter {
        /// The event.
        seq: u64,
        /// Whether it was sent on demand.
        is_again: bool,
        /// How many tries that were.
        tries: u32,
        /// What became of the last one.
        fault: Fault,
    },
    /// The endpoint has an event that it was to have again.
    Redelivered {
        /// The event.
        seq: u64,
    },
    /// What was on its way may or may not have come; it is sent again, in its turn.
    PutBack,
    /// The endpoint wants no more.
    Disable {
        /// How it said so.
        fault: Fault,
    },
    /// Events are gone that it has not had.
    Gap {
        /// The first of them.
        from: u64,
        /// The last of them.
        through: u64,
    },
    /// An event is to be sent again.
    Want {
        /// Which.
        seq: u64,
    },
    /// It is served from here on, at once.
    GoOn {
        /// Behind this number.
        behind: u64,
    },
    /// What somebody wants is not done.
    Deny(Denial),
}

/// Why it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The endpoint wants no more.
    Disabled,
    /// There is no such event yet.
    Ahead,
    /// The event is not kept any more.
    Pruned,
    /// [`WANTED_MAX`] events wait already.
    TooMany,
}

/// Decides what comes of an input. The effects are applied in order ([`Endpoint::apply`]); after any but a `Send`, a `Sleep` or a `Deny`
/// it may be time for the next event.
#[must_use]
pub fn step(endpoint: &Endpoint, input: &Input, extent: Extent, now: Moment) -> Vec<Effect> {
    match *input {
        Input::Started if endpoint.sending.is_some() => vec![Effect::PutBack],
        Input::Started => Vec::new(),
        Input::Due => due(endpoint, extent, now),
        Input::Answered { ticket, .. } | Input::Failed { ticket, .. } if !is_on_its_way(endpoint, ticket) => Vec::new(),
        Input::Answered { ticket, status, retry_after_ms } => answered(endpoint, ticket, status, retry_after_ms, now),
        Input::Failed { ticket, fault } => vec![failed(endpoint, ticket.sending, fault, None, now)],
        Input::Redeliver { seq } => redeliver(endpoint, seq, extent),
        Input::Resumed => vec![resumed(endpoint, extent)],
    }
}

fn is_on_its_way(endpoint: &Endpoint, ticket: Ticket) -> bool {
    ticket.generation == endpoint.generation && endpoint.sending == Some(ticket.sending)
}

fn due(endpoint: &Endpoint, extent: Extent, now: Moment) -> Vec<Effect> {
    let idle = vec![Effect::Sleep { until_ms: None }];
    if endpoint.sending.is_some() || endpoint.standing == Standing::Disabled {
        return idle;
    }
    if let Some(&seq) = endpoint.wanted.first() {
        return vec![send(endpoint, Sending { seq, is_again: true })];
    }
    if endpoint.standing != Standing::Active {
        return idle;
    }
    let seq = endpoint.acked + 1;
    if seq <= extent.pruned_through {
        return vec![Effect::Gap { from: seq, through: extent.pruned_through }];
    }
    if seq > extent.head {
        return idle;
    }
    let trying = &endpoint.trying;
    if trying.tries >= TRIES_MAX {
        let fault = trying.fault.unwrap_or(Fault::CutOff);
        return vec![Effect::DeadLetter { seq, is_again: false, tries: trying.tries, fault }];
    }
    match trying.next_at {
        // No pause is that long: the clock was put back.
        Some(next_at) if next_at > now.at_ms && next_at - now.at_ms <= RETRY_AFTER_MAX_MS => {
            vec![Effect::Sleep { until_ms: Some(next_at) }]
        }
        _ => vec![send(endpoint, Sending { seq, is_again: false })],
    }
}

fn send(endpoint: &Endpoint, sending: Sending) -> Effect {
    let number = if sending.is_again { 1 } else { endpoint.trying.tries + 1 };
    Effect::Send { ticket: endpoint.ticket(sending), number }
}

fn answered(endpoint: &Endpoint, ticket: Ticket, status: u16, retry_after_ms: Option<u64>, now: Moment) -> Vec<Effect> {
    let Sending { seq, is_again } = ticket.sending;
    match status {
        200..=299 if is_again => vec![Effect::Redelivered { seq }],
        200..=299 => vec![Effect::MoveOn { seq }],
        // What was to be sent again on demand is a letter as it was before; what was sent in its turn waits for better times.
        410 if is_again => {
            let fault = Fault::Answered(status);
            vec![failed(endpoint, ticket.sending, fault, None, now), Effect::Disable { fault }]
        }
        410 => vec![Effect::Disable { fault: Fault::Answered(status) }],
        429 | 503 => vec![failed(endpoint, ticket.sending, Fault::Answered(status), retry_after_ms, now)],
        _ => vec![failed(endpoint, ticket.sending, Fault::Answered(status), None, now)],
    }
}

/// A try that did not deliver: the next one, or none any more. A demand is one try.
fn failed(endpoint: &Endpoint, sending: Sending, fault: Fault, retry_after_ms: Option<u64>, now: Moment) -> Effect {
    let Sending { seq, is_again } = sending;
    if is_again {
        return Effect::DeadLetter { seq, is_again, tries: 1, fault };
    }
    let trying = &endpoint.trying;
    let since = now.at_ms.saturating_sub(trying.first_at.unwrap_or(now.at_ms));
    if trying.tries >= TRIES_MAX || since >= TRYING_MAX_MS {
        return Effect::DeadLetter { seq, is_again, tries: trying.tries, fault };
    }
    Effect::Retry { next_at_ms: Some(now.at_ms + pause_ms(trying.tries, retry_after_ms, now.dice)), fault }
}

fn redeliver(endpoint: &Endpoint, seq: u64, extent: Extent) -> Vec<Effect> {
    let denial = if endpoint.standing == Standing::Disabled {
        Denial::Disabled
    } else if seq > extent.head {
        Denial::Ahead
    } else if seq <= extent.pruned_through {
        Denial::Pruned
    } else if endpoint.wanted.contains(&seq) {
        return Vec::new();
    } else if endpoint.wanted.len() >= WANTED_MAX {
        Denial::TooMany
    } else {
        return vec![Effect::Want { seq }];
    };
    vec![Effect::Deny(denial)]
}

fn resumed(endpoint: &Endpoint, extent: Extent) -> Effect {
    match endpoint.standing {
        // All that is gone by now, which may be more than when it was told.
        Standing::Gap { .. } => Effect::GoOn { behind: extent.pruned_through },
        Standing::Active | Standing::Disabled => Effect::GoOn { behind: endpoint.acked },
    }
}
