//! Which route a method and a path name. Path parameters are percent-decoded here and nowhere else.

use std::borrow::Cow;

use hyper::{Method, StatusCode};
use percent_encoding::percent_decode_str;

use crate::refusal::Refusal;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    Capabilities,
    Openapi,
    CreateSession,
    CloseSession,
    Status,
    Sessions,
    LiveState,
    Prompt,
    Cancel,
    PendingPrompts,
    RemovePrompt,
    Events,
    Turn,
    CurrentTurn,
    TurnResult,
    Vote,
    SessionVote,
    Load,
    Transcript,
    Context,
    Resume,
    Rewind,
    RewindSnapshots,
    Branch,
    Heartbeat,
    Detach,
    Acp,
    Archive,
    Unarchive,
    DeleteSessions,
    Shell,
    Steer,
    Steering,
    RemoveSteering,
    Recap,
    Btw,
    Generate,
    Fork,
    Continue,
    Rename,
    Model,
    ApprovalMode,
    SubmitReturn,
    Return,
    Returns,
    CancelReturn,
    ReturnEvents,
    ReturnStream,
    ReturnConsumer,
    Webhooks,
    PutWebhook,
    Webhook,
    DeleteWebhook,
    RedeliverWebhook,
    ResumeWebhook,
    RotateWebhook,
    EndWebhookSecret,
}

/// One path, the methods it knows, and the value of its `Allow` header.
struct Entry {
    path: &'static str,
    methods: &'static [(Method, Route)],
    allow: &'static str,
}

/// The table of all routes.
pub(crate) struct Router {
    paths: matchit::Router<&'static Entry>,
}

/// A route and the parameters of its path, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Matched<'p> {
    pub(crate) route: Route,
    first: Cow<'p, str>,
    second: Cow<'p, str>,
}

impl Matched<'_> {
    /// The first parameter: a session id, the request id of the older permission route, a return request, a consumer, an
    /// endpoint of webhooks, or a workspace.
    pub(crate) fn id(&self) -> &str {
        &self.first
    }

    /// The session that the path names; none on routes that are about no session.
    pub(crate) fn session(&self) -> Option<&str> {
        let names_another = matches!(
            self.route,
            Route::Vote
                | Route::Sessions
                | Route::LiveState
                | Route::Return
                | Route::CancelReturn
                | Route::ReturnConsumer
                | Route::PutWebhook
                | Route::Webhook
                | Route::DeleteWebhook
                | Route::RedeliverWebhook
                | Route::ResumeWebhook
                | Route::RotateWebhook
                | Route::EndWebhookSecret
        );
        (!names_another && !self.first.is_empty()).then_some(&*self.first)
    }

    /// The second parameter: a prompt id, a request id, or which secret of an endpoint.
    pub(crate) fn second(&self) -> &str {
        &self.second
    }
}

