//! What stands before every route: Host allow-list, Origin wall, preflight, bearer token; in the order of the wire rules, section 1.1.
//! Nothing of a request but its head has been looked at when it is stopped here.

use std::net::SocketAddr;

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use crate::refusal::Refusal;
use crate::reply::{Reply, no_content, refuse};
use crate::returns::refusal::told;
use crate::token::Token;

/// The names under which a browser or a container reaches a loopback bind.
const SELF_NAMES: [&str; 4] = ["127.0.0.1", "localhost", "[::1]", "host.docker.internal"];

/// Where a browser says whose page sends a request (Fetch Metadata).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

const ALLOW_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PATCH, DELETE, OPTIONS");
const ALLOW_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Idempotency-Key, X-Qwen-Client-Id, Last-Event-ID, X-Qwen-Event-Epoch",
);
const EXPOSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "Retry-After, X-Qwen-Event-Epoch, X-Qwen-SSE-Stream-Id, Accept-Ranges, Content-Range, ETag, Repr-Digest, Turnd-No-Text, \
     Turnd-Partial, Turnd-Truncated",
);
const MAX_AGE: HeaderValue = HeaderValue::from_static("86400");

/// The rules of one listening address.
#[derive(Debug)]
pub(crate) struct Wall {
    /// `name:port` of every way to call this listener itself.
    self_hosts: Vec<String>,
    /// Names that may come without a port, when the port is the scheme's own.
    bare_names: Vec<String>,
    loopback: bool,
    allow_origins: Vec<String>,
    token: Option<Token>,
    /// Whether `/health` needs the token too.
    require_auth: bool,
}

/// What became of a request at the wall.
#[derive(Debug)]
pub(crate) enum Passage {
    /// Go on. The origin is set when the answer must carry the headers that let a browser read it.
    Pass(Option<HeaderValue>),
    /// Answered here.
    Stop(Reply),
}

impl Wall {
    /// The wall of a listener bound to `address`.
    pub(crate) fn new(address: SocketAddr, allow_origins: &[String], token: Option<Token>, require_auth: bool) -> Self {
        let port = address.port();
        let bound = match address {
            SocketAddr::V4(v4) => v4.ip().to_string(),
            SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
        };
        let names: Vec<String> = SELF_NAMES.iter().map(|name| (*name).to_owned()).chain([bound]).collect();
        let self_hosts = names.iter().map(|name| format!("{name}:{port}")).collect();
        let bare_names = if matches!(port, 80 | 443) { names } else { Vec::new() };
        Self {
            self_hosts,
            bare_names,
            loopback: address.ip().is_loopback(),
            allow_origins: allow_origins
                .iter()
                .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
                .collect(),
            token,
            require_auth,
        }
    }

    /// Whether a request with this head may reach the routes.
    pub(crate) fn check(&self, head: &Parts) -> Passage {
        let (method, path, headers) = (&head.method, head.uri.path(), &head.headers);
        if !self.is_meant(head) {
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "host_not_allowed", "Invalid Host header");
            return Passage::Stop(refuse(&told(head, refusal)));
        }
        let Ok(origin) = self.origin(headers) else { return Passage::Stop(foreign_origin(head)) };
        if let Some(origin) = &origin
            && method == Method::OPTIONS
            && is_preflight(headers)
        {
            let mut reply = no_content();
            mark_allowed(reply.headers_mut(), origin);
            return Passage::Stop(reply);
        }
        let open = path == "/health" && self.loopback && !self.require_auth;
        if open || self.authorized(headers) {
            return Passage::Pass(origin);
        }
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized");
        let mut reply = refuse(&told(head, refusal));
        if let Some(origin) = &origin {
            mark_allowed(reply.headers_mut(), origin);
        }
        Passage::Stop(reply)
    }

    /// Whether the request means this listener. A target that names a host itself must name the one of the `Host` header: two
    /// readers of the request could otherwise take it for two different ones. A loopback bind answers to its own names only, so
    /// that no name of a stranger, pointed at this machine, opens it to his page.
    fn is_meant(&self, head: &Parts) -> bool {
        let mut values = head.headers.get_all(HOST).iter();
        let host = match (values.next(), values.next()) {
            (None, _) => None,
            (Some(value), None) => match value.to_str() {
                Ok(text) => Some(text),
                Err(_) => return false,
            },
            (Some(_), Some(_)) => return false,
        };
        let named = head.uri.authority().map(|authority| authority.as_str());
        if named.is_some_and(|named| !host.is_some_and(|host| named.eq_ignore_ascii_case(host))) {
            return false;
        }
        let mut own = self.self_hosts.iter().chain(&self.bare_names);
        !self.loopback || host.is_some_and(|host| own.any(|name| name.eq_ignore_ascii_case(host)))
    }

    /// The allowed foreign origin of a request, none for our own and for callers that are no browsers.
    fn origin(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, ()> {
        let mut values = headers.get_all(ORIGIN).iter();
        let Some(origin) = values.next() else {
            // Pages reach us without an origin too, by a picture or a link; the browser says then whose page it is.
            return if is_from_elsewhere(headers) { Err(()) } else { Ok(None) };
        };
        if values.next().is_some() {
            return Err(());
        }
        let text = origin.to_str().map_err(|_| ())?.to_ascii_lowercase();
        if self.is_self(&text) {
            return Ok(None);
        }
        if self.allow_origins.contains(&text) { Ok(Some(origin.clone())) } else { Err(()) }
    }

    fn is_self(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        host.is_some_and(|host| self.self_hosts.iter().chain(&self.bare_names).any(|name| name == host))
    }

    fn authorized(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        bearer(value.as_bytes()).is_some_and(|given| token.is(given))
    }
}

/// The token of an `Authorization: Bearer` value. The scheme's case is free, and so is the white space behind it.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(6)?;
    let token = rest.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer") && matches!(rest.first(), Some(b' ' | b'\t')) && !token.is_empty())
        .then_some(token)
}

/// Whether a browser says that a page of another origin has it send this.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    headers.get_all(FETCH_SITE).iter().any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
}

fn is_preflight(headers: &HeaderMap) -> bool {
    headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) || headers.contains_key(ACCESS_CONTROL_REQUEST_HEADERS)
}

fn foreign_origin(head: &Parts) -> Reply {
    let refusal = Refusal::new(StatusCode::FORBIDDEN, "origin_not_allowed", "Request denied by CORS policy");
    let mut reply = refuse(&told(head, refusal));
    reply.headers_mut().insert(VARY, HeaderValue::from_static("Origin"));
    reply
}

/// Lets a page of `origin` read the answer.
pub(crate) fn mark_allowed(headers: &mut HeaderMap, origin: &HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(VARY, HeaderValue::from_static("Origin"));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, ALLOW_METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOW_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSE_HEADERS);
}

#[cfg(test)]
mod tests;
