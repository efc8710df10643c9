//! What a store that is damaged may lose, and what it must not: a number is given once, an outcome that was seen stays, and what is
//! forgotten is said to be.

use std::path::PathBuf;

use rusqlite::Connection;
use turnd_request::store::{OpenError, Page, Registered, StoreError, recover, reset, verify};
use turnd_request::{InputWritten, NotThere, Position, Registration, State};

use crate::world::{World, asked, dispatched, id, settled, wait};

/// Version 7 ids that were made before the world's noon, and behind it.
const OLD_ID: &str = "01a00000-0000-7000-8000-000000000001";
const NEW_ID: &str = "01b00000-0000-7000-8000-000000000001";

/// The files of a store as a kill leaves them, and what they are called.
fn killed(requests: u64) -> (World, Vec<(PathBuf, Vec<u8>)>) {
    let mut world = World::new();
    for number in 0..requests {
        world.complete(&format!("r{number}"));
    }
    // The last commit that somebody was told of has no number.
    world.new_request("open");
    let names = ["requests.db", "requests.db-wal", "requests.watermark"];
    let files = names.map(|name| (world.folder().join(name), std::fs::read(world.folder().join(name)).unwrap()));
    world.store = None;
    (world, files.into())
}

fn put_back(files: &[(PathBuf, Vec<u8>)]) {
    let _ = std::fs::remove_file(files[0].0.with_file_name("requests.db-shm"));
    for (path, bytes) in files {
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
fn scenario_83_a_file_that_has_forgotten_a_commit_that_was_told_is_no_store_wherever_its_log_broke() {
    let (mut world, files) = killed(3);
    let log = &files[1].1;
    let frame = 24 + 4096;
    let frames = (log.len() - 32) / frame;
    for lost in (0..frames).step_by(7).chain([frames - 1]) {
        put_back(&files);
        let mut harmed = log.clone();
        harmed[32 + lost * frame + 500] ^= 1;
        std::fs::write(&files[1].0, harmed).unwrap();
        assert!(!verify(&world.folder()).unwrap().violations.is_empty(), "frame {lost}");
        assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })), "frame {lost}");
        for entry in std::fs::read_dir(world.folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            }
        }
    }
    put_back(&files);
    world.open();
    assert_eq!(world.events().len(), 3, "what is whole is a store");
}

#[test]
fn scenario_83_a_file_that_forgets_a_commit_while_it_is_open_gives_no_number_again_and_the_outcome_stays_on_a_line() {
    let mut world = World::new();
    world.complete("first");
    world.submit("x");
    let before = std::fs::read(world.file()).unwrap();
    // What the log still has of that time is what the file will be taken back to.
    let log = std::fs::read(world.folder().join("requests.db-wal")).unwrap();
    assert_eq!(world.complete("second").seq, 2);
    world.fail_points.set("before:commit=io; reopen=io");
    assert!(matches!(world.register("refused"), Err(StoreError::Io(_))), "the file is closed");
    put_back(&[(world.file(), before), (world.folder().join("requests.db-wal"), log)]);
    world.fail_points.set("");
    let told = wait(|reply| world.store().apply(id("x"), settled("of x"), world.now, reply));
    assert!(matches!(told, Err(StoreError::Corrupt(_))), "{told:?}");
    assert_eq!(world.store().newest(), 2);
    world.store = None;
    assert!(std::fs::read_to_string(world.folder().join("outcomes.jsonl")).unwrap().contains("of x"));
    assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })), "what was noted beside it stays");
}

#[test]
fn scenario_83_a_file_of_an_older_version_that_has_forgotten_a_commit_is_no_store_either() {
    let mut world = World::new();
    world.complete("first");
    world.store.take().unwrap().close(world.now).unwrap();
    let old = std::fs::read(world.file()).unwrap();
    world.open();
    world.complete("second");
    world.store.take().unwrap().close(world.now).unwrap();
    std::fs::write(world.file(), old).unwrap();
    Connection::open(world.file())
        .unwrap()
        .execute_batch("ALTER TABLE webhook DROP COLUMN former_secret; PRAGMA user_version = 1")
        .unwrap();
    let told = world.try_open();
    assert!(matches!(&told, Err(OpenError::Corrupt { what, .. }) if what.contains("number 2 was given")), "{told:?}");
}

#[test]
fn scenario_83_what_a_broken_log_has_forgotten_is_not_given_again_nor_sent_again_under_an_id_that_tells_its_age() {
    let (mut world, files) = killed(3);
    put_back(&files);
    // All of the log is gone, and with it everything since the store was made.
    std::fs::remove_file(&files[1].0).unwrap();
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert!(rescue.is_damaged && rescue.is_number_known && rescue.after >= 3, "{rescue:?}");
    assert!(rescue.files.join("requests.watermark").exists(), "the evidence is kept");
    world.open();
    assert!(world.complete("next").seq > 3);
    assert_eq!(world.register(OLD_ID).unwrap(), Registered::Expired);
    let later = Registration { created_at: id(NEW_ID).born_ms().unwrap(), ..asked(NEW_ID) };
    assert!(matches!(world.ask(later).unwrap(), Registered::New(_)));
    world.assert_sound();
    let (head, before) = (world.store().newest(), world.store().head().unwrap().stream_id);
    world.store = None;
    // Also the next one goes on behind it, whatever is left of the file.
    std::fs::write(world.file(), vec![0xa5; 100_000]).unwrap();
    let again = recover(&world.folder(), 0, world.now).unwrap();
    assert!(again.after >= head && again.stream_id != before && again.is_number_known, "{again:?}");
}

