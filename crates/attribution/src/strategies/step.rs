//! One step of a simulation.

use proptest::prelude::{Just, any};
use proptest::strategy::{BoxedStrategy, Strategy, Union};
use proptest::{prop_oneof, sample};

use super::rules::{Rules, Second};
use super::story::{Outcome, What};

/// What happens next. A step that makes no sense when its turn comes changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many milliseconds pass, or are taken back, until the next event.
    Wait(i64),
    /// A client submits a prompt.
    Submit {
        /// Whether its admission carries a marker.
        is_marked: bool,
        /// Whether an id is used again that has ended and whose turn is over.
        is_again: bool,
    },
    /// The running turn does the next thing: it is dispatched, asks, ends what it has begun to end, or writes this.
    Work(What),
    /// The same, of a turn that was overtaken.
    WorkOvertaken(What),
    /// The running turn begins to end.
    Finish {
        /// How. A turn that is being cancelled ends cancelled.
        outcome: Outcome,
        /// Whether it had said something, where it did not end well.
        has_said: bool,
        /// Whether its result gets recorded, where it ended well.
        is_recorded: bool,
        /// Whether it is an overtaken turn.
        is_overtaken: bool,
    },
    /// A client cancels the running prompt, or takes back the one that waits longest.
    Cancel,
    /// The running prompt runs into its deadline.
    Deadline,
    /// The session writes a note between turns or beside one.
    Note(What),
    /// A client rewinds the session by so many prompts.
    Rewind(usize),
    /// A second program writes this.
    Second(What),
    /// The second program ends, or the next thing that it writes begins another turn.
    SecondEnds,
    /// The ledger loses what it gets next.
    Lose {
        /// Whether that is every line of the prompt that is submitted next, and not the next line alone.
        is_whole_prompt: bool,
    },
    /// A write is torn, and the program that wrote stops.
    Tear {
        /// How many writes get to the disk before it.
        after: u8,
        /// After how many thousandths of its bytes.
        thousandths: u16,
    },
    /// The daemon is killed.
    KillDaemon,
    /// The daemon and the session's writer are killed.
    Kill,
    /// The daemon shuts down: it ends every prompt, and is killed when it has ended so many.
    ShutDown {
        /// How many, the running one first.
        ends: u8,
    },
    /// The daemon comes back and loads the session.
    Restart {
        /// Which of the open prompts it settles, truthfully, one bit each. A load that skips reconciliation settles none.
        settles: u8,
    },
}

/// A step of a world with these rules.
pub(super) fn step(rules: Rules) -> BoxedStrategy<Step> {
    let settles = prop_oneof![1 => Just(0), 2 => Just(u8::MAX), 1 => any::<u8>()];
    prop_oneof![
        12 => work(rules, 6),
        weight_of_beside(rules) => beside(rules),
        1 => kill(),
        1 => settles.prop_map(|settles| Step::Restart { settles }),
    ]
    .boxed()
}

/// A step of a world that comes to its end: nobody comes back any more.
pub(super) fn last_step(rules: Rules) -> BoxedStrategy<Step> {
    prop_oneof![30 => work(rules, 1), 6 * weight_of_beside(rules) => beside(rules), 1 => kill()].boxed()
}

/// What happens beside a turn is worth more where it takes several such things to open the world.
fn weight_of_beside(rules: Rules) -> u32 {
    if rules.overlaps && rules.loses_lines { 4 } else { 1 }
}

/// What clients, daemon and agent do. The rest of it weighs 35.
fn work(rules: Rules, weight_of_submit: u32) -> impl Strategy<Value = Step> {
    let submit = (any::<bool>(), rarely())
        .prop_map(move |(is_marked, is_again)| Step::Submit { is_marked: is_marked || rules.marks_always, is_again });
    let is_overtaken = if rules.overlaps { any::<bool>().boxed() } else { Just(false).boxed() };
    let finish = (outcome(), any::<bool>(), any::<bool>(), is_overtaken).prop_map(
        |(outcome, has_said, is_recorded, is_overtaken)| Step::Finish { outcome, has_said, is_recorded, is_overtaken },
    );
    prop_oneof![
        6 => passing(rules).prop_map(Step::Wait),
        weight_of_submit => submit,
        16 => worked().prop_map(Step::Work),
        8 => finish,
        if rules.wishes { 8 } else { 2 } => Just(Step::Cancel),
        2 => noted().prop_map(Step::Note),
        1 => (0..3_usize).prop_map(Step::Rewind),
    ]
}

/// What happens beside a turn, as far as it can in this world.
fn beside(rules: Rules) -> BoxedStrategy<Step> {
    let mut kinds = vec![(2, Just(Step::Deadline).boxed())];
    if rules.overlaps {
        kinds.push((6, worked().prop_map(Step::WorkOvertaken).boxed()));
    }
    if rules.loses_lines {
        kinds.push((6, any::<bool>().prop_map(|is_whole_prompt| Step::Lose { is_whole_prompt }).boxed()));
    }
    if rules.second != Second::Nobody {
        kinds.push((8, seconded().prop_map(Step::Second).boxed()));
        kinds.push((2, Just(Step::SecondEnds).boxed()));
    }
    Union::new_weighted(kinds).boxed()
}

fn kill() -> impl Strategy<Value = Step> {
    let thousandths = prop_oneof![4 => 0..1_000_u16, 1 => Just(1_000)];
    let after = prop_oneof![2 => Just(0), 1 => 0..4_u8];
    prop_oneof![
        3 => (after, thousandths).prop_map(|(after, thousandths)| Step::Tear { after, thousandths }),
        2 => Just(Step::KillDaemon),
        2 => Just(Step::Kill),
        2 => (0..4_u8).prop_map(|ends| Step::ShutDown { ends }),
    ]
}

fn rarely() -> impl Strategy<Value = bool> {
    prop_oneof![7 => Just(false), 1 => Just(true)]
}

/// How time passes: the ties of a fast machine, and the pace of a model.
fn passing(rules: Rules) -> BoxedStrategy<i64> {
    let forward = prop_oneof![2 => Just(0), 2 => 1..10_i64, 1 => 10..5_000_i64];
    if rules.clock_steps { prop_oneof![3 => forward, 1 => -20_000..20_000_i64].boxed() } else { forward.boxed() }
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![4 => Just(Outcome::Completed), 1 => Just(Outcome::Cancelled), 1 => Just(Outcome::Failed)]
}

/// What a turn writes before it ends.
fn worked() -> impl Strategy<Value = What> {
    sample::select(
        &[
            What::Call,
            What::Call,
            What::Tool,
            What::Tool,
            What::BlindCall,
            What::Reminder,
            What::MidTurn,
            What::Notification,
            What::Job,
            What::Note,
        ][..],
    )
}

/// What a session writes at any time.
fn noted() -> impl Strategy<Value = What> {
    sample::select(
        &[What::Note, What::Title, What::Artifact, What::Compression, What::EmptyCompression, What::Spoken, What::Job]
            [..],
    )
}

/// What a second program writes.
fn seconded() -> impl Strategy<Value = What> {
    sample::select(
        &[
            What::User,
            What::Call,
            What::Tool,
            What::Answer,
            What::Answer,
            What::Result(Outcome::Completed),
            What::Compression,
        ][..],
    )
}
