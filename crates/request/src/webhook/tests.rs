//! An endpoint to try the machine on, and what all its tests say shortly.

mod properties;
mod rotation;
mod table;

use super::{Effect, Endpoint, EndpointName, Extent, Input, Moment, Secret, Sending, Standing, Ticket, Trying, step};

/// When every test begins, in epoch milliseconds.
const NOON: u64 = 1_800_000_000_000;

fn endpoint() -> Endpoint {
    Endpoint {
        name: EndpointName::parse("pager").unwrap(),
        owner: "o".to_owned(),
        url: "http://localhost/".to_owned(),
        secret: Secret::new(vec![1; 24]).unwrap(),
        former_secret: None,
        generation: 7,
        acked: 0,
        standing: Standing::Active,
        trying: Trying::default(),
        sending: None,
        wanted: Vec::new(),
        created_at: NOON,
        updated_at: NOON,
    }
}

fn in_turn(seq: u64) -> Ticket {
    Ticket { generation: 7, sending: Sending { seq, is_again: false } }
}

fn again(seq: u64) -> Ticket {
    Ticket { generation: 7, sending: Sending { seq, is_again: true } }
}

fn answered(ticket: Ticket, status: u16) -> Input {
    Input::Answered { ticket, status, retry_after_ms: None }
}

/// An endpoint, the stream, and the time.
struct World {
    endpoint: Endpoint,
    extent: Extent,
    now: Moment,
}

impl World {
    /// A stream of `head` events, and an endpoint that has had none.
    fn of(head: u64) -> Self {
        let now = Moment { at_ms: NOON, dice: 1 << 31 };
        Self { endpoint: endpoint(), extent: Extent { head, pruned_through: 0 }, now }
    }

    /// Lets something happen; the effects, which are applied.
    fn step(&mut self, input: Input) -> Vec<Effect> {
        let effects = step(&self.endpoint, &input, self.extent, self.now);
        for effect in &effects {
            self.endpoint.apply(effect, self.now.at_ms);
        }
        effects
    }

    fn due(&mut self) -> Vec<Effect> {
        self.step(Input::Due)
    }
}
