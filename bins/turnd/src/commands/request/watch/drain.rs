//! A watch that ends where the stream does. It reads whole pages, because the end of a stream of lines proves nothing: a daemon that cannot
//! go on, or that waited too long for a reader, ends it just as one that has told everything. A page says how far it goes.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::value::RawValue;

use super::{Position, print, refused, target};
use crate::cli::WatchArgs;
use crate::client::Client;
use crate::commands::request::one_line;
use crate::exit::{Exit, Failure};

/// Events a page; a daemon cuts it where its bytes grow too many.
const PAGE_EVENTS: usize = 1_000;

/// Prints everything up to what is the end when the first page is read.
pub(super) async fn run(client: &mut Client, args: &WatchArgs, mut position: Position) -> Result<Exit, Failure> {
    if let Some(answer) = refused(client, args).await? {
        return Err(Failure::refused(&answer));
    }
    let mut head = None;
    loop {
        let path = format!("{}&limit={PAGE_EVENTS}", target(args, &position));
        let answer = client.ask(Method::GET, &path, None).await.outcome?;
        if !answer.is_success() {
            return Err(Failure::refused(&answer));
        }
        let unusable = || Failure::new(Exit::Failed, format!("unexpected answer: {path} is no page of events"));
        let page = Page::of(&answer.body).ok_or_else(unusable)?;
        let (head, before) = (*head.get_or_insert(page.head), position.number());
        for event in &page.events {
            print(&one_line(event.get().as_bytes()), &mut position)?;
        }
        if page.next_after >= head {
            return Ok(Exit::Done);
        }
        // A page that does not lead on would be read for ever.
        if page.next_after <= before || page.next_after < position.number() {
            return Err(unusable());
        }
        position.pass(page.next_after, page.next_cursor);
    }
}

/// A page of the stream.
#[derive(Debug)]
pub(super) struct Page {
    /// The events, byte for byte.
    pub(super) events: Vec<Box<RawValue>>,
    /// How far the page goes; a filter may have left out all of it.
    pub(super) next_after: u64,
    pub(super) next_cursor: Option<String>,
    /// How far the stream goes.
    head: u64,
}

impl Page {
    pub(super) fn of(body: &[u8]) -> Option<Self> {
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).ok()?;
        let number = |key| serde_json::from_str(fields.get(key)?.get()).ok();
        Some(Self {
            events: serde_json::from_str(fields.get("events")?.get()).ok()?,
            next_after: number("next_after")?,
            next_cursor: fields.get("next_cursor").and_then(|cursor| serde_json::from_str(cursor.get()).ok()?),
            head: number("head")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_how_far_it_goes_or_is_none() {
        let whole = r#"{"events":[{"b":1, "a":2}],"next_after":7,"next_cursor":"c.7","oldest":1,"head":9}"#;
        let page = Page::of(whole.as_bytes()).unwrap();
        assert_eq!(page.events[0].get(), r#"{"b":1, "a":2}"#);
        assert_eq!((page.next_after, page.next_cursor.as_deref(), page.head), (7, Some("c.7"), 9));
        for missing in ["events", "next_after", "head"] {
            let without = whole.replace(&format!("\"{missing}\""), "\"other\"");
            assert!(Page::of(without.as_bytes()).is_none(), "{without}");
        }
        let page = Page::of(whole.replace("\"c.7\"", "null").as_bytes()).unwrap();
        assert_eq!(page.next_cursor, None, "a number goes on as well");
    }
}
