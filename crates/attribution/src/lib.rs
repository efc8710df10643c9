//! From evidence to a verdict, or to the named reason why there is none.

mod admission;
mod evidence;
mod explain;
mod judge;
mod reconcile;
mod withheld;

pub use admission::{Admission, open_admissions};
pub use evidence::{Evidence, Write};
pub use explain::{Explanation, explain};
pub use judge::{Basis, DAEMON_LOST, RECONSTRUCTED, Settled, Verdict, judge};
pub use reconcile::{Plan, Reconciliation, Session, plan, reconcile};
pub use withheld::Withheld;
