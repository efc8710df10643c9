//! The dispatch marker.

use serde_json::json;
use transcript::{TAIL_BYTES_MAX, tail_uuid};

use crate::sample::{Sample, chain};

fn check(bytes: impl AsRef<[u8]>, expected: Option<&str>) {
    let sample = Sample::of(&bytes);
    assert_eq!(tail_uuid(sample.path()).as_deref(), expected, "{:?}", String::from_utf8_lossy(bytes.as_ref()));
}

#[test]
fn the_last_line_gives_the_marker() {
    check("{\"uuid\":\"a\"}\n{\"uuid\":\"b\"}\n", Some("b"));
    check("{\"uuid\":\"a\"}\n{\"uuid\":\"b\"}", Some("b"));
    check("{\"uuid\":\"a\"}\n\n\n", Some("a"));
    check(" {\"uuid\":\"a\"}\r\n", Some("a"));
    check("{\"uuid\":\"a\",\"uuid\":\"b\"}\n", Some("b"));
    check("{\"uuid\":\"a\",\"text\":\"half \\ud800\"}\n", Some("a"));
}

#[test]
fn a_last_line_that_is_no_whole_object_gives_none() {
    for bytes in [
        "",
        "\n",
        "{\"uuid\":\"a\"}\n \n",
        "{\"uuid\":\"a\"}\nnull\n",
        "{\"uuid\":\"a\"}\n[{\"uuid\":\"b\"}]\n",
        "{\"uuid\":\"a\"}\n{\"uuid\":\"b\"",
        "{\"uuid\":\"a\"}{\"uuid\":\"b\"}\n",
        "{\"uuid\":\"a\"}\n\0\0\0",
        "{\"uuid\":\"\"}\n",
        "{\"uuid\":7}\n",
        "{\"type\":\"system\"}\n",
        "\u{feff}{\"uuid\":\"a\"}\n",
        "{\"uuid\":\"a\"}\r{\"uuid\":\"b\"}\r",
    ] {
        check(bytes, None);
    }
}

#[test]
fn a_missing_file_gives_none() {
    assert_eq!(tail_uuid(Sample::new().path()), None);
}

#[test]
fn a_torn_last_line_gives_none_at_every_cut() {
    let whole = Sample::of_lines(&chain("user assistant")).bytes();
    let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    check(&whole[..first_line], Some("r0"));
    for cut in first_line + 1..whole.len() - 1 {
        check(&whole[..cut], None);
    }
    check(&whole[..whole.len() - 1], Some("r1"));
}

#[test]
fn a_line_is_read_if_all_of_it_lies_in_the_window() {
    let line_of = |bytes: u64| {
        let empty = json!({"uuid": "b", "text": ""}).to_string().len() as u64 + 1;
        let text = "x".repeat(usize::try_from(bytes - empty).unwrap());
        format!("{{\"uuid\":\"a\"}}\n{}\n", json!({"uuid": "b", "text": text}))
    };
    check(line_of(TAIL_BYTES_MAX), Some("b"));
    check(line_of(TAIL_BYTES_MAX + 1), None);
}

#[test]
fn what_is_cut_off_by_the_window_is_never_taken_for_a_line() {
    let inner = format!("{{\"uuid\":\"b\",\"text\":\"{}\"}}", "x".repeat(60_000));
    let padding = usize::try_from(TAIL_BYTES_MAX).unwrap() - inner.len() - 1;
    let bytes = format!("{}{inner}\n", " ".repeat(padding + 100));
    // The same object at the beginning of a line would be one; here the line begins with what the window hides.
    check(format!("x{bytes}"), None);
}
