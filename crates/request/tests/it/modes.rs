//! Who may read what a store makes, in processes whose umask takes nothing away.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use turnd_request::fail_points::FailPoints;
use turnd_request::store::{OpenError, Options, Store, export, recover};

use crate::child::{self, LOOSE};
use crate::versions::{NEWEST, of_version};
use crate::world::{NOON, World, assert_closed_to_others, mode, settled};

/// Not a test of its own: what a child runs. In the first process it has no part and nothing to do.
#[test]
fn the_part_of_a_child() {
    let Some(part) = child::part() else { return };
    let (part, folder) = part.split_once('\n').unwrap();
    let folder = PathBuf::from(folder);
    let mut world = World::closed();
    world.fail_points = Arc::new(FailPoints::from_env());
    match part {
        // Nothing of the store's: it shows that the umask is as loose as it is said to be.
        "anything" => std::fs::write(folder, "for everybody").unwrap(),
        "live" => {
            let options = Options { ballast_bytes: 64 * 1024, ..world.options() };
            world.store = Some(Arc::new(Store::open(&folder, options, NOON).unwrap().0));
            world.complete("x");
        }
        "open" => drop(Store::open(&folder, world.options(), NOON).unwrap()),
        "stray" => {
            world.store = Some(Arc::new(Store::open(&folder, world.options(), NOON).unwrap().0));
            world.submit("y");
            world.fail_points.set("before:commit=corrupt");
            world.apply("y", settled("on a line")).unwrap_err();
        }
        "damaged" => {
            let refused = Store::open(&folder, world.options(), NOON);
            assert!(matches!(refused, Err(OpenError::Corrupt { .. })));
        }
        "recover" => drop(recover(&folder, 0, NOON).unwrap()),
        "export" => export(&folder, &exported(&folder), NOON).unwrap(),
        other => panic!("{other}"),
    }
}

/// Where a store goes, in a folder that is not its own.
fn exported(folder: &Path) -> PathBuf {
    folder.with_file_name("moved.db")
}

/// Lets a child do something with a store.
fn done(part: &str, folder: &Path, plan: &str, set: &str) -> std::process::ExitStatus {
    let part = format!("{part}\n{}", folder.display());
    child::run("modes::the_part_of_a_child", &part, plan, &format!("{LOOSE}; {set}"))
}

/// The same, without a fault. Gives what is there then, in the folder around the store's, which the store has made too.
fn made(part: &str, world: &World) -> Vec<String> {
    let status = done(part, &world.folder(), "", "true");
    assert!(status.success(), "{part}: {status}");
    assert_closed_to_others(world.folder().parent().unwrap())
}

fn assert_there(names: &[String], expected: &[&str]) {
    for (beginning, end) in expected.iter().map(|name| name.split_once('*').unwrap_or((name, ""))) {
        let is_it = |name: &&String| name.starts_with(beginning) && name.ends_with(end);
        assert!(names.iter().any(|name| is_it(&name)), "{beginning}*{end} is not in {names:?}");
    }
}

#[test]
fn scenario_89_under_a_umask_that_takes_nothing_away_all_that_a_store_makes_is_for_its_owner_alone() {
    let world = World::closed();
    let everybodys = world.scratch.path().join("everybodys");
    assert!(done("anything", &everybodys, "", "true").success());
    assert_eq!(mode(&everybodys), 0o666, "the umask is loose");

    let killed = done("live", &world.folder(), "after:terminal=kill", "true");
    assert_eq!(killed.signal(), Some(9), "{killed}");
    let names = assert_closed_to_others(world.folder().parent().unwrap());
    let of_a_life = [
        "turnd-requests/requests.db",
        "turnd-requests/requests.db-wal",
        "turnd-requests/requests.db-shm",
        "turnd-requests/requests.watermark",
        "turnd-requests/requests.lock",
        "turnd-requests/ballast",
    ];
    assert_there(&names, &of_a_life);

    assert_there(&made("stray", &world), &["turnd-requests/outcomes.jsonl"]);
    assert_there(&made("open", &world), &["turnd-requests/kept-outcomes-*.jsonl"]);
    std::fs::remove_file(world.folder().join("requests.db-wal")).ok();
    let mut bytes = std::fs::read(world.file()).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(world.file(), bytes).unwrap();
    assert_there(&made("damaged", &world), &["turnd-requests/aside-*/requests.db"]);
    let recovered = made("recover", &world);
    assert_there(&recovered, &["turnd-requests/kept-*/requests.db", "turnd-requests/requests.db"]);
    assert_there(&recovered, &["turnd-requests/kept-*/requests.watermark", "turnd-requests/requests.watermark"]);
    assert_there(&made("export", &world), &["moved.db"]);

    let old = of_version(1);
    close(old.folder().parent().unwrap());
    assert_there(&made("open", &old), &["turnd-requests/requests.v1.*.db"]);
}

/// Closes to others what no store has made.
fn close(folder: &Path) {
    std::fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
}

/// Cuts a child off at every so many blocks that one file may have: it dies of the first write beyond. Gives all names that were there.
fn cut_off(part: &str, make: impl Fn() -> World) -> Vec<String> {
    let mut names = Vec::new();
    for blocks in (0..400).step_by(17) {
        let world = make();
        let around = world.folder().parent().unwrap().to_owned();
        std::fs::create_dir_all(&around).unwrap();
        close(&around);
        let status = done(part, &world.folder(), "", &format!("ulimit -c 0; ulimit -f {blocks}"));
        names.extend(assert_closed_to_others(&around));
        if status.success() {
            break;
        }
        assert!(status.signal().is_some(), "{part}, {blocks} blocks: {status}");
    }
    names
}

#[test]
fn scenario_89_under_a_umask_that_takes_nothing_away_what_is_cut_off_while_it_is_made_is_for_its_owner_alone_too() {
    let made = cut_off("open", World::closed);
    assert_there(&made, &["turnd-requests/requests.db.new", "turnd-requests/requests.db.new-*"]);
    let stored = || of_version(NEWEST);
    assert_there(&cut_off("export", stored), &["moved.db.unfinished", "moved.db"]);
    assert_there(&cut_off("recover", stored), &["turnd-requests/rescue/requests.db"]);
}
