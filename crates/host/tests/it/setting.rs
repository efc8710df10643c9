//! What a client has set an agent to, and the agents after it.

use serde_json::{Value, json};

use crate::world::{Host, Store, code};

/// Is loaded, set to a mode, and says in each turn which one it is in. It answers no prompt that says `deaf`.
const MODAL: &str = r#"
    mode=default
    say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
    text() { say '"method":"session/update","params":{"sessionId":"'"$ses"'","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}}'; }
    modes() { echo '"modes":{"currentModeId":"'$mode'","availableModes":[{"id":"plan"},{"id":"default"}]}'; }
    while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\),.*/\1/p')
        case "$line" in
            *'"initialize"'*) say '"id":'$id',"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
            *'"session/new"'*) n=$((n + 1)); ses=ses-$$-$n; mode=default; say '"id":'$id',"result":{"sessionId":"'$ses'",'$(modes)'}' ;;
            *'"session/load"'*) ses=$(printf '%s' "$line" | sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p'); say '"id":'$id',"result":{'$(modes)'}' ;;
            *'"session/set_mode"'*)
                mode=$(printf '%s' "$line" | sed -n 's/.*"modeId":"\([^"]*\)".*/\1/p')
                say '"id":'$id',"result":{}' ;;
            *'"session/prompt"'*deaf*) text "in $mode" ;;
            *'"session/prompt"'*) text "in $mode"; say '"id":'$id',"result":{"stopReason":"end_turn"}' ;;
        esac
    done
"#;

async fn set(host: &mut Host, opened: &Value, mode: &str) {
    let params = json!({"sessionId": opened["result"]["sessionId"], "modeId": mode});
    let id = host.ask("session/set_mode", params).await;
    assert!(host.answer(id).await["error"].is_null());
}

/// The agent's session of this answer is in the mode that was set, and says so in a turn.
async fn goes_on_in_plan(store: &Store, host: &mut Host, answer: &Value, prompt: &str) {
    assert_eq!(told_mode(answer), "plan", "{answer}");
    host.go_on_as(answer);
    host.turn(prompt, "x").await;
    assert_eq!(store.result(prompt).unwrap()["resultText"], "in plan");
}

fn told_mode(answer: &Value) -> &Value {
    &answer["result"]["modes"]["currentModeId"]
}

#[tokio::test]
async fn an_agent_in_anothers_place_and_that_of_the_next_host_are_in_the_mode_that_was_set() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], MODAL);
    let opened = host.open().await;
    assert_eq!(told_mode(&opened), "default");
    set(&mut host, &opened, "plan").await;
    host.prompt("p1", "deaf").await;
    host.until("session/update").await;
    let request =
        host.ask("turnd/replace_agent", json!({"sessionId": "session-1", "cwd": "/", "mcpServers": []})).await;
    let answer = host.answer(request).await;
    goes_on_in_plan(&store, &mut host, &answer, "p2").await;
    host.close().await;

    let mut host = store.host_over_script(&[], MODAL);
    let answer = host.load().await;
    goes_on_in_plan(&store, &mut host, &answer, "p3").await;
    host.close().await;
}

/// Asks to go back to before `p1`, the first prompt, behind which the branch was seen to end with this record.
async fn rewind(host: &mut Host, leaf: &Value) -> Value {
    let params = json!({"sessionId": "session-1", "cwd": "/", "mcpServers": [], "promptId": "p1", "kept": 0,
        "leaf": leaf, "truncatedCount": 2, "atMs": 4_000_000_000_000_u64});
    let request = host.ask("turnd/rewind", params).await;
    host.answer(request).await
}

#[tokio::test]
async fn a_session_that_a_refused_rewind_has_forgotten_is_noted_again_behind_the_next_record_and_by_no_setting() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], MODAL);
    let opened = host.open().await;
    host.turn("p1", "x").await;
    let noted = || {
        let note = std::fs::read(store.transcript().with_extension("host.json")).unwrap();
        serde_json::from_slice::<Value>(&note).unwrap()
    };
    assert_eq!(code(&rewind(&mut host, &json!("another")).await), "session_transcript_changed");
    assert_eq!(noted()["agentSessionId"], "");
    set(&mut host, &opened, "plan").await;
    assert_eq!((&noted()["agentSessionId"], &noted()["choices"][0]["value"]), (&json!(""), &json!("plan")));
    host.turn("p2", "x").await;
    assert_eq!(noted()["agentSessionId"], opened["result"]["sessionId"]);
    host.close().await;
}

#[tokio::test]
async fn a_session_that_a_rewind_makes_anew_is_in_the_mode_that_was_set() {
    let store = Store::new();
    let mut host = store.host_over_script(&[], MODAL);
    let opened = host.open().await;
    set(&mut host, &opened, "plan").await;
    host.turn("p1", "x").await;
    let leaf = store.records().last().unwrap()["uuid"].clone();
    let answer = rewind(&mut host, &leaf).await;
    goes_on_in_plan(&store, &mut host, &answer, "p2").await;
    host.close().await;
}

#[tokio::test]
async fn a_name_is_found_at_a_glance_behind_a_long_conversation_and_under_the_next_host() {
    let store = Store::new();
    let long = "x".repeat(100_000);
    let named = || transcript::Headline::read(&store.transcript()).unwrap().title;
    let mut host = store.host(&[]);
    host.open().await;
    host.turn("p1", &long).await;
    let record = json!({"subtype": "custom_title", "payload": {"customTitle": "mine", "titleSource": "manual"}});
    let id = host.ask("turnd/record", record).await;
    assert!(host.answer(id).await["error"].is_null());
    host.turn("p2", &long).await;
    assert_eq!(named().as_deref(), Some("mine"));
    host.close().await;
    let mut host = store.host(&[]);
    let answer = host.load().await;
    host.go_on_as(&answer);
    host.turn("p3", &long).await;
    assert_eq!(named().as_deref(), Some("mine"));
    host.close().await;
    assert!(store.kinds().iter().filter(|kind| *kind == "custom_title").count() <= 6);
}
