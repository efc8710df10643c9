use super::*;

const LISTS: &str = r#"{"modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"plan"}],"x":1},
    "models":{"currentModelId":"m-1","availableModels":[{"modelId":"m-1"},{"modelId":"m-2"}]},"y":2}"#;
const CHOICES: &str = r#"{"configOptions":[{"id":"effort","category":"thought_level","currentValue":"low"},
    {"id":"the-mode","category":"mode","currentValue":"build","options":[{"value":"build"},{"value":"plan"}]}]}"#;

fn settings(answer: &str) -> Settings {
    Settings::new(answer.to_owned())
}

fn switched(previous: &str, next: &str) -> Switched {
    Switched { previous: Some(previous.to_owned()), next: next.to_owned() }
}

#[test]
fn an_agent_is_set_by_the_method_for_it_or_by_its_option_or_not_at_all() {
    let listed = |listed| Some(Way::Method { listed });
    let option = |listed| Some(Way::Option { id: "the-mode".into(), listed });
    for (answer, setting, value, way) in [
        (LISTS, Setting::Mode, "plan", listed(true)),
        (LISTS, Setting::Mode, "yolo", listed(false)),
        (LISTS, Setting::Model, "m-2", listed(true)),
        (CHOICES, Setting::Mode, "plan", option(true)),
        (CHOICES, Setting::Mode, "yolo", option(false)),
        (CHOICES, Setting::Model, "m-1", None),
        (r#"{"modes":null,"models":null,"configOptions":null}"#, Setting::Mode, "plan", None),
        ("null", Setting::Mode, "plan", None),
    ] {
        assert_eq!(settings(answer).way(setting, value), way, "{answer} {value}");
    }
}

#[test]
fn what_is_set_is_what_the_answer_says_from_then_on_and_the_rest_of_it_stays() {
    let mut settings = settings(LISTS);
    let number = settings.begin(Setting::Mode, "plan");
    assert_eq!(settings.current(Setting::Mode).as_deref(), Some("default"), "not before the agent has done it");
    assert_eq!(settings.end(number, Some("plan")), Some(switched("default", "plan")));
    assert_eq!(string_at(settings.answer(), &["modes", "currentModeId"]).as_deref(), Some("plan"));
    assert_eq!((raw_at(settings.answer(), &["modes", "x"]), raw_at(settings.answer(), &["y"])), (Some("1"), Some("2")));
    let number = settings.begin(Setting::Model, "m-9");
    assert_eq!(settings.end(number, None), None);
    assert_eq!(settings.current(Setting::Model).as_deref(), Some("m-1"));
}

#[test]
fn an_option_is_set_where_it_stands() {
    let mut settings = settings(CHOICES);
    let number = settings.begin(Setting::Mode, "plan");
    assert_eq!(settings.end(number, Some("plan")), Some(switched("build", "plan")));
    assert_eq!(settings.current(Setting::Mode).as_deref(), Some("plan"));
    assert_eq!(settings.offered(Setting::Mode), ["build", "plan"]);
    assert!(settings.answer().contains(r#""currentValue":"low""#), "{}", settings.answer());
}

#[test]
fn what_the_agent_says_of_a_change_before_it_answers_is_part_of_that_change() {
    let mut settings = settings(LISTS);
    let number = settings.begin(Setting::Mode, "plan");
    assert_eq!(settings.hear(Setting::Mode, "plan"), None, "told with the answer");
    assert_eq!(settings.end(number, Some("plan")), Some(switched("default", "plan")));
    assert_eq!(settings.hear(Setting::Mode, "plan"), None, "and what it says behind it is nothing new");
    assert_eq!(settings.hear(Setting::Mode, "default"), Some(switched("plan", "default")), "its own doing");
}

#[test]
fn two_changes_at_once_are_told_in_the_order_in_which_the_agent_made_them() {
    let mut settings = settings(LISTS);
    let (first, second) = (settings.begin(Setting::Mode, "plan"), settings.begin(Setting::Mode, "yolo"));
    assert_eq!(settings.hear(Setting::Mode, "plan"), None);
    assert_eq!(settings.hear(Setting::Mode, "yolo"), None);
    assert_eq!(settings.end(second, Some("yolo")), Some(switched("plan", "yolo")));
    assert_eq!(settings.end(first, Some("plan")), Some(switched("default", "plan")));
    assert_eq!(settings.current(Setting::Mode).as_deref(), Some("yolo"), "the last one made is the one that is set");
}

#[test]
fn options_that_the_agent_sends_anew_say_what_is_set() {
    let mut settings = settings(LISTS);
    let options =
        r#"[{"id":"mode","category":"mode","currentValue":"plan"},{"id":"m","category":"model","currentValue":"m-1"}]"#;
    assert_eq!(settings.hear_options(options), [(Setting::Mode, switched("default", "plan"))]);
    assert_eq!(raw_at(settings.answer(), &["configOptions"]), Some(options));
    for odd in ["{}", "null", &format!("[{}]", " ".repeat(LATEST_UPDATE_BYTES_MAX))] {
        assert_eq!(settings.hear_options(odd), [], "{odd:.10}");
    }
}

#[test]
fn another_agent_is_set_as_it_says_and_what_differs_is_told() {
    let mut settings = settings(LISTS);
    let number = settings.begin(Setting::Mode, "plan");
    settings.end(number, Some("plan"));
    assert_eq!(settings.succeed(LISTS.to_owned()), [(Setting::Mode, switched("plan", "default"))]);
    assert_eq!(settings.succeed("{}".to_owned()), []);
}
