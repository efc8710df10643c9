use std::fs;

use super::*;

/// The headline of a file that holds this.
fn headline(bytes: &[u8]) -> Headline {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, bytes).unwrap();
    Headline::read(&path).unwrap()
}

fn record(rest: &str) -> String {
    format!(
        r#"{{"uuid":"u","parentUuid":null,"sessionId":"s","timestamp":"2026-11-29T18:33:40.001Z","cwd":"/ws",{rest}}}"#
    )
}

fn prompt(text: &str) -> String {
    record(&format!(r#""type":"user","message":{{"role":"user","parts":[{{"text":"{text}"}}]}}"#)) + "\n"
}

fn title(text: &str, source: &str) -> String {
    record(&format!(
        r#""type":"system","subtype":"custom_title","systemPayload":{{"customTitle":"{text}","titleSource":"{source}"}}"#
    )) + "\n"
}

fn answer(bytes: usize) -> String {
    let text = "a".repeat(bytes);
    record(&format!(r#""type":"assistant","message":{{"role":"model","parts":[{{"text":"{text}"}}]}}"#)) + "\n"
}

#[test]
fn a_session_is_told_by_its_first_record_and_its_first_prompt() {
    let note = record(r#""type":"system","subtype":"session_model","systemPayload":{}"#);
    let read = headline(format!("{note}\n{}{}", prompt("what  is\\nthis"), prompt("more")).as_bytes());
    assert_eq!((read.session_id.as_deref(), read.begun_in.as_deref()), (Some("s"), Some("/ws")));
    assert_eq!((read.begun_at_ms, read.prompt.as_deref()), (Some(1_795_977_220_001), Some("what is this")));
    assert_eq!(read.title, None);
    assert!(read.belongs("s", Path::new("/ws")) && !read.belongs("t", Path::new("/ws")));
    assert!(!read.belongs("s", Path::new("/w-s")), "another folder with the same name in the store");
}

#[test]
fn what_nobody_asked_is_no_prompt() {
    let reminder = r#"[{"text":"<system-reminder>x</system-reminder>"}]"#;
    let said = [
        record(&format!(r#""type":"user","message":{{"role":"user","parts":{reminder}}}"#)),
        record(r#""type":"user","subtype":"cron","message":{"role":"user","parts":[{"text":"by the clock"}]}"#),
        record(r#""type":"user","provenance":"system","message":{"role":"user","parts":[{"text":"by itself"}]}"#),
        record(r#""type":"assistant","message":{"role":"model","parts":[{"text":"said"}]}"#),
    ];
    assert_eq!(headline((said.join("\n") + "\n").as_bytes()).prompt, None);
    let shown = record(
        r#""type":"user","message":{"role":"user","parts":[{"text":"expanded"}]},"systemPayload":{"displayText":"typed"}"#,
    );
    assert_eq!(headline(shown.as_bytes()).prompt.as_deref(), Some("typed"));
}

#[test]
fn a_long_prompt_is_cut_in_units_that_a_browser_counts() {
    let read = headline(prompt(&"🧪".repeat(300)).as_bytes()).prompt.unwrap();
    assert_eq!(read, "🧪".repeat(100) + "…");
    assert_eq!(headline(prompt(&"x".repeat(200)).as_bytes()).prompt.unwrap(), "x".repeat(200));
}

#[test]
fn a_first_record_larger_than_what_is_read_says_what_stands_in_it() {
    for escapes in ["\\u00e9", "x", "é"] {
        let read = headline((prompt(&escapes.repeat(200_000)) + &answer(5)).as_bytes());
        assert_eq!((read.session_id.as_deref(), read.begun_in.as_deref()), (Some("s"), Some("/ws")), "{escapes}");
        assert!(read.prompt.unwrap().starts_with(if escapes == "x" { "xx" } else { "éé" }));
        assert_eq!(read.begun_at_ms, Some(1_795_977_220_001));
    }
}

#[test]
fn the_newest_name_counts_and_one_taken_back_is_none() {
    let long = answer(300_000);
    let named = |text: &str| headline(text.as_bytes());
    let of = |text: &str| named(text).title;
    assert_eq!(of(&(prompt("p") + &title("one", "auto") + &title("two", "manual"))), Some("two".into()));
    assert_eq!(of(&(prompt("p") + &title("one", "auto") + &long)), Some("one".into()), "in the beginning only");
    assert_eq!(of(&(prompt("p") + &title("one", "auto") + &long + &title("two", "manual"))), Some("two".into()));
    assert_eq!(of(&(prompt("p") + &title("one", "auto") + &title("", "manual"))), None);
    assert_eq!(of(&(prompt("p") + &title("one", "auto") + &prompt("custom_title"))), Some("one".into()));
    let read = named(&(prompt("p") + &title("two", "manual")));
    assert_eq!((read.title_source.as_deref(), read.prompt.as_deref()), (Some("manual"), Some("p")));
}

#[test]
fn who_made_it_is_told() {
    let parent = record(r#""type":"system","subtype":"parent_session","systemPayload":{"parentSessionId":"up"}"#);
    let source =
        record(r#""type":"system","subtype":"session_source","systemPayload":{"sourceType":"bot","sourceId":"7"}"#);
    let read = headline(format!("{parent}\n{source}\n{}", prompt("p")).as_bytes());
    assert_eq!(read.parent_session_id.as_deref(), Some("up"));
    assert_eq!((read.source_type.as_deref(), read.source_id.as_deref()), (Some("bot"), Some("7")));
}

#[test]
fn damage_hides_no_more_than_itself() {
    let whole = prompt("asked");
    for (damage, what) in [
        ("garbage\n", "a line of garbage"),
        ("\0\0\0\n", "nothing at all"),
        ("\u{feff}", "a byte order mark"),
        ("\r\n\r\n", "empty lines"),
        ("[1,2]\n5\nnull\n", "values that are no objects"),
        (r#"{"uuid":"torn","cwd":"/other","mess"#, "a torn record before it on its line"),
        ("{\"uuid\":\"torn\",\"cwd\":\"/other\",\"mess\n", "a torn record that was sealed"),
    ] {
        let read = headline(format!("{damage}{whole}").as_bytes());
        assert_eq!((read.begun_in.as_deref(), read.prompt.as_deref()), (Some("/ws"), Some("asked")), "{what}");
    }
    for nothing in ["", "   \n\n", "garbage", "{\"uuid\":\"u\",\"cwd\":\"/ws"] {
        assert_eq!(headline(nothing.as_bytes()), Headline::default(), "{nothing}");
    }
}

#[test]
fn an_object_that_is_no_record_still_says_where_it_was_begun() {
    let read = headline(format!("{}\n{}", r#"{"sessionId":"t","cwd":"/other"}"#, prompt("p")).as_bytes());
    assert_eq!((read.session_id.as_deref(), read.begun_in.as_deref()), (Some("t"), Some("/other")));
}

#[test]
fn whatever_a_file_holds_its_headline_is_read() {
    use proptest::prelude::*;
    let pieces = prop::collection::vec(
        prop_oneof![
            Just(prompt("p").into_bytes()),
            Just(title("t", "auto").into_bytes()),
            Just(b"custom_title".to_vec()),
            Just(answer(40_000).into_bytes()),
            prop::collection::vec(any::<u8>(), 0..40),
        ],
        0..8,
    );
    proptest!(ProptestConfig::with_cases(200), |(pieces in pieces, cut in 0..200_000_usize)| {
        let mut bytes = pieces.concat();
        bytes.truncate(cut);
        headline(&bytes);
    });
}

#[test]
fn only_the_two_ends_of_a_file_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, prompt("p")).unwrap();
    // A hole of a terabyte: whoever reads through it does not come back.
    File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(Headline::read(&path).unwrap().prompt.as_deref(), Some("p"));
}
