//! The messages we author, from the types of the protocol's own schema, are on the wire what the
//! protocol says.

use acp::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, ContentChunk, Implementation, InitializeRequest,
    LoadSessionRequest, NewSessionRequest, PromptRequest, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionNotification, SessionUpdate,
};
use acp::{Message, ProtocolVersion, compose, lenient_value};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

fn on_the_wire(params: &impl Serialize) -> Value {
    let line: Bytes = compose::notification("m", params);
    let message = Message::parse(line).unwrap();
    lenient_value(message.params().unwrap()).unwrap()
}

#[test]
fn initialize_offers_no_file_system_and_no_terminal() {
    let request = InitializeRequest::new(ProtocolVersion::V1)
        .client_info(Implementation::new("turnd", "1"))
        .client_capabilities(ClientCapabilities::new());
    assert_eq!(
        on_the_wire(&request),
        json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false, "auth": {"terminal": false}},
            "clientInfo": {"name": "turnd", "version": "1"},
        })
    );
}

#[test]
fn sessions_are_made_loaded_prompted_and_cancelled() {
    assert_eq!(on_the_wire(&NewSessionRequest::new("/ws")), json!({"cwd": "/ws", "mcpServers": []}));
    assert_eq!(
        on_the_wire(&LoadSessionRequest::new("s", "/ws")),
        json!({"sessionId": "s", "cwd": "/ws", "mcpServers": []})
    );
    assert_eq!(
        on_the_wire(&PromptRequest::new("s", vec![ContentBlock::from("hi")])),
        json!({"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]})
    );
    assert_eq!(on_the_wire(&CancelNotification::new("s")), json!({"sessionId": "s"}));
}

#[test]
fn a_permission_is_selected_or_cancelled() {
    let selected = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new("opaque"));
    assert_eq!(
        on_the_wire(&RequestPermissionResponse::new(selected)),
        json!({"outcome": {"outcome": "selected", "optionId": "opaque"}})
    );
    assert_eq!(
        on_the_wire(&RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled)),
        json!({"outcome": {"outcome": "cancelled"}})
    );
}

#[test]
fn an_update_names_its_session_and_its_kind() {
    let chunk = SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from("hi")));
    assert_eq!(
        on_the_wire(&SessionNotification::new("s", chunk)),
        json!({"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}})
    );
}