#[test]
fn what_cannot_be_read_at_all_is_said_to_be_lost_and_outcomes_on_lines_are_kept_all_the_same() {
    let mut world = World::new();
    world.complete("ended");
    world.submit("x");
    world.new_request("y");
    world.apply("y", dispatched()).unwrap();
    world.fail_points.set("before:commit=corrupt");
    for name in ["x", "y"] {
        let told = wait(|reply| world.store().apply(id(name), settled(&format!("of {name}")), world.now, reply));
        assert!(told.is_err());
    }
    world.fail_points.set("");
    world.store = None;
    let lines = world.folder().join("outcomes.jsonl");
    let mut bytes = std::fs::read(&lines).unwrap();
    let earlier = std::str::from_utf8(&bytes).unwrap().replace(r#""x""#, r#""z""#);
    // As an earlier program wrote it: its request is not on the line.
    let mut earlier: serde_json::Value = serde_json::from_str(earlier.trim_start().lines().next().unwrap()).unwrap();
    earlier.as_object_mut().unwrap().remove("request").unwrap();
    bytes.extend(format!("\n{earlier}\n").bytes());
    std::fs::write(&lines, bytes).unwrap();
    for name in ["requests.db", "requests.db-wal", "requests.db-shm"] {
        std::fs::write(world.folder().join(name), vec![0xa5; 50_000]).unwrap();
    }

    assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })));
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert!(rescue.is_unreadable && rescue.is_damaged, "{rescue:?}");
    assert_eq!((rescue.kept, rescue.ended, rescue.outcomes, rescue.head), (0, 3, 3, rescue.after + 3));
    assert!(rescue.after >= 1, "a number was given");
    assert_eq!(world.open(), []);
    let told = ["x", "y", "z"].map(|name| {
        let request = world.get(name);
        (request.state, request.input_written, request.final_message)
    });
    let of_x = Some("of x".to_owned());
    assert_eq!(told[0], (State::Completed, InputWritten::Yes, of_x.clone()));
    assert_eq!(told[1], (State::Indeterminate, InputWritten::Maybe, None), "it was never on record as sent");
    assert_eq!(told[2], (State::Completed, InputWritten::Yes, of_x));
    assert!(matches!(world.register("x").unwrap(), Registered::Known(_)));
    assert_eq!(world.register("z").unwrap(), Registered::ForeignOwner, "nobody sends it again");
    assert!(!lines.exists() && rescue.files.join("outcomes.jsonl").exists());
    world.assert_sound();
}

#[test]
fn where_nothing_says_how_far_the_numbers_went_the_stream_is_another_one_and_that_is_said() {
    let mut world = World::new();
    let event = world.complete("x");
    let body: serde_json::Value = serde_json::from_str(&event.payload).unwrap();
    let place = Position::parse(body["cursor"].as_str().unwrap()).unwrap();
    for (rescue, above) in [(recover as fn(&_, _, _) -> _, 0), (reset, 0), (recover, 70)] {
        world.store = None;
        std::fs::write(world.file(), "").unwrap();
        let _ = std::fs::remove_file(world.folder().join("requests.watermark"));
        let rescue = rescue(&world.folder(), above, world.now).unwrap();
        assert_eq!((rescue.is_number_known, rescue.is_unreadable, rescue.after), (above > 0, true, above));
        world.open();
        assert_eq!(
            world.store().events(&Page::after(place.clone())),
            Err(NotThere::Changed { stream_id: rescue.stream_id }.into())
        );
        assert_eq!(world.register(OLD_ID).unwrap(), Registered::Expired);
    }
}

#[test]
fn a_store_that_was_closed_in_order_is_recovered_to_the_very_number_although_its_own_row_is_lost() {
    let mut world = World::new();
    for number in 0..5 {
        world.complete(&format!("r{number}"));
    }
    world.store().close(world.now).unwrap();
    world.store = None;
    Connection::open(world.file()).unwrap().execute_batch("DELETE FROM meta").unwrap();
    let rescue = recover(&world.folder(), 0, world.now).unwrap();
    assert_eq!((rescue.after, rescue.kept, rescue.reduced), (5, 5, 0), "{rescue:?}");
    assert!(rescue.is_damaged && !rescue.is_unreadable);
    world.open();
    assert_eq!(world.store().daemon_epoch(), 2);
    world.assert_sound();
}

