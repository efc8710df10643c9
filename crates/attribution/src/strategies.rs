//! Stories and simulated worlds, for property tests of attribution guards. Feature `strategies`.
//!
//! A [`Story`] is what a daemon and the writers of a transcript wrote, event by event; it reads like the design's own
//! sentences, `[A if, B if, A term]`, and renders to the bytes of a ledger and a transcript. A [`World`] is a story that a
//! simulation told, together with the truth: what really became of every prompt. Whoever judges the two files can be held
//! to one sentence: no verdict contradicts the truth.
//!
//! ```
//! use turnd_attribution::strategies::Story;
//!
//! let story: Story = "[A if marked, A user, answer, B if marked, A term]".parse()?;
//! let remains = story.remains();
//! assert!(remains.ledger.starts_with(br#"{"v":1,"promptId":"A","state":"in_flight","at":"#));
//! # Ok::<(), turnd_attribution::strategies::NotationError>(())
//! ```

mod disk;
mod notation;
mod remains;
mod rules;
mod simulation;
mod step;
mod story;
mod turn;
mod world;

pub use notation::NotationError;
pub use remains::{Remains, SESSION_ID, START_MS, WORKSPACE};
pub use rules::{Residual, Rules, Second};
pub use step::Step;
pub use story::{Deed, Ending, Entry, Event, Flaw, Marker, Name, Outcome, Parent, Story, What};
pub use world::{Truth, World, worlds};
