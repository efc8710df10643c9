//! The sessions of one workspace as a list shows them: those on disk and those alive, newest first, page by page.
//!
//! The order of a walk is fixed when it begins (`walks.rs`), since a session that is used meanwhile would otherwise move past the reader
//! and be missed. What a page says of a session is looked up when the page is made. Everything here that reads files blocks.

mod cursor;
mod fill;
mod folder;
mod headlines;
mod paging;
#[cfg(test)]
mod properties;
mod row;
mod version;
mod walks;

use std::io;
use std::sync::{Arc, Mutex};

use bridge::Session;
use transcript::Headline;

use crate::clock::now_ms;
use crate::limits::{LIST_LOOKS_MAX, LIST_ROWS_MAX};
use crate::sidecar::Place;
use crate::sync::lock;
use crate::workspace::Workspace;
pub(crate) use cursor::Cursor;
use fill::Bounds;
use headlines::{Headlines, Stored};
use paging::{Asked, page};
use row::{Row, merged};
use version::Version;
pub(crate) use version::{CatalogVersion, Seen};
use walks::Walks;

/// What a page is to hold.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) place: Place,
    /// Sessions a page.
    pub(crate) size: usize,
    /// Where the page before ended.
    pub(crate) cursor: Option<Cursor>,
    pub(crate) filter: Filter,
}

/// Which sessions count. What is none asks for nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) parent_session_id: Option<String>,
    pub(crate) source_type: Option<String>,
    pub(crate) source_id: Option<String>,
    /// Nothing counts.
    pub(crate) is_none: bool,
}

impl Filter {
    /// Whether a session counts of which this is known.
    fn admits(&self, headline: Option<&Headline>) -> bool {
        let of = |of: fn(&Headline) -> &Option<String>| headline.and_then(|headline| of(headline).as_deref());
        let fits =
            |wanted: &Option<String>, is: Option<&str>| wanted.as_deref().is_none_or(|wanted| is == Some(wanted));
        let source = of(|headline| &headline.source_type);
        let is_of_source = match self.source_type.as_deref() {
            // Sessions that nobody signed are the peer's own, and so are those of its live view.
            Some("default") => matches!(source, None | Some("default" | "qwen-live")),
            _ => fits(&self.source_type, source),
        };
        !self.is_none
            && is_of_source
            && fits(&self.source_id, of(|headline| &headline.source_id))
            && fits(&self.parent_session_id, of(|headline| &headline.parent_session_id))
    }
}

/// One session of a page.
pub(crate) struct Entry {
    pub(crate) id: Arc<str>,
    /// The live session.
    pub(crate) live: Option<Session>,
    /// What its transcript says.
    pub(crate) headline: Option<Arc<Headline>>,
    /// When its transcript was written to last, in epoch milliseconds.
    pub(crate) written_at_ms: Option<u64>,
}

/// One page of a list.
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    /// Where the next one begins, if there may be one.
    pub(crate) next: Option<Cursor>,
    /// Whether it holds less than was asked for, although there may be more.
    pub(crate) is_truncated: bool,
}

/// What is remembered between the pages of a workspace's lists.
#[derive(Default)]
pub(crate) struct Catalog {
    walks: Mutex<Walks>,
    headlines: Mutex<Headlines>,
    version: Mutex<Version>,
}

impl Catalog {
    /// The version of the catalog as it is now; it rises whenever what a list shows may have changed.
    ///
    /// # Errors
    /// When a folder is there and cannot be looked at.
    pub(crate) fn version(&self, workspace: &Workspace) -> io::Result<CatalogVersion> {
        let mut live: Vec<_> = workspace.bridge.sessions();
        live.sort_by(|one, other| one.id().cmp(other.id()));
        let named = |session: &Session| (session.id().to_owned(), session.status().title);
        let changed = |folder| folder::changed_at_ms(folder);
        let seen = Seen {
            active_ms: changed(&workspace.layout.folder(Place::Active))?,
            archived_ms: changed(&workspace.layout.folder(Place::Archived))?,
            live: live.iter().map(named).collect(),
        };
        Ok(lock(&self.version).observe(seen, now_ms()))
    }

