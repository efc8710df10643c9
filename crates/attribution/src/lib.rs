//! From evidence to a verdict, or to the named reason why there is none.
//!
//! A daemon that died left a ledger, in which some prompts are open, and a transcript, which says what was said. From the
//! two [`judge`] concludes how a prompt ended, when that is sure: it is pure, and every check that can fail has a name in
//! [`Withheld`]. [`Evidence`] is what the judge needs of a transcript, [`reconcile`] reads both files and appends what is
//! concluded, [`report()`] tells a person and [`explain()`] a program. A missing ending is honest; a wrong one is the only unforgivable bug.

mod admission;
mod evidence;
mod explain;
mod judge;
mod reconcile;
#[cfg(feature = "strategies")]
pub mod strategies;
mod unresolved;
mod wished;
mod withheld;

pub use admission::{Admission, open_admissions};
pub use evidence::{Evidence, Write};
pub use explain::{Explanation, Report, Standing, explain, printable, printable_path, report};
pub use judge::{Basis, DAEMON_LOST, RECONSTRUCTED, Settled, Verdict, judge};
pub use reconcile::{Plan, Reconciliation, Session, plan, reconcile};
pub use unresolved::{Unresolved, unjudged};
pub use withheld::Withheld;
