//! `GET /session/:id/transcript`: the history of a session, live or not, page by page (wire rules, section 13.8).

use std::sync::Arc;

use serde_json::json;
use transcript::PageError;
use transcript::pages::{Direction, Page, PageRequest, dates, page};

use crate::clock::iso;
use crate::dispatch::Call;
use crate::history;
use crate::identity::is_file_id;
use crate::limits::{HISTORY_PAGE_MAX, TRANSCRIPT_PAGE_DEFAULT};
use crate::pieces::ok_with;
use crate::query;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::tasks::blocking;
use crate::wire::page_frame;
use crate::workspace::Workspace;

pub(crate) async fn get(call: &Call<'_>) -> Result<Reply, Refusal> {
    call.client_id()?;
    let asked = Asked::of(call)?;
    let (workspace, session) = (Arc::clone(call.workspace), call.session_id());
    let begun_ms = workspace.bridge.session(&session).map(|session| session.created_at_ms());
    if begun_ms.is_none() && !is_file_id(&session) {
        return Err(Refusal::session_not_found(&session));
    }
    let id = session.clone();
    let read = move || {
        // A live session may have no file yet; one that is not is known by its file.
        if begun_ms.is_none() {
            history::check(&workspace, &id)?;
        }
        asked.read(&workspace, &id)
    };
    let (page, dates) = blocking(read).await.ok_or_else(Refusal::internal)??;
    let (start_ms, updated_ms) = dates.or(begun_ms.map(|at_ms| (at_ms, at_ms))).unwrap_or_default();
    let mut head = json!({
        "v": 1,
        "sessionId": session,
        "hasMore": page.has_more(),
        "startTime": iso(start_ms),
        "lastUpdated": iso(updated_ms),
    });
    if let Some(cursor) = &page.next_cursor {
        head["nextCursor"] = call.workspace.cursors.sealed(&session, cursor).into();
    }
    let events = page.frames.into_iter().map(|frame| page_frame(&frame.update).into()).collect();
    Ok(ok_with(&head, [("events", events)]))
}

/// What page is asked for.
struct Asked {
    direction: Direction,
    records_max: usize,
    cursor: Option<String>,
}

impl Asked {
    fn of(call: &Call<'_>) -> Result<Self, Refusal> {
        let value = |key| query::value(call.head.uri.query(), key);
        let records_max = match value("limit") {
            None => TRANSCRIPT_PAGE_DEFAULT,
            Some(text) => limit(&text).ok_or_else(invalid_limit)?,
        };
        let direction = match value("direction").as_deref() {
            None | Some("forward") => Direction::Forward,
            Some("backward") => Direction::Backward,
            Some(_) => {
                let message = "`direction` must be `forward` or `backward`";
                return Err(Refusal::bad_request("invalid_request", message));
            }
        };
        let session = call.session_id();
        let cursor = match value("cursor") {
            None => None,
            Some(text) => match call.workspace.cursors.opened(&session, &text) {
                Some(cursor) => Some(cursor.to_owned()),
                None => return Err(Refusal::of_transcript(&session, &PageError::InvalidCursor)),
            },
        };
        Ok(Self { direction, records_max, cursor })
    }

    /// Reads the page, and when the session was begun and written to last, if it was.
    fn read(&self, workspace: &Workspace, session: &str) -> Result<(Page, Option<(u64, u64)>), Refusal> {
        let path = workspace.layout.transcript(session);
        let request =
            PageRequest { direction: self.direction, records_max: self.records_max, cursor: self.cursor.as_deref() };
        let read = page(&path, request).and_then(|page| Ok((page, dates(&path)?)));
        read.map_err(|error| {
            tracing::warn!(session, %error, "transcript cannot be paged");
            Refusal::of_transcript(session, &error)
        })
    }
}

/// A number of records in plain digits.
fn limit(text: &str) -> Option<usize> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let records = text.parse::<u64>().ok().filter(|_| is_plain)?;
    usize::try_from(records).ok().filter(|_| (1..=HISTORY_PAGE_MAX).contains(&records))
}

fn invalid_limit() -> Refusal {
    Refusal::bad_request("invalid_transcript_limit", "`limit` must be between 1 and 500")
        .with("maxLimit", HISTORY_PAGE_MAX)
}
