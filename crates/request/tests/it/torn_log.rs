//! A power cut, and a bit that fell over: the log is cut at every edge and in between, and the store is opened on what is left.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use turnd_request::store::{OpenError, Page, PageError, Store, recover, verify};
use turnd_request::{Input, NotThere, Position, TerminalEvent};

use crate::world::{World, dispatched, settled};

/// Bytes before the first frame of a log, and of a frame before its page.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The note beside a database of how far it got.
const WATERMARK: &str = "requests.watermark";

/// The files of a store whose log holds all that was done since it was made.
struct Recorded {
    database: Vec<u8>,
    log: Vec<u8>,
    events: Vec<TerminalEvent>,
}

impl Recorded {
    fn new(requests: usize) -> Self {
        let world = World::new();
        for number in 0..requests {
            world.complete(&format!("r{number}"));
        }
        Self::of(&world)
    }

    fn of(world: &World) -> Self {
        let log = world.folder().join("requests.db-wal");
        // Copied while it is open: closing it would bring the log into the file.
        Self {
            database: std::fs::read(world.file()).unwrap(),
            log: std::fs::read(log).unwrap(),
            events: world.events(),
        }
    }

    fn frame_bytes(&self) -> usize {
        let size: [u8; 4] = self.log[8..12].try_into().unwrap();
        FRAME_HEADER + usize::try_from(u32::from_be_bytes(size)).unwrap()
    }

    /// A world whose store was left with another log.
    fn with_log(&self, log: &[u8]) -> World {
        let world = World::closed();
        std::fs::create_dir_all(world.folder()).unwrap();
        std::fs::write(world.file(), &self.database).unwrap();
        std::fs::write(world.folder().join("requests.db-wal"), log).unwrap();
        world
    }

    /// Opens what is left and looks whether it is sound, a beginning of what was, and honest about the rest.
    fn check(&self, log: &[u8], case: &str) -> usize {
        let mut world = self.with_log(log);
        world.open();
        let kept = self.is_a_beginning(&world, case);
        self.check_cursors(&world, case);
        kept
    }

    /// Looks whether a store is sound and has the first events of what was, as many as its head says. How many that are.
    fn is_a_beginning(&self, world: &World, case: &str) -> usize {
        world.assert_sound();
        let kept = world.events();
        assert_eq!(kept, self.events[..kept.len()], "{case}");
        let head = world.store().head().unwrap();
        assert_eq!((head.head, head.pruned_through), (kept.len() as u64, 0), "{case}");
        kept.len()
    }

    /// Whoever had read an event that is lost now is told so: before its number is given again, and after.
    fn check_cursors(&self, world: &World, case: &str) {
        let kept = world.events().len();
        let place = |event: &TerminalEvent| {
            let body: serde_json::Value = serde_json::from_str(&event.payload).unwrap();
            Position::parse(body["cursor"].as_str().unwrap()).unwrap()
        };
        let ask = |event| world.store().events(&Page::after(place(event))).map(|page| page.next_after);
        for (number, event) in self.events.iter().enumerate() {
            let expected = if number < kept {
                Ok(kept as u64)
            } else {
                Err(PageError::NotThere(NotThere::Ahead { head: kept as u64 }))
            };
            assert_eq!(ask(event), expected, "{case}");
        }
        for number in kept..self.events.len() {
            let name = format!("other-{number}");
            world.submit(&name);
            world.apply(&name, settled("another answer")).unwrap();
            let seq = number as u64 + 1;
            let told = ask(&self.events[number]);
            assert_eq!(told, Err(PageError::NotThere(NotThere::Diverged { seq })), "{case}");
        }
    }
}

#[test]
fn scenario_42_a_log_cut_at_every_frame_leaves_a_sound_beginning() {
    let recorded = Recorded::new(3);
    let frames = (recorded.log.len() - LOG_HEADER) / recorded.frame_bytes();
    assert!(frames > 50, "{frames} frames");
    let mut kept = Vec::new();
    for frame in 0..=frames {
        let cut = LOG_HEADER + frame * recorded.frame_bytes();
        kept.push(recorded.check(&recorded.log[..cut], &format!("cut behind frame {frame}")));
    }
    assert!(kept.is_sorted());
    kept.dedup();
    assert_eq!(kept, [0, 1, 2, 3]);
}

/// What lies on the disk when a commit has just been told.
struct Told {
    log_bytes: usize,
    watermark: Vec<u8>,
    events: usize,
}

/// A store and what was told of it, commit by commit.
struct Noted {
    recorded: Recorded,
    told: Vec<Told>,
}

