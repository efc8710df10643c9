//! A damage of the first page, and of the pages below it that have SQLite's list of tables, costs no row.

use std::sync::{Arc, mpsc};

use super::*;
use crate::store::{Options, Registered, Retention, Store, open::examine};
use crate::{ArmedCursor, Baseline, Evidence, FinalText, Hash, Input, Outcome, Registration, RequestId, TerminalEvent};

const PAGE: usize = 4096;
/// The pages that have SQLite's list of tables, counted from 0: the first one and two leaves.
const LIST_PAGES: [usize; 3] = [0, 28, 29];
const NOON: u64 = 1_800_000_000_000;

/// One of everything from the kept file, and some more, of which two are pruned.
fn filled() -> (tempfile::TempDir, Place) {
    let scratch = tempfile::tempdir().unwrap();
    let place = Place::new(&scratch.path().join("requests"));
    place.make().unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/requests/v2.db");
    std::fs::copy(kept, place.file()).unwrap();
    let options = Options { busy_ms: 200, ballast_bytes: 0, fail_points: Arc::default() };
    let (store, _) = Store::open(place.folder(), options, NOON).unwrap();
    for number in 0..6 {
        let name = format!("more-{number}");
        let registered = wait(|reply| store.register(asked(&name), reply)).unwrap();
        assert!(matches!(registered, Registered::New(_)));
        let armed = ArmedCursor { event_id: 5, tail: None };
        let dispatched = Input::Dispatched { armed, baseline: Baseline::default(), incarnation_id: None };
        let settled = Input::Settled(Outcome::Ended {
            stop_reason: "end_turn".into(),
            // Longer than a page.
            final_text: FinalText::new(&format!("{name} ").repeat(900)),
            evidence: Evidence::RpcResponse,
            is_strayed: false,
            is_unreadable: false,
        });
        for input in [Input::Admitted, dispatched, Input::Written, settled] {
            let id = RequestId::parse(&name).unwrap();
            wait(|reply| store.apply(id, input, NOON + number, reply)).unwrap();
        }
    }
    // What is protected is kept four times as long.
    let retention = Retention { kept_ms: 0, kept_requests: 1, bytes_max: u64::MAX, tombstone_ms: u64::MAX };
    store.prune(retention, NOON + 99).unwrap();
    store.close(NOON + 99).unwrap();
    (scratch, place)
}

fn wait<T: Send + 'static>(ask: impl FnOnce(Box<dyn FnOnce(T) + Send>)) -> T {
    let (sender, receiver) = mpsc::channel();
    ask(Box::new(move |answer| sender.send(answer).unwrap()));
    receiver.recv().expect("every command is answered")
}

fn asked(name: &str) -> Registration {
    Registration {
        request_id: RequestId::parse(name).unwrap(),
        owner: "o".into(),
        input_hash: Hash([7; 32]),
        hash_version: 1,
        session_id: "s".into(),
        incarnation_id: None,
        prompt_id: format!("prompt-{name}"),
        options: crate::Options::default(),
        timeout_ms: 0,
        deadline_at: None,
        prompt_hash: Hash([8; 32]),
        prompt_bytes: 11,
        baseline: Baseline::default(),
        created_at: NOON,
    }
}

/// What there is of a store that is whole.
fn whole(place: &Place) -> Found {
    let whole = read(place, place.folder()).unwrap();
    let counts = (whole.requests.len(), whole.tombstones.len(), whole.incarnations.len(), whole.consumers.len());
    assert_eq!((counts, whole.endpoints.len(), whole.stages.len(), whole.is_damaged), ((6, 5, 1, 2), 1, 1, false));
    whole
}

fn difference(found: &Found, whole: &Found) -> String {
    let counts = |found: &Found| {
        (found.requests.len(), found.tombstones.len(), found.consumers.len(), found.endpoints.len(), found.stages.len())
    };
    format!("{:?} instead of {:?}, damaged {}", counts(found), counts(whole), found.is_damaged)
}

