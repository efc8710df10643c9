//! How many requests one caller may send: a bucket for each caller and tier, off unless asked for (wire rules, section 5.1).
//!
//! [`Buckets`] is told the time and decides; [`Gate`] knows requests, and the clock.

use std::collections::HashMap;
use std::sync::Mutex;

use hyper::header::{HeaderName, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use crate::caller::Caller;
use crate::clock::now_ms;
use crate::dispatch::CLIENT_ID;
use crate::identity::client_id;
use crate::limits::{RATE_KEYS_MAX, RATE_SWEEP_MS};
use crate::refusal::Refusal;
use crate::reply::{Reply, refuse};
use crate::returns::refusal::told;
use crate::sync::lock;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// What one caller may send within a window. All counts are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Admissions.
    pub prompt: u32,
    /// Whatever else changes something.
    pub mutation: u32,
    /// Whatever changes nothing.
    pub read: u32,
    /// The window, in milliseconds; at least 1. An empty bucket is full again after it.
    pub window_ms: u64,
}

/// What a request is counted as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Tier {
    Prompt,
    Mutation,
    Read,
}

impl Tier {
    fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Mutation => "mutation",
            Self::Read => "read",
        }
    }

    /// The tier of a request; none for one that is never counted: a preflight, a look at the health, a heartbeat, and an event
    /// stream or an editor's connection, which are long and not often (wire rules, section 5.1).
    fn of(method: &Method, path: &str) -> Option<Self> {
        let route = path.strip_suffix('/').unwrap_or(path);
        let last = route.strip_prefix("/session/").and_then(|rest| rest.split_once('/')).map(|(_, last)| last);
        let reads = method == Method::GET || method == Method::HEAD;
        match last {
            _ if method == Method::OPTIONS || reads && matches!(route, "/health" | "/acp") => None,
            Some("events") if reads => None,
            Some("heartbeat") if method == Method::POST => None,
            Some("prompt" | "return-requests") if method == Method::POST => Some(Self::Prompt),
            _ => Some(if reads { Self::Read } else { Self::Mutation }),
        }
    }
}

/// A request too many.
#[derive(Debug, PartialEq, Eq)]
struct Spent {
    limit: u32,
    /// When there is room for one again, in milliseconds from now.
    retry_after_ms: u64,
}

/// The buckets of all callers. A bucket is the moment at which it is full again: each request moves it by what it
/// takes to flow back, and none may move it further away than a window.
#[derive(Debug)]
struct Buckets {
    rates: Rates,
    keys_max: usize,
    /// Microseconds since the epoch.
    full_at: HashMap<(String, Tier), u64>,
    /// When full buckets are looked for again, in the same unit.
    sweep_at: u64,
    hits: u64,
}

impl Buckets {
    fn new(rates: Rates, keys_max: usize) -> Self {
        Self { rates, keys_max, full_at: HashMap::new(), sweep_at: 0, hits: 0 }
    }

    /// Takes one request from the bucket of `key`.
    fn take(&mut self, key: String, tier: Tier, now_ms: u64) -> Result<(), Spent> {
        let (now, window) = (now_ms.saturating_mul(1000), self.rates.window_ms.saturating_mul(1000));
        let limit = match tier {
            Tier::Prompt => self.rates.prompt,
            Tier::Mutation => self.rates.mutation,
            Tier::Read => self.rates.read,
        };
        let latest = now.saturating_add(window);
        let key = self.place(key, tier, now);
        let full_at = self.full_at.entry(key).or_insert(now);
        // A clock that was set back must not keep anybody out for longer than a window.
        *full_at = (*full_at).clamp(now, latest);
        let moved = full_at.saturating_add(window / u64::from(limit.max(1)));
        if moved <= latest {
            *full_at = moved;
            return Ok(());
        }
        self.hits += 1;
        Err(Spent { limit, retry_after_ms: (moved - latest).div_ceil(1000) })
    }

    /// The bucket that `key` has. Where there are as many as may be, all who come new share one: nobody is kept out by their number,
    /// and nobody gets around his limit by it.
    fn place(&mut self, key: String, tier: Tier, now: u64) -> (String, Tier) {
        let key = (key, tier);
        if self.full_at.len() < self.keys_max || self.full_at.contains_key(&key) {
            return key;
        }
        if now >= self.sweep_at {
            self.full_at.retain(|_, full_at| *full_at > now);
            self.sweep_at = now.saturating_add(RATE_SWEEP_MS * 1000);
        }
        if self.full_at.len() < self.keys_max { key } else { (String::new(), tier) }
    }
}

/// Counts requests, where that is wanted.
#[derive(Debug)]
pub(crate) struct Gate {
    buckets: Option<Mutex<Buckets>>,
    /// Whether only this machine can call: then callers are told apart by what they call themselves.
    loopback: bool,
}

impl Gate {
    pub(crate) fn new(rates: Option<Rates>, loopback: bool) -> Self {
        Self { buckets: rates.map(|rates| Mutex::new(Buckets::new(rates, RATE_KEYS_MAX))), loopback }
    }

    /// The answer to a request that is one too many.
    pub(crate) fn stop(&self, head: &Parts) -> Option<Reply> {
        let buckets = self.buckets.as_ref()?;
        let tier = Tier::of(&head.method, head.uri.path())?;
        let now = now_ms();
        let spent = lock(buckets).take(self.key(head), tier, now).err()?;
        Some(too_many(head, tier, &spent, now))
    }

    /// How many requests were too many; none where nothing is counted.
    pub(crate) fn hits(&self) -> Option<u64> {
        self.buckets.as_ref().map(|buckets| lock(buckets).hits)
    }

    /// Who calls. An address of others counts alone: a client's id is his own word, and another word would be another budget.
    fn key(&self, head: &Parts) -> String {
        if self.loopback {
            let header = head.headers.get(CLIENT_ID).map(|value| value.as_bytes());
            return match client_id(header) {
                Ok(Some(id)) => format!("cid:{id}"),
                _ => "anonymous".to_owned(),
            };
        }
        head.extensions.get::<Caller>().and_then(|caller| caller.neighbourhood()).unwrap_or_default()
    }
}

fn too_many(head: &Parts, tier: Tier, spent: &Spent, now_ms: u64) -> Reply {
    let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", "Rate limit exceeded")
        .with("tier", tier.as_str())
        .with("retryAfterMs", spent.retry_after_ms);
    let mut reply = refuse(&told(head, refusal));
    let headers = reply.headers_mut();
    headers.insert(RETRY_AFTER, spent.retry_after_ms.div_ceil(1000).into());
    headers.insert(LIMIT, spent.limit.into());
    headers.insert(REMAINING, HeaderValue::from_static("0"));
    headers.insert(RESET, now_ms.saturating_add(spent.retry_after_ms).div_ceil(1000).into());
    reply
}

#[cfg(test)]
mod tests;
