//! What is kept of an endpoint.

use super::machine::Effect;
use super::{EndpointName, Fault, Secret};

/// An endpoint: a row of the store. What happens to it is decided by [`super::step`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name.
    pub name: EndpointName,
    /// Whose it is.
    pub owner: String,
    /// Where events are posted to.
    pub url: String,
    /// What signs them.
    pub secret: Secret,
    /// What signs them too, while its receivers change from this one to the other.
    pub former_secret: Option<Secret>,
    /// Another one each time that URL or secret change, also when the endpoint was deleted in between: what an earlier one answered says
    /// nothing about this one.
    pub generation: u64,
    /// The number up to which it has every event, or a dead letter of it, or was told of a gap.
    pub acked: u64,
    /// Whether it is served.
    pub standing: Standing,
    /// How it goes with the event behind `acked`.
    pub trying: Trying,
    /// What is on its way to it, if anything. Never more than one.
    pub sending: Option<Sending>,
    /// Events that are to be sent again on demand, in the order in which that was demanded.
    pub wanted: Vec<u64>,
    /// When it was first named, in epoch milliseconds.
    pub created_at: u64,
    /// When it last changed, in epoch milliseconds.
    pub updated_at: u64,
}

/// Whether an endpoint is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    #[default]
    Active,
    /// It said with 410 that it wants no more. Somebody must say otherwise.
    Disabled,
    /// Events were pruned that it has not had. It is not served before somebody says that it may go on behind them: what comes behind a
    /// hole that nobody has seen would look like the next one.
    Gap {
        /// The first of them.
        from: u64,
        /// The last of them.
        through: u64,
    },
}

/// What somebody wants about an endpoint's secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// This one signs from now on, and so does the one before it.
    Begin(Secret),
    /// The one before it signs no more.
    End,
    /// The newer one signs no more: it is as it was before.
    TakeBack,
}

/// Why it is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationDenied {
    /// Two sign already. A third one would silently end one that receivers may know.
    Rotating,
    /// Only one signs.
    OnlyOne,
}

/// The tries of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trying {
    /// How many began.
    pub tries: u32,
    /// When the first one began, in epoch milliseconds.
    pub first_at: Option<u64>,
    /// When the next one may begin, in epoch milliseconds; none for at once.
    pub next_at: Option<u64>,
    /// What became of the last one.
    pub fault: Option<Fault>,
}

/// What is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The event.
    pub seq: u64,
    /// Whether it is sent again on demand, out of order.
    pub is_again: bool,
}

/// What an answer is told with: it is heard only while this is what is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// To which of the endpoints of that name.
    pub generation: u64,
    /// What.
    pub sending: Sending,
}

/// An event that an endpoint did not take within the limits, or that is wanted again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The event.
    pub seq: u64,
    /// Whether it waits to be sent again.
    pub is_wanted: bool,
    /// How often it was tried, those on demand included.
    pub tries: u32,
    /// What became of the last try; none for an event that is only wanted again.
    pub fault: Option<Fault>,
    /// When that was, in epoch milliseconds.
    pub at_ms: u64,
}

impl Endpoint {
    /// All that signs what goes to it, the newest first.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.secret).chain(&self.former_secret)
    }

    /// Does what somebody wants about its secrets. Whether a receiver has to know of it is the caller's business: what is on its way stays so.
    ///
    /// # Errors
    /// See [`RotationDenied`]; nothing has changed then.
    pub fn rotate(&mut self, rotation: Rotation) -> Result<(), RotationDenied> {
        match (rotation, self.former_secret.take()) {
            // The same call once more.
            (Rotation::Begin(secret), former) if secret == self.secret => self.former_secret = former,
            (Rotation::Begin(secret), None) => self.former_secret = Some(std::mem::replace(&mut self.secret, secret)),
            (Rotation::Begin(_), former) => {
                self.former_secret = former;
                return Err(RotationDenied::Rotating);
            }
            (Rotation::End, Some(_)) => {}
            (Rotation::TakeBack, Some(former)) => self.secret = former,
            (Rotation::End | Rotation::TakeBack, None) => return Err(RotationDenied::OnlyOne),
        }
        Ok(())
    }

    /// What an answer to what is on its way is told with.
    pub(super) fn ticket(&self, sending: Sending) -> Ticket {
        Ticket { generation: self.generation, sending }
    }

    /// Makes it what follows from an effect. What is kept beside it, its letters, is not here.
    pub fn apply(&mut self, effect: &Effect, at_ms: u64) {
        match *effect {
            Effect::Send { ticket, .. } => {
                self.sending = Some(ticket.sending);
                if !ticket.sending.is_again {
                    self.trying.tries += 1;
                    self.trying.first_at.get_or_insert(at_ms);
                    self.trying.next_at = None;
                }
            }
            Effect::Retry { next_at_ms, fault } => {
                self.sending = None;
                self.trying = Trying { next_at: next_at_ms, fault: Some(fault), ..self.trying };
            }
            Effect::MoveOn { seq } | Effect::DeadLetter { seq, is_again: false, .. } => {
                self.sending = None;
                self.acked = seq;
                self.trying = Trying::default();
            }
            Effect::DeadLetter { seq, is_again: true, .. } | Effect::Redelivered { seq } => {
                self.sending = None;
                self.wanted.retain(|wanted| *wanted != seq);
            }
            Effect::PutBack => self.sending = None,
            Effect::Disable { fault } => {
                self.sending = None;
                self.standing = Standing::Disabled;
                self.trying = Trying { fault: Some(fault), ..Trying::default() };
            }
            Effect::Gap { from, through } => {
                self.standing = Standing::Gap { from, through };
                self.trying = Trying::default();
            }
            Effect::Want { seq } => self.wanted.push(seq),
            Effect::GoOn { behind } => {
                self.standing = Standing::Active;
                self.acked = self.acked.max(behind);
                self.trying = Trying::default();
            }
            Effect::Sleep { .. } | Effect::Deny(_) => return,
        }
        self.updated_at = at_ms;
    }
}
