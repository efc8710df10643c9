//! The thin half: streams, tasks and the lock around the machine.

mod ask;
mod bridge;
mod driver;
mod generation;
mod greeting;
mod hold;
mod live;
mod open;
mod outbox;
mod session;
mod settings;
mod subscription;
mod tasks;
mod unreadable;
mod witnessing;

pub use ask::AskError;
pub use bridge::{Bridge, Options};
pub use generation::{Generation, Heard};
pub use hold::Held;
pub use open::{Kind, OpenError, OpenSession, Opened, Streams};
pub use session::{CloseError, Detached, Session};
pub use settings::{Change, Changed, Inquiry};
pub use subscription::{Subscribe, SubscribeError, Subscription};
