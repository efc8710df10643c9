//! Asking the agent what is no prompt: which extension method answers a route, and what an answer that is none becomes
//! (wire rules, sections 14.2 and 14.3).

use bridge::{AskError, Session};
use hyper::StatusCode;
use serde_json::Value;

use crate::asked::{RESOURCE_NOT_FOUND, handed_on, is_method_unknown};
use crate::limits::ASIDE_MS;
use crate::refusal::Refusal;

/// One ability that agents have or lack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aside {
    /// What a client is told whose agent lacks it.
    unsupported: &'static str,
    /// The method that has it.
    method: &'static str,
}

impl Aside {
    /// An ability, by what is said where it is missing.
    pub(crate) const fn new(unsupported: &'static str, method: &'static str) -> Self {
        Self { unsupported, method }
    }

    /// Asks, and gives the agent's result. `params` is the raw text of a JSON object.
    ///
    /// # Errors
    /// See [`Self::refusal`].
    pub(crate) async fn ask(&self, session: &Session, params: &Value) -> Result<Value, Refusal> {
        let answer = session.ask(self.method, &params.to_string(), ASIDE_MS).await;
        let result = answer.map_err(|error| self.refusal(session.id(), error))?;
        Ok(acp_value(&result))
    }

    /// 501: the agent lacks it.
    pub(crate) fn unsupported(&self, session: &str) -> Refusal {
        let message = "The session's agent cannot do that";
        Refusal::new(StatusCode::NOT_IMPLEMENTED, self.unsupported, message).with("sessionId", session)
    }

    /// 501 where the agent lacks the ability, 504 where it did not answer in time, 409 where it is busy, 404 where it or the session is
    /// gone, else 500 with the agent's own words.
    pub(crate) fn refusal(&self, session: &str, error: AskError) -> Refusal {
        let error = match error {
            AskError::Refused(error) => error,
            AskError::Gone => return Refusal::session_not_found(session),
            AskError::Timeout { timeout_ms, .. } => {
                let message = format!("The agent did not answer within {timeout_ms} ms");
                return Refusal::new(StatusCode::GATEWAY_TIMEOUT, "agent_timeout", message)
                    .with("sessionId", session)
                    .with("timeoutMs", timeout_ms);
            }
        };
        let data: Value = error.data.as_deref().map(acp_value).unwrap_or_default();
        let word = |key: &str| data[key].as_str().unwrap_or_default();
        if is_method_unknown(&error) {
            return self.unsupported(session);
        }
        if word("errorKind") == "session_busy" || word("turnd/code") == "turn_in_progress" {
            return Refusal::busy(session, error.message);
        }
        if error.code == RESOURCE_NOT_FOUND {
            return Refusal::session_not_found(session);
        }
        handed_on(&error, data)
    }
}

/// What an agent wrote; null where it cannot be read.
fn acp_value(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECAP: Aside = Aside::new("recap_not_supported", "x/recap");

    /// The agent's error, and the status and body that a client gets.
    fn check(error: &str, status: u16, body: &str) {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        let error = bridge_error(&line);
        let refusal = RECAP.refusal("s", error);
        assert_eq!((refusal.status.as_u16(), serde_json::to_string(&refusal).unwrap().as_str()), (status, body));
    }

    fn bridge_error(line: &str) -> AskError {
        let value: Value = serde_json::from_str(line).unwrap();
        let error = &value["error"];
        let mut refused = bridge::RpcError::new(error["code"].as_i64().unwrap(), error["message"].as_str().unwrap());
        if !error["data"].is_null() {
            refused = refused.with_data(&error["data"]);
        }
        AskError::Refused(refused)
    }

    #[test]
    fn an_agent_that_lacks_it_is_said_to_lack_it() {
        check(
            r#"{"code":-32601,"message":"Method not found"}"#,
            501,
            r#"{"error":"The session's agent cannot do that","code":"recap_not_supported","sessionId":"s"}"#,
        );
    }

    #[test]
    fn a_busy_agent_is_asked_again_later() {
        let body =
            r#"{"error":"busy","code":"session_busy","errorKind":"session_busy","retryable":true,"sessionId":"s"}"#;
        check(r#"{"code":-32603,"message":"busy","data":{"errorKind":"session_busy"}}"#, 409, body);
        check(r#"{"code":-32000,"message":"busy","data":{"turnd/code":"turn_in_progress"}}"#, 409, body);
    }

    #[test]
    fn any_other_error_keeps_the_agents_number_and_data() {
        check(
            r#"{"code":-32603,"message":"Internal error","data":{"details":"no key"}}"#,
            500,
            r#"{"error":"Internal error","code":-32603,"data":{"details":"no key"}}"#,
        );
        check(r#"{"code":7,"message":"x"}"#, 500, r#"{"error":"x","code":7}"#);
    }

    #[test]
    fn a_session_that_the_agent_does_not_have_is_not_found_and_silence_has_an_end() {
        check(
            r#"{"code":-32002,"message":"x"}"#,
            404,
            r#"{"error":"No session with id \"s\"","code":"session_not_found","sessionId":"s"}"#,
        );
        let refusal = RECAP.refusal("s", AskError::Timeout { method: "m".into(), timeout_ms: 5 });
        assert_eq!((refusal.status.as_u16(), &*refusal.code), (504, "agent_timeout"));
        assert_eq!(RECAP.refusal("s", AskError::Gone).status.as_u16(), 404);
    }
}
