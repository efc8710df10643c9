//! An agent that opens a session and then never reads again: how long it may is a flag.

use serde_json::json;

use crate::world::World;

/// Greets, opens a session, and hears nothing more.
const DEAF: &str = r#"read -r a; echo '{"jsonrpc":"2.0","id":0,"result":{}}'
read -r b; echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"ses"}}'
exec sleep 3600"#;

/// A prompt that fits into no pipe.
const LONG: usize = 2_000_000;

#[test]
fn an_agent_that_reads_nothing_is_ended_after_the_time_that_a_flag_gives_it() {
    let scratch = tempfile::tempdir().unwrap();
    let script = scratch.path().join("deaf.sh");
    std::fs::write(&script, DEAF).unwrap();
    let agent = format!("sh '{}'", script.display());
    let mut world = World::with(&["--agent", &agent, "--agent-input-timeout-ms", "300"]);
    let session = world.session();
    let body = json!({ "requestId": "long", "prompt": [{ "type": "text", "text": "x".repeat(LONG) }] });
    let (status, receipt) = world.call("POST", &format!("/session/{session}/return-requests"), &body.to_string());
    // What an agent has a part of it has no prompt of; a caller who still waits for the first sign is told so.
    assert_eq!(status, 202, "{receipt}");
    let told = ["state", "code", "input_written"].map(|key| receipt[key].as_str().unwrap_or("-").to_owned());
    assert_eq!(told, ["delivery_failed", "write_failed", "no"], "{receipt}");
}
