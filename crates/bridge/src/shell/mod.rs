//! The thin half: streams, tasks and the lock around the machine.

mod bridge;
mod open;
mod session;
mod subscription;

pub use bridge::{Bridge, Options};
pub use open::{Kind, OpenError, OpenSession, Opened, Streams};
pub use session::{CloseError, Detached, Session};
pub use subscription::{Subscribe, SubscribeError, Subscription};
