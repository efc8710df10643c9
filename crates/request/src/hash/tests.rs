use proptest::prelude::*;

use super::*;

fn content(json: &str) -> Canonical {
    Canonical::of(json).unwrap()
}

fn asked(content: &Canonical) -> Asked<'_> {
    Asked {
        session_id: "s1",
        expected_incarnation: None,
        content,
        timeout_ms: 0,
        queue: false,
        cancel_on_timeout: false,
    }
}

#[test]
fn a_hash_reads_back_and_nothing_else_is_one() {
    let hash = Hash(std::array::from_fn(|place| u8::try_from(place * 8).unwrap()));
    assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
    assert_eq!(serde_json::from_str::<Hash>(&serde_json::to_string(&hash).unwrap()).unwrap(), hash);
    for text in ["", "00", &"0".repeat(63), &"g".repeat(64), &"ä".repeat(32)] {
        assert_eq!(Hash::parse(text), None, "{text}");
    }
}

/// The recipes are on disk in every store: another value here needs another version there.
#[test]
fn the_first_recipes_give_what_they_always_gave() {
    let content = content(r#"[{"type":"text","text":"hi"}]"#);
    assert_eq!(HASH_VERSION, 1);
    assert_eq!(
        input_hash(&asked(&content)).to_string(),
        "e40ff9a3ce79d8f0b93166df7d6bd0f0d411d352cbfa906ee6e4c509b8068563"
    );
    assert_eq!(prompt_hash(&content).to_string(), "6c5315ab4978bc0926374f06d5bfec60568e97c04825f7414d2545b09da958cb");
}

#[test]
fn scenario_04_one_byte_changed_is_another_input() {
    let [one, other] = [r#"[{"type":"text","text":"hi"}]"#, r#"[{"type":"text","text":"hi "}]"#].map(content);
    assert_ne!(input_hash(&asked(&one)), input_hash(&asked(&other)));
    assert_ne!(prompt_hash(&one), prompt_hash(&other));
}

#[test]
fn scenario_05_every_field_that_the_caller_gave_counts() {
    let content = content("[]");
    let asked = asked(&content);
    let others = [
        Asked { timeout_ms: 1, ..asked },
        Asked { session_id: "s2", ..asked },
        Asked { expected_incarnation: Some("i1"), ..asked },
        Asked { expected_incarnation: Some(""), ..asked },
        Asked { queue: true, ..asked },
        Asked { cancel_on_timeout: true, ..asked },
    ];
    let mut hashes: Vec<Hash> = others.iter().chain([&asked]).map(input_hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 7);
}

#[test]
fn how_the_same_blocks_were_written_does_not_count() {
    let [one, other] = [r#"[{"type":"text","text":"hi"}]"#, r#" [ {"text":"h\u0069","type":"text"} ] "#].map(content);
    assert_eq!(input_hash(&asked(&one)), input_hash(&asked(&other)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A length before each field: where one field ends and the next begins cannot be moved.
    #[test]
    fn bytes_that_move_from_one_field_to_the_next_make_another_input(text in "[a-z]{2,20}", at in 1..20_usize) {
        let content = content("[]");
        let asked = asked(&content);
        let at = at.min(text.len() - 1);
        let whole = Asked { session_id: &text, expected_incarnation: Some(""), ..asked };
        let split = Asked { session_id: &text[..at], expected_incarnation: Some(&text[at..]), ..asked };
        prop_assert_ne!(input_hash(&whole), input_hash(&split));
    }
}
