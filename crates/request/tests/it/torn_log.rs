//! A power cut, and a bit that fell over: the log is cut at every edge and in between, and the store is opened on what is left.

use std::path::Path;

use proptest::prelude::*;
use turnd_request::store::{Page, PageError, Store};
use turnd_request::{NotThere, Position, TerminalEvent};

use crate::world::{World, settled};

/// Bytes before the first frame of a log, and of a frame before its page.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

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
        world.assert_sound();
        let kept = world.events();
        assert_eq!(kept, self.events[..kept.len()], "{case}");
        let head = world.store().head().unwrap();
        assert_eq!((head.head, head.pruned_through), (kept.len() as u64, 0), "{case}");
        self.check_cursors(&world, case);
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn scenario_42_a_log_cut_anywhere_leaves_a_sound_beginning(cut in 0_usize..400_000) {
        let recorded = recorded();
        recorded.check(&recorded.log[..cut.min(recorded.log.len())], &format!("cut at {cut}"));
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