#[test]
fn a_row_or_an_event_that_somebody_edited_is_found() {
    for harm in [
        "UPDATE request SET final_message = 'another answer' WHERE request_id = 'r1'",
        "UPDATE request SET final_message = NULL, state = 'aborted' WHERE request_id = 'r1'",
        "UPDATE request SET state = 'timed_out' WHERE request_id = 'c'",
        "UPDATE request SET input_written = 'no' WHERE request_id = 'r1'",
        "UPDATE request SET code = 'deadline' WHERE request_id = 'c'",
        "UPDATE request SET session_id = 'another' WHERE request_id = 'r1'",
        "UPDATE request SET prompt_id = 'another' WHERE request_id = 'r1'",
        "UPDATE request SET ended_at = ended_at + 1 WHERE request_id = 'r1'",
        "UPDATE request SET stop_reason = 'refusal' WHERE request_id = 'r1'",
        "UPDATE terminal_event SET payload = replace(payload, 'answer of r1', 'answer of r9') WHERE seq = 2",
        "UPDATE terminal_event SET payload = replace(payload, '\"cursor\":\"', '\"cursor\":\"x') WHERE seq = 2",
        "UPDATE terminal_event SET chain = zeroblob(32) WHERE seq = 2",
        // The body of another program is compared with nothing but the chain.
        "UPDATE terminal_event SET payload = replace(payload, '{\"v\":1', '{\"v\":9') WHERE seq = 2",
    ] {
        let mut world = World::new();
        for number in 0..3 {
            world.complete(&format!("r{number}"));
        }
        world.submit("c");
        world.apply("c", turnd_request::Input::Cancel).unwrap();
        world.store = None;
        assert!(verify(&world.folder()).unwrap().violations.is_empty());
        let conn = Connection::open(world.file()).unwrap();
        assert_eq!(conn.execute(harm, []).unwrap(), 1, "{harm}");
        drop(conn);
        let report = verify(&world.folder()).unwrap();
        assert_eq!(report.violations.len(), 1, "{harm}: {report:?}");
        assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })), "{harm}");
    }
}

#[test]
fn scenario_86_of_a_version_that_nobody_knows_no_byte_is_touched_by_anything() {
    for (version, is_newer) in [(99, true), (0, false), (-3, false)] {
        let mut world = World::new();
        world.complete("x");
        world.store = None;
        let conn = Connection::open(world.file()).unwrap();
        conn.pragma_update(None, "user_version", version).unwrap();
        drop(conn);
        let before = std::fs::read(world.file()).unwrap();
        let refused = |error: OpenError| match error {
            OpenError::Newer { found, .. } => is_newer && found == version,
            OpenError::UnknownVersion { found } => !is_newer && found == version,
            _ => false,
        };
        assert!(refused(verify(&world.folder()).unwrap_err()), "{version}");
        assert!(refused(recover(&world.folder(), 0, world.now).unwrap_err()), "{version}");
        assert!(refused(reset(&world.folder(), 0, world.now).unwrap_err()), "{version}");
        assert!(refused(world.try_open().unwrap_err()), "{version}");
        assert_eq!(std::fs::read(world.file()).unwrap(), before, "{version}");
        // Nor when an earlier program put it aside.
        let aside = world.folder().join("aside-1-0");
        std::fs::create_dir(&aside).unwrap();
        std::fs::rename(world.file(), aside.join("requests.db")).unwrap();
        assert!(refused(recover(&world.folder(), 0, world.now).unwrap_err()), "{version}");
        assert!(aside.exists());
    }
    assert!(asked(OLD_ID).request_id.born_ms() < asked(NEW_ID).request_id.born_ms());
}

#[test]
fn scenario_83_a_file_that_is_gone_or_empty_is_not_made_anew_and_its_loss_is_said() {
    for (has_file, has_log) in [(false, true), (true, true), (false, false), (true, false)] {
        let (mut world, files) = killed(3);
        put_back(&files);
        std::fs::write(&files[0].0, []).unwrap();
        for (path, is_left) in [(&files[0].0, has_file), (&files[1].0, has_log)] {
            if !is_left {
                std::fs::remove_file(path).unwrap();
            }
        }
        for start in 0..2 {
            assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })), "{has_file} {has_log} {start}");
        }
        let rescue = recover(&world.folder(), 0, world.now).unwrap();
        assert!(rescue.is_damaged && rescue.is_number_known, "{has_file} {has_log}: {rescue:?}");
        assert_eq!(rescue.files.join("requests.db-wal").exists(), has_log, "the evidence is kept");
        world.open();
        assert_eq!(world.register(OLD_ID).unwrap(), Registered::Expired, "it may have been asked before");
        assert_eq!(world.complete("next").seq, rescue.head + 1, "{has_file} {has_log}");
        world.assert_sound();
    }
}

#[test]
fn scenario_83_each_thing_that_lies_beside_a_file_says_that_there_was_one() {
    for name in ["requests.db-wal", "requests.watermark", "outcomes.jsonl"] {
        let mut world = World::closed();
        std::fs::create_dir_all(world.folder()).unwrap();
        std::fs::write(world.folder().join(name), "of a store").unwrap();
        assert!(matches!(world.try_open(), Err(OpenError::Corrupt { .. })), "{name}");
    }
}
