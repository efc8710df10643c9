//! Judges many simulated worlds and says what the verdicts were, and whether one of them was wrong.
//!
//! `cargo run --release -p turnd-attribution --features strategies --example worlds -- COUNT [SEED]`: so many worlds for each set of
//! rules in which no verdict may be wrong, and as many, at most, for each class in which one can be, until one is found.

#![expect(clippy::print_stdout, reason = "an example that tells")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use ledger::{Durability, Ledger};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use turnd_attribution::strategies::{Residual, Rules, SESSION_ID, WORKSPACE, World, worlds};
use turnd_attribution::{Session, Verdict, plan};

/// The rules in which no verdict may be wrong.
const CLOSED: [(&str, Rules); 6] = [
    ("stamped", Rules::STAMPED),
    ("stamped, lossy", Rules::STAMPED_LOSSY),
    ("unstamped", Rules::UNSTAMPED),
    ("stamped, wishes", Rules::STAMPED.with_wishes()),
    ("stamped, lossy, wishes", Rules::STAMPED_LOSSY.with_wishes()),
    ("unstamped, wishes", Rules::UNSTAMPED.with_wishes()),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().ok_or("how many worlds?")?.parse()?;
    let seed: u64 = arguments.next().map_or(Ok(0), |seed| seed.parse())?;
    let folder = tempfile::tempdir()?;
    let mut wrong = 0;
    for (name, rules) in CLOSED {
        let mut tally = BTreeMap::new();
        for world in generate(rules, seed).take(count) {
            let verdict = judge(&world, folder.path())?;
            wrong += usize::from(contradicts(&world, &verdict));
            for word in words(&world, &verdict) {
                *tally.entry(word).or_insert(0_usize) += 1;
            }
        }
        println!("{name}: {count} worlds");
        for (word, count) in tally {
            println!("    {count:>9}  {word}");
        }
    }
    for residual in Residual::ALL {
        let mut met = None;
        for (index, world) in generate(residual.rules(), seed).take(count).enumerate() {
            let verdict = judge(&world, folder.path())?;
            if contradicts(&world, &verdict) {
                met = Some((index + 1, world));
                break;
            }
        }
        match met {
            Some((index, world)) => println!("{residual:?}: met in world {index}: {world:?}"),
            None => println!("{residual:?}: not met"),
        }
    }
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} verdicts contradict the truth").into()) }
}

/// Worlds without end, the same ones for the same seed.
fn generate(rules: Rules, seed: u64) -> impl Iterator<Item = World> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = worlds(rules);
    std::iter::from_fn(move || strategy.new_tree(&mut runner).ok().map(|tree| tree.current()))
}

fn judge(world: &World, folder: &Path) -> Result<Verdict, Box<dyn Error>> {
    let remains = world.story.remains();
    let ledger = Ledger::new(folder.join("s.ledger.jsonl"), Durability::Process);
    let transcript = folder.join("s.jsonl");
    write(ledger.path(), &remains.ledger)?;
    write(&transcript, &remains.transcript)?;
    let session =
        Session { ledger: &ledger, transcript: &transcript, session_id: SESSION_ID, workspace: Path::new(WORKSPACE) };
    Ok(plan(&session).verdict)
}

/// Some file systems flush a file that is written anew, and none one that is new.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes)
}

fn contradicts(world: &World, verdict: &Verdict) -> bool {
    verdict.settled.iter().any(|settled| !world.allows(&settled.prompt_id, &settled.fact))
}

/// What the verdict says, and why not more; wrong endings in full.
fn words(world: &World, verdict: &Verdict) -> Vec<String> {
    let settled = verdict.settled.iter().map(|settled| {
        if world.allows(&settled.prompt_id, &settled.fact) {
            format!("settled: {:?}", settled.basis)
        } else {
            format!("WRONG: {settled:?} in {world:?}")
        }
    });
    settled.chain(verdict.withheld.map(|withheld| format!("withheld: {withheld}"))).collect()
}
