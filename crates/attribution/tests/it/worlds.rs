//! The verdict against the truth, in simulated worlds.

use std::collections::BTreeMap;

use attribution::strategies::{Rules, World, worlds};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::files::Files;

/// What the verdict said of the worlds, by reason.
#[derive(Debug, Default)]
struct Tally {
    settled: BTreeMap<String, usize>,
    withheld: BTreeMap<String, usize>,
}

/// Judges so many worlds; the first one whose verdict contradicts the truth, made as small as it goes, is an error.
fn judge(rules: Rules, count: u32) -> Result<Tally, String> {
    let files = Files::with(None, None);
    let tally = std::cell::RefCell::new(Tally::default());
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let strategy = worlds(rules).prop_filter("something open", |_| true);
    let result = runner.run(&strategy, |world: World| {
        let remains = world.story.remains();
        files.write_ledger(&remains.ledger);
        files.write_transcript(&remains.transcript);
        let verdict = files.plan().verdict;
        let mut tally = tally.borrow_mut();
        for settled in &verdict.settled {
            if !world.allows(&settled.prompt_id, &settled.fact) {
                return Err(TestCaseError::fail(format!("{settled:?}")));
            }
            *tally.settled.entry(format!("{:?}", settled.basis)).or_default() += 1;
        }
        if let Some(withheld) = verdict.withheld {
            *tally.withheld.entry(withheld.to_string()).or_default() += 1;
        }
        Ok(())
    });
    result.map(|()| tally.into_inner()).map_err(|error| error.to_string())
}

#[test]
fn explore() {
    for (name, rules) in [("stamped", Rules::STAMPED), ("lossy", Rules::STAMPED_LOSSY), ("unstamped", Rules::UNSTAMPED)]
    {
        println!("{name}: {:#?}", judge(rules, 20_000));
    }
    for residual in attribution::strategies::Residual::ALL {
        println!("{residual:?}: {:?}", judge(residual.rules(), 20_000).err());
    }
}