impl Noted {
    fn new(requests: usize) -> Self {
        let world = World::new();
        let mut told = Vec::new();
        let mut note = |events| {
            told.push(Told {
                log_bytes: std::fs::read(world.folder().join("requests.db-wal")).unwrap().len(),
                watermark: std::fs::read(world.folder().join(WATERMARK)).unwrap(),
                events,
            });
        };
        note(0);
        for number in 0..requests {
            let name = format!("r{number}");
            world.new_request(&name);
            note(number);
            for input in [Input::Admitted, dispatched(), Input::Written] {
                world.apply(&name, input).unwrap();
                note(number);
            }
            world.apply(&name, settled(&format!("answer of {name}"))).unwrap();
            note(number + 1);
        }
        Self { recorded: Recorded::of(&world), told }
    }

    /// Opens what a power cut has left: so much of the log, and what had come to the disk of the note beside it, which is flushed later
    /// than the log. What was told and is not in the log is missed; everything else is a store.
    fn check(&self, cut: usize, noted: usize) -> bool {
        let (case, note) = (format!("log cut at {cut}, note {noted}"), &self.told[noted]);
        let mut world = self.recorded.with_log(&self.recorded.log[..cut]);
        std::fs::write(world.folder().join(WATERMARK), &note.watermark).unwrap();
        let is_whole = cut >= note.log_bytes;
        assert_eq!(verify(&world.folder()).unwrap().violations.is_empty(), is_whole, "{case}");
        if is_whole {
            world.open();
            let kept = self.recorded.is_a_beginning(&world, &case);
            assert!(kept >= note.events, "{case}");
            self.recorded.check_cursors(&world, &case);
            return true;
        }
        let refused = world.try_open();
        assert!(matches!(refused, Err(OpenError::Corrupt { .. })), "{case}: {refused:?}");
        assert!(!world.file().exists(), "{case}: no empty store is made");
        // What was promised is not given again by what an operator makes of it.
        let rescue = recover(&world.folder(), 0, world.now).unwrap();
        assert!(rescue.is_damaged && rescue.after >= note.events as u64, "{case}: {rescue:?}");
        world.open();
        world.assert_sound();
        assert!(world.complete("next").seq > note.events as u64, "{case}");
        false
    }
}

#[test]
fn scenario_42_a_log_cut_at_every_frame_beside_the_note_of_how_far_it_got_is_whole_or_missed_and_never_believed() {
    let noted = Noted::new(3);
    let (frame, log_bytes) = (noted.recorded.frame_bytes(), noted.recorded.log.len());
    let mut whole = 0;
    for cut in (LOG_HEADER..=log_bytes).step_by(frame) {
        // The last commit that is in the log, the one behind it, and the last of all.
        let last = noted.told.iter().rposition(|told| told.log_bytes <= cut);
        let newest = noted.told.len() - 1;
        let notes: BTreeSet<_> =
            [last, last.map_or(Some(0), |last| Some(last + 1)), Some(newest)].into_iter().flatten().collect();
        whole += notes.into_iter().filter(|note| *note <= newest && noted.check(cut, *note)).count();
    }
    assert!(whole > 15, "each commit is whole once: {whole}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scenario_42_a_log_cut_anywhere_leaves_a_sound_beginning(cut in 0_usize..400_000) {
        let recorded = recorded();
        recorded.check(&recorded.log[..cut.min(recorded.log.len())], &format!("cut at {cut}"));
    }

    #[test]
    fn scenario_42_a_log_cut_anywhere_beside_the_note_of_how_far_it_got_is_whole_or_missed_and_never_believed(
        cut in 0_usize..400_000,
        note in 0_usize..1_000,
    ) {
        let noted = noted();
        noted.check(cut.min(noted.recorded.log.len()), note % noted.told.len());
    }

    #[test]
    fn scenario_83_a_bit_that_fell_over_in_the_log_is_noticed(place in 0_usize..400_000, bit in 0_u8..8) {
        let recorded = recorded();
        let mut log = recorded.log.clone();
        let place = place % log.len();
        log[place] ^= 1 << bit;
        recorded.check(&log, &format!("bit {bit} of {place}"));
    }
}

fn recorded() -> &'static Recorded {
    static RECORDED: std::sync::OnceLock<Recorded> = std::sync::OnceLock::new();
    RECORDED.get_or_init(|| Recorded::new(3))
}

fn noted() -> &'static Noted {
    static NOTED: std::sync::OnceLock<Noted> = std::sync::OnceLock::new();
    NOTED.get_or_init(|| Noted::new(3))
}

#[test]
fn a_file_without_its_log_is_a_store_that_has_forgotten_and_says_so() {
    let recorded = recorded();
    let mut world = recorded.with_log(&[]);
    std::fs::remove_file(world.folder().join("requests.db-wal")).unwrap();
    world.open();
    recorded.check_cursors(&world, "no log");
    assert!(Path::new(&world.file()).exists());
    let second = Store::open(&world.folder(), world.options(), world.now);
    assert!(second.is_err());
}