const TABLE: &[Entry] = &[
    entry("/health", &[(Method::GET, Route::Health)], "GET, HEAD"),
    entry("/capabilities", &[(Method::GET, Route::Capabilities)], "GET, HEAD"),
    entry("/openapi.json", &[(Method::GET, Route::Openapi)], "GET, HEAD"),
    entry("/acp", &[(Method::GET, Route::Acp)], "GET"),
    entry("/session", &[(Method::POST, Route::CreateSession)], "POST"),
    entry("/session/{id}", &[(Method::DELETE, Route::CloseSession)], "DELETE"),
    entry("/session/{id}/status", &[(Method::GET, Route::Status)], "GET, HEAD"),
    entry("/workspace/{workspace}/sessions", &[(Method::GET, Route::Sessions)], "GET, HEAD"),
    entry("/workspaces/{workspace}/sessions", &[(Method::GET, Route::Sessions)], "GET, HEAD"),
    entry("/workspaces/{workspace}/sessions/live-state", &[(Method::GET, Route::LiveState)], "GET, HEAD"),
    entry("/session/{id}/prompt", &[(Method::POST, Route::Prompt)], "POST"),
    entry("/session/{id}/cancel", &[(Method::POST, Route::Cancel)], "POST"),
    entry("/session/{id}/pending-prompts", &[(Method::GET, Route::PendingPrompts)], "GET, HEAD"),
    entry("/session/{id}/pending-prompts/{prompt}", &[(Method::DELETE, Route::RemovePrompt)], "DELETE"),
    entry("/session/{id}/events", &[(Method::GET, Route::Events)], "GET"),
    entry("/session/{id}/turns/current", &[(Method::GET, Route::CurrentTurn)], "GET, HEAD"),
    entry("/session/{id}/turns/{prompt}", &[(Method::GET, Route::Turn)], "GET, HEAD"),
    entry("/session/{id}/turns/{prompt}/result", &[(Method::GET, Route::TurnResult)], "GET, HEAD"),
    entry("/session/{id}/permission/{request}", &[(Method::POST, Route::SessionVote)], "POST"),
    entry("/permission/{request}", &[(Method::POST, Route::Vote)], "POST"),
    entry("/session/{id}/load", &[(Method::POST, Route::Load)], "POST"),
    entry("/session/{id}/transcript", &[(Method::GET, Route::Transcript)], "GET, HEAD"),
    entry("/session/{id}/context", &[(Method::GET, Route::Context)], "GET, HEAD"),
    entry("/session/{id}/resume", &[(Method::POST, Route::Resume)], "POST"),
    entry("/session/{id}/branch", &[(Method::POST, Route::Branch)], "POST"),
    entry("/session/{id}/rewind", &[(Method::POST, Route::Rewind)], "POST"),
    entry("/session/{id}/rewind/snapshots", &[(Method::GET, Route::RewindSnapshots)], "GET, HEAD"),
    entry("/session/{id}/heartbeat", &[(Method::POST, Route::Heartbeat)], "POST"),
    entry("/session/{id}/metadata", &[(Method::PATCH, Route::Rename)], "PATCH"),
    entry("/session/{id}/model", &[(Method::POST, Route::Model)], "POST"),
    entry("/session/{id}/approval-mode", &[(Method::POST, Route::ApprovalMode)], "POST"),
    entry("/session/{id}/detach", &[(Method::POST, Route::Detach)], "POST"),
    entry("/sessions/archive", &[(Method::POST, Route::Archive)], "POST"),
    entry("/sessions/unarchive", &[(Method::POST, Route::Unarchive)], "POST"),
    entry("/sessions/delete", &[(Method::POST, Route::DeleteSessions)], "POST"),
    entry("/session/{id}/shell", &[(Method::POST, Route::Shell)], "POST"),
    entry("/session/{id}/mid-turn-message", &[(Method::POST, Route::Steer)], "POST"),
    entry("/session/{id}/mid-turn-messages", &[(Method::GET, Route::Steering)], "GET, HEAD"),
    entry("/session/{id}/mid-turn-messages/{message}", &[(Method::DELETE, Route::RemoveSteering)], "DELETE"),
    entry("/session/{id}/recap", &[(Method::POST, Route::Recap)], "POST"),
    entry("/session/{id}/btw", &[(Method::POST, Route::Btw)], "POST"),
    entry("/session/{id}/generate", &[(Method::POST, Route::Generate)], "POST"),
    entry("/session/{id}/continue", &[(Method::POST, Route::Continue)], "POST"),
    entry("/session/{id}/fork", &[(Method::POST, Route::Fork)], "POST"),
    entry("/session/{id}/return-requests", &[(Method::POST, Route::SubmitReturn)], "POST"),
    entry("/return-requests", &[(Method::GET, Route::Returns)], "GET, HEAD"),
    entry("/return-requests/events", &[(Method::GET, Route::ReturnEvents)], "GET"),
    entry("/return-requests/stream", &[(Method::GET, Route::ReturnStream)], "GET, HEAD"),
    entry("/return-requests/consumers/{name}", &[(Method::PUT, Route::ReturnConsumer)], "PUT"),
    entry("/return-requests/webhooks", &[(Method::GET, Route::Webhooks)], "GET, HEAD"),
    entry("/return-requests/webhooks/{name}", WEBHOOK, "GET, HEAD, PUT, DELETE"),
    entry("/return-requests/webhooks/{name}/redeliver", &[(Method::POST, Route::RedeliverWebhook)], "POST"),
    entry("/return-requests/webhooks/{name}/resume", &[(Method::POST, Route::ResumeWebhook)], "POST"),
    entry("/return-requests/webhooks/{name}/secrets", &[(Method::POST, Route::RotateWebhook)], "POST"),
    entry("/return-requests/webhooks/{name}/secrets/{which}", &[(Method::DELETE, Route::EndWebhookSecret)], "DELETE"),
    entry("/return-requests/{request}", &[(Method::GET, Route::Return)], "GET, HEAD"),
    entry("/return-requests/{request}/cancel", &[(Method::POST, Route::CancelReturn)], "POST"),
];

const WEBHOOK: &[(Method, Route)] =
    &[(Method::GET, Route::Webhook), (Method::PUT, Route::PutWebhook), (Method::DELETE, Route::DeleteWebhook)];

const fn entry(path: &'static str, methods: &'static [(Method, Route)], allow: &'static str) -> Entry {
    Entry { path, methods, allow }
}

impl Router {
    /// The routes of this daemon.
    ///
    /// # Errors
    /// When two rows of the table contradict each other, which a test rules out.
    pub(crate) fn new() -> Result<Self, matchit::InsertError> {
        let mut paths = matchit::Router::new();
        for entry in TABLE {
            paths.insert(entry.path, entry)?;
        }
        Ok(Self { paths })
    }