/// Reads the store with each of these bits turned over. Says how often every row came back, and how often it was refused as of a version
/// that nobody knows.
fn turned_over(place: &Place, bits: impl Iterator<Item = usize>) -> (u64, u64) {
    let whole = whole(place);
    let mut bytes = std::fs::read(place.file()).unwrap();
    let (mut read_all, mut refused) = (0, 0);
    for bit in bits {
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(place.file(), &bytes).unwrap();
        let examined = examine(place, 0);
        assert!(
            matches!(
                examined,
                Ok(_) | Err(OpenError::Newer { .. } | OpenError::UnknownVersion { .. } | OpenError::Foreign)
            ),
            "byte {} bit {}: {examined:?}",
            bit / 8,
            bit % 8
        );
        for beside in ["requests.db-wal", "requests.db-shm"] {
            let _ = std::fs::remove_file(place.folder().join(beside));
        }
        if matches!(examined, Err(OpenError::Newer { .. } | OpenError::UnknownVersion { .. })) {
            refused += 1;
        } else {
            let found = read(place, place.folder()).unwrap();
            assert!(found == whole, "byte {} bit {}: {}", bit / 8, bit % 8, difference(&found, &whole));
            read_all += 1;
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
    (read_all, refused)
}

#[test]
fn whatever_bit_falls_over_in_the_head_or_in_the_list_of_tables_every_row_is_read_or_the_version_is_unknown() {
    let (_scratch, place) = filled();
    // A bit of a column's name that makes it no text, which the library takes for one.
    let names = [(28 * PAGE, 30 * PAGE)].map(|(from, to)| from * 8..to * 8).into_iter().flatten();
    let names = names.skip(7).step_by(8 * 97);
    // All of them were tried once; here one in so many, which is each time another one of its byte.
    let head = (0..112 * 8).step_by(9);
    let rest = LIST_PAGES.iter().flat_map(|page| (page * PAGE * 8..(page + 1) * PAGE * 8).skip(112 * 8).step_by(701));
    let (read_all, refused) = turned_over(&place, head.chain(rest).chain(names));
    assert_eq!((read_all, refused), (320, 3), "3 of 32 bits of the version are among them");
}

#[test]
fn pages_of_the_list_of_tables_that_are_gone_altogether_cost_no_row() {
    let (_scratch, place) = filled();
    let whole = whole(&place);
    let bytes = std::fs::read(place.file()).unwrap();
    for gone in [&LIST_PAGES[..1], &LIST_PAGES[1..], &LIST_PAGES] {
        for filling in [0, 0xff, 0x0d] {
            let mut harmed = bytes.clone();
            for page in gone {
                harmed[page * PAGE..(page + 1) * PAGE].fill(filling);
            }
            std::fs::write(place.file(), harmed).unwrap();
            let found = read(&place, place.folder()).unwrap();
            assert!(found == whole, "{gone:?} {filling}: {}", difference(&found, &whole));
        }
    }
}

#[test]
fn of_a_file_that_is_cut_off_no_row_is_read_that_is_another_one() {
    let (_scratch, place) = filled();
    let whole = whole(&place);
    let bytes = std::fs::read(place.file()).unwrap();
    let mut most = 0;
    for length in (0..bytes.len()).step_by(PAGE / 2 + 1) {
        for is_head_gone in [false, true] {
            let mut left = bytes[..length].to_vec();
            if is_head_gone {
                left.iter_mut().take(PAGE).for_each(|byte| *byte = 0);
            }
            std::fs::write(place.file(), left).unwrap();
            let found = read(&place, place.folder()).unwrap();
            assert!(found.is_damaged, "{length}");
            assert!(
                found.requests.iter().all(|(place, request)| whole.requests.get(place) == Some(request)),
                "{length}"
            );
            assert!(found.tombstones.iter().all(|(place, tombstone)| whole.tombstones.get(place) == Some(tombstone)));
            assert!(found.consumers.iter().all(|(place, consumer)| whole.consumers.get(place) == Some(consumer)));
            most = most.max(found.requests.len());
        }
    }
    assert!(most > 2, "something is read of what is left: {most}");
}

/// A file whose newest commits are in its log, with the log.
fn with_log(place: &Place, sql: &str) -> [Vec<u8>; 2] {
    let conn = Connection::open(place.file()).unwrap();
    connection::leave_log(&conn).unwrap();
    conn.execute_batch(sql).unwrap();
    [place.file(), place.folder().join("requests.db-wal")].map(|path| std::fs::read(path).unwrap())
}

#[test]
fn what_only_the_log_has_is_read_too_and_a_list_that_the_log_made_wrong_is_not_believed() {
    for sql in [
        // Whole in the log, also the first page.
        "UPDATE consumer SET owner = 'of the log'; PRAGMA user_version = 1; PRAGMA user_version = 2",
        // As after a damage that was carried on.
        "UPDATE consumer SET owner = 'of the log'; PRAGMA writable_schema = 1; \
             UPDATE sqlite_schema SET sql = 'CREATE TABL request (' WHERE name = 'request'",
        "UPDATE consumer SET owner = 'of the log'; PRAGMA writable_schema = 1; \
             UPDATE sqlite_schema SET rootpage = 18 WHERE name = 'tombstone'",
    ] {
        let (_scratch, place) = filled();
        let mut expected = whole(&place);
        expected.consumers.values_mut().for_each(|consumer| consumer.owner = "of the log".into());
        expected.endpoints.iter_mut().for_each(|(endpoint, _)| endpoint.owner = "of the log".into());
        let [mut file, log] = with_log(&place, sql);
        assert!(!log.is_empty());
        for is_gone in [false, true] {
            if is_gone {
                file[..PAGE].fill(0);
            }
            std::fs::write(place.file(), &file).unwrap();
            let found = read(&place, place.folder()).unwrap();
            assert!(found == expected, "{sql} {is_gone}: {}", difference(&found, &expected));
        }
    }
}

#[test]
fn scenario_86_a_version_that_only_the_log_still_tells_is_refused_although_the_first_page_is_gone() {
    let (_scratch, place) = filled();
    let [mut file, _] = with_log(&place, "PRAGMA user_version = 99");
    file[..PAGE].fill(0);
    std::fs::write(place.file(), &file).unwrap();
    assert!(matches!(read(&place, place.folder()), Err(OpenError::Newer { found: 99, .. })));
}

#[test]
fn an_exported_store_and_one_of_version_1_have_their_rows_without_a_first_page_too() {
    let (scratch, place) = filled();
    let expected = whole(&place);
    let moved = Place::new(&scratch.path().join("moved"));
    moved.make().unwrap();
    crate::store::export(place.folder(), &moved.file(), NOON).unwrap();
    std::fs::copy(place.watermark(), moved.watermark()).unwrap();
    let mut file = std::fs::read(moved.file()).unwrap();
    file[..PAGE].fill(0);
    std::fs::write(moved.file(), &file).unwrap();
    let found = read(&moved, moved.folder()).unwrap();
    let values = |found: &Found| (found.requests.values().cloned().collect::<Vec<_>>(), found.tombstones.clone());
    assert_eq!((values(&found).0, found.is_damaged), (values(&expected).0, false));

    let first = Place::new(&scratch.path().join("first"));
    first.make().unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/requests/v1.db");
    let mut file = std::fs::read(kept).unwrap();
    std::fs::write(first.file(), &file).unwrap();
    let expected = read(&first, first.folder()).unwrap();
    file[..PAGE].fill(0);
    std::fs::write(first.file(), &file).unwrap();
    let found = read(&first, first.folder()).unwrap();
    assert!(found == expected && !found.is_damaged && found.requests.len() == 4, "{}", difference(&found, &expected));
}

#[test]
fn whatever_bit_falls_over_among_the_rows_no_end_is_told_that_was_another_one() {
    let (_scratch, place) = filled();
    let whole = whole(&place);
    let told =
        |request: &Request| TerminalEvent::new(request, "", request.terminal_seq.unwrap(), &Hash([0; 32]), 0).payload;
    let ended = |found: &Found| {
        let ended = found.requests.values().filter(|request| request.state.is_terminal());
        ended.map(told).collect::<std::collections::BTreeSet<_>>()
    };
    let expected = ended(&whole);
    let mut bytes = std::fs::read(place.file()).unwrap();
    let (mut same, mut less) = (0, 0);
    // The pages of the rows: each time another bit of a byte.
    for bit in (30 * PAGE * 8..bytes.len() * 8)
        .chain(5 * PAGE * 8..6 * PAGE * 8)
        .chain(15 * PAGE * 8..16 * PAGE * 8)
        .step_by(1999)
    {
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(place.file(), &bytes).unwrap();
        let found = read(&place, place.folder()).unwrap();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let ended = ended(&found);
        assert!(ended.is_subset(&expected), "byte {} bit {}: {:?}", bit / 8, bit % 8, ended.difference(&expected));
        assert!(found.is_damaged || ended == expected, "byte {} bit {}", bit / 8, bit % 8);
        if ended == expected { same += 1 } else { less += 1 }
    }
    assert!(same > 4 * less, "most of it is told all the same");
}
