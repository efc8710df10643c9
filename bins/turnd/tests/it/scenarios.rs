//! The table of `docs/return-requests.md`: each scenario of the specification has its row, and a row names every test of its number, with
//! the file that the test is in, and none that is not there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The scenarios that concern one machine; the ones behind them are the fleet's.
const SCENARIOS: std::ops::RangeInclusive<u32> = 1..=89;

/// The tests of each scenario, as `file: name`.
type Tests = BTreeMap<u32, BTreeSet<String>>;

#[test]
fn a_row_of_the_table_of_scenarios_names_each_test_of_its_number_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut there = Tests::new();
    ["crates", "bins"].iter().for_each(|folder| in_folder(&root, Path::new(folder), &mut there));
    let listed = in_table(&fs::read_to_string(root.join("docs/return-requests.md")).unwrap());
    for number in SCENARIOS {
        let listed = listed.get(&number).unwrap_or_else(|| panic!("{number} has no row"));
        let there = there.get(&number).unwrap_or_else(|| panic!("{number} has no test"));
        assert_eq!(listed.difference(there).collect::<Vec<_>>(), Vec::<&String>::new(), "{number}: not in the tree");
        assert_eq!(there.difference(listed).collect::<Vec<_>>(), Vec::<&String>::new(), "{number}: not in the table");
    }
    assert_eq!(there.keys().find(|number| !SCENARIOS.contains(number)), None, "there is no such scenario");
}

#[test]
fn the_name_of_a_test_begins_with_the_numbers_of_its_scenarios() {
    let numbers_of = |name| numbers(name).into_iter().collect::<Vec<_>>();
    assert_eq!(numbers_of("scenario_06_of_fifty_at_once"), [6]);
    assert_eq!(numbers_of("scenarios_46_and_47_what_an_agent_says"), [46, 47]);
    assert_eq!(numbers_of("scenario_21_to_24_33_killed"), [21, 22, 23, 24, 33]);
    assert_eq!(numbers_of("scenario_22_c2_a_row_of_1_request"), [22]);
}

/// Every test below a folder that holds a scenario.
fn in_folder(root: &Path, folder: &Path, found: &mut Tests) {
    for entry in fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap) {
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            in_folder(root, &path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            in_file(&fs::read_to_string(root.join(&path)).unwrap(), &path, found);
        }
    }
}

fn in_file(text: &str, path: &Path, found: &mut Tests) {
    for (name, _) in text.split("fn scenario").skip(1).filter_map(|rest| rest.split_once('(')) {
        let name = format!("scenario{name}");
        for number in numbers(&name) {
            found.entry(number).or_default().insert(format!("{}: {name}", path.display()));
        }
    }
}

/// The scenarios that a test holds, which its name begins with: `scenario_08_...`, `scenarios_46_and_47_...`, `scenario_21_to_28_33_...`.
fn numbers(name: &str) -> BTreeSet<u32> {
    let (mut numbers, mut begins) = (BTreeSet::new(), None);
    for word in name.split('_').skip(1) {
        match (word.parse::<u32>(), begins) {
            (Ok(number), _) => numbers.extend(begins.take().unwrap_or(number)..=number),
            (Err(_), None) if word == "to" => begins = numbers.last().copied(),
            (Err(_), None) if word == "and" => {}
            _ => break,
        }
    }
    numbers
}

/// What the table lists. A row is `| number | what is given | file: test, test; file: test |`; what is not in backquotes is a remark.
fn in_table(text: &str) -> Tests {
    let mut listed = Tests::new();
    for row in text.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let (Ok(number), Some(tests)) = (cells[0].parse(), cells.get(2)) else { continue };
        let named = listed.entry(number).or_default();
        for (file, tests) in tests.split("; ").filter_map(|part| part.split_once(": ")) {
            let names = tests.split('`').skip(1).step_by(2).filter(|name| name.starts_with("scenario"));
            named.extend(names.map(|name| format!("{file}: {name}")));
        }
    }
    listed
}