    /// The route of `method` and `path`.
    ///
    /// # Errors
    /// 404 for an unknown path and for an unknown method on a known one, as the peer answers (wire rules, section 1.1); 400
    /// for escapes that do not decode.
    pub(crate) fn find<'p>(&self, method: &Method, path: &'p str) -> Result<Matched<'p>, Refusal> {
        let bare = if path.len() > 1 { path.strip_suffix('/').unwrap_or(path) } else { path };
        let Ok(found) = self.paths.at(bare) else {
            decode(path)?;
            return Err(unknown(method, path));
        };
        let mut parameters = found.params.iter().map(|(_, value)| decode(value));
        let first = parameters.next().transpose()?.unwrap_or_default();
        let second = parameters.next().transpose()?.unwrap_or_default();
        let route = found.value.methods.iter().find(|(known, route)| {
            known == method
                || (method == Method::HEAD
                    && known == Method::GET
                    && !matches!(*route, Route::Events | Route::Acp | Route::ReturnEvents))
        });
        match route {
            Some(&(_, route)) => Ok(Matched { route, first, second }),
            None => Err(Refusal { allow: Some(found.value.allow), ..unknown(method, path) }),
        }
    }
}

fn decode(segment: &str) -> Result<Cow<'_, str>, Refusal> {
    let bytes = segment.as_bytes();
    let whole = |at: usize| bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    let escapes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let sound = escapes.map(|(at, _)| at).all(whole);
    let decoded = percent_decode_str(segment).decode_utf8();
    match decoded {
        Ok(text) if sound => Ok(text),
        _ => Err(Refusal::bad_request("invalid_request", "Malformed URL encoding")),
    }
}

fn unknown(method: &Method, path: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "route_not_found", format!("Cannot {method} {path}"))
}

/// Every route as `METHOD path`, for whoever compares.
#[cfg(test)]
pub(crate) fn routes() -> impl Iterator<Item = String> {
    TABLE.iter().flat_map(|entry| entry.methods.iter().map(|(method, _)| format!("{method} {}", entry.path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks `METHOD path`; the route with its parameters, or the status and code.
    fn check(line: &str, expected: &str) {
        let (method, path) = line.split_once(' ').unwrap();
        let router = Router::new().unwrap();
        let got = match router.find(&Method::from_bytes(method.as_bytes()).unwrap(), path) {
            Ok(matched) => format!("{:?} {} {}", matched.route, matched.id(), matched.second()),
            Err(refusal) => format!("{} {}", refusal.status.as_u16(), refusal.code),
        };
        assert_eq!(got.trim_end(), expected, "{line}");
    }

    #[test]
    fn paths_find_their_routes() {
        check("GET /health", "Health");
        check("HEAD /health", "Health");
        check("GET /health/", "Health");
        check("GET /acp", "Acp");
        check("POST /session", "CreateSession");
        check("DELETE /session/abc", "CloseSession abc");
        check("GET /session/abc/turns/current", "CurrentTurn abc");
        check("GET /session/abc/turns/p-1", "Turn abc p-1");
        check("HEAD /session/abc/turns/p-1/result", "TurnResult abc p-1");
        check("GET /session/abc/turns/result", "Turn abc result");
        check("POST /session/abc/permission/r", "SessionVote abc r");
        check("POST /permission/r", "Vote r");
        check("DELETE /return-requests/webhooks/ops/secrets/former", "EndWebhookSecret ops former");
        check("GET /workspace/%2Fws/sessions", "Sessions /ws");
        check("GET /workspaces/0c65a812b078db67/sessions/live-state", "LiveState 0c65a812b078db67");
    }

    #[test]
    fn parameters_are_decoded_once() {
        check("GET /session/a%2Fb/status", "Status a/b");
        check("GET /session/a%252Fb/status", "Status a%2Fb");
        check("GET /session/%C3%BC/status", "Status ü");
    }

    #[test]
    fn escapes_that_do_not_decode_are_a_client_error() {
        for path in
            ["/session/%E0%A4%A/status", "/session/%zz/status", "/session/%/status", "/session/%ff/status", "/%zz"]
        {
            check(&format!("GET {path}"), "400 invalid_request");
        }
    }

    #[test]
    fn what_is_not_there_is_said_in_json() {
        check("GET /nope", "404 route_not_found");
        check("GET /session/abc/nope", "404 route_not_found");
        check("GET /", "404 route_not_found");
        check("PUT /session/abc", "404 route_not_found");
        check("GET /session/abc", "404 route_not_found");
        check("HEAD /session/abc/events", "404 route_not_found");
        check("HEAD /acp", "404 route_not_found");
    }
}