    /// What the records of a session say of it; none when there are none.
    pub(crate) fn headline(&self, workspace: &Workspace, session: &str) -> Option<Arc<Headline>> {
        headlines::stored(&self.headlines, &workspace.layout.transcript(session)).map(|stored| stored.headline)
    }

    /// One page.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn page(&self, workspace: &Workspace, wanted: &Wanted) -> io::Result<Page> {
        let bounds = Bounds { size: wanted.size, looks_max: LIST_LOOKS_MAX };
        let asked = Asked { place: wanted.place, cursor: wanted.cursor.as_ref(), bounds };
        let (filled, next) =
            page(&self.walks, &asked, || rows(workspace, wanted.place), |row| self.look(workspace, wanted, row))?;
        Ok(Page { entries: filled.entries, next, is_truncated: filled.is_truncated })
    }

    /// What there is to say of a session now; none when it is gone, another workspace's, or does not count.
    fn look(&self, workspace: &Workspace, wanted: &Wanted, row: &Row) -> Option<Entry> {
        let path = workspace.layout.transcript_in(wanted.place, &row.id);
        let stored = headlines::stored(&self.headlines, &path);
        let stored = stored.filter(|stored| stored.headline.belongs(&row.id, &workspace.folder));
        let live = (wanted.place == Place::Active).then(|| workspace.bridge.session(&row.id)).flatten();
        let (headline, written_at_ms) = match stored {
            Some(Stored { headline, written_at_ms }) => (Some(headline), Some(written_at_ms)),
            None => (None, None),
        };
        let counts = (live.is_some() || headline.is_some()) && wanted.filter.admits(headline.as_deref());
        counts.then(|| Entry { id: Arc::clone(&row.id), live, headline, written_at_ms })
    }
}

/// The rows of a list that begins now.
fn rows(workspace: &Workspace, place: Place) -> io::Result<Vec<Row>> {
    // What lives is not put away.
    let live = if place == Place::Active { workspace.bridge.sessions() } else { Vec::new() };
    let row = |session: &Session| {
        let status = session.status();
        Row { id: session.id().into(), at_ms: status.updated_at_ms.unwrap_or(status.created_at_ms) }
    };
    Ok(merged(folder::rows(&workspace.layout.folder(place))?, live.iter().map(row).collect(), LIST_ROWS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_asks_for_what_it_names_and_for_nothing_else() {
        let some = |text: &str| Some(text.to_owned());
        let of = |kind: Option<&str>, id: Option<&str>, parent: Option<&str>| Headline {
            source_type: kind.map(str::to_owned),
            source_id: id.map(str::to_owned),
            parent_session_id: parent.map(str::to_owned),
            ..Headline::default()
        };
        let bot = Filter { source_type: some("bot"), ..Filter::default() };
        let seven = Filter { source_id: some("7"), ..Filter { source_type: some("bot"), ..Filter::default() } };
        let default = Filter { source_type: some("default"), ..Filter::default() };
        let child = Filter { parent_session_id: some("up"), ..Filter::default() };
        let nothing = Filter { is_none: true, ..Filter::default() };
        for (filter, headline, expected) in [
            (&Filter::default(), of(Some("bot"), None, Some("up")), true),
            (&bot, of(Some("bot"), Some("7"), None), true),
            (&bot, of(Some("cli"), None, None), false),
            (&bot, of(None, None, None), false),
            (&seven, of(Some("bot"), Some("7"), None), true),
            (&seven, of(Some("bot"), Some("8"), None), false),
            (&default, of(None, None, None), true),
            (&default, of(Some("qwen-live"), None, None), true),
            (&default, of(Some("bot"), None, None), false),
            (&child, of(None, None, Some("up")), true),
            (&child, of(None, None, None), false),
            (&nothing, of(None, None, None), false),
        ] {
            assert_eq!(filter.admits(Some(&headline)), expected, "{filter:?} {headline:?}");
        }
        assert!(Filter::default().admits(None) && default.admits(None) && !child.admits(None));
    }
}
