//! `turnd request store`: the files of a daemon that is stopped.

use std::fs;
use std::path::{Path, PathBuf};

use request::store::{OpenError, Rescue, StoreError, export, recover, reset, verify};
use serde_json::json;
use transcript::layout;

use crate::cli::{ExportArgs, PlaceArgs, RecoverArgs, StoreArgs, StoreCommand, TranscriptMode};
use crate::commands::explain::now_ms;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::store::default_for;

/// The folder of the store, beside the sessions of the daemon's primary workspace.
const FOLDER: &str = "turnd-requests";
/// The database in it.
const DATABASE: &str = "requests.db";

/// Does one of the commands.
pub(super) fn run(args: &StoreArgs) -> Result<Exit, Failure> {
    match &args.command {
        StoreCommand::Verify(args) => verified(&folder(&args.place)?),
        StoreCommand::Export(args) => exported(&folder(&args.place)?, args),
        StoreCommand::Recover(args) => recovered(&folder(&args.place)?, args),
    }
}

/// Where the store lies; there has to be something.
fn folder(place: &PlaceArgs) -> Result<PathBuf, Failure> {
    let store = place.store.clone().unwrap_or_else(|| default_for(TranscriptMode::Recorded));
    let named = place.workspace.as_deref().unwrap_or(Path::new("."));
    let workspace = named
        .canonicalize()
        .map_err(|error| Failure::new(Exit::Usage, format!("cannot use the workspace {}: {error}", named.display())))?;
    let folder = layout::chats_dir(&store, &workspace).with_file_name(FOLDER);
    if folder.is_dir() {
        return Ok(folder);
    }
    let text = format!("there is no request store at {}; --store and --workspace say where to look", folder.display());
    Err(Failure::new(Exit::NotFound, text))
}

/// The database has to be there to be looked at: looking would make one.
fn database(folder: &Path) -> Result<(), Failure> {
    if folder.join(DATABASE).exists() {
        return Ok(());
    }
    let text = format!("there is no {DATABASE} in {}; what was put aside there can be recovered", folder.display());
    Err(Failure::new(Exit::NotFound, text))
}

fn verified(folder: &Path) -> Result<Exit, Failure> {
    database(folder)?;
    let report = verify(folder).map_err(unusable)?;
    let (violations, notes, is_sound) = (&report.violations, &report.notes, report.violations.is_empty());
    output::line(json!({
        "v": 1, "sound": is_sound, "violations": violations, "notes": notes, "requests": report.requests,
        "events": report.events, "tombstones": report.tombstones, "head": report.head, "folder": folder.display().to_string(),
    }))?;
    if is_sound {
        return Ok(Exit::Done);
    }
    let count = violations.len();
    Err(Failure::new(Exit::Store, format!("store_corrupt: {count} of what must hold does not")))
}

fn exported(folder: &Path, args: &ExportArgs) -> Result<Exit, Failure> {
    database(folder)?;
    let target = std::path::absolute(&args.path).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    if fs::symlink_metadata(&target).is_ok() {
        return Err(Failure::new(Exit::Usage, format!("there is something at {} already", target.display())));
    }
    export(folder, &target, now_ms()).map_err(unusable)?;
    let (from, to) = (folder.display().to_string(), target.display().to_string());
    output::line(json!({"v": 1, "exported": to, "closed": from}))?;
    Ok(Exit::Done)
}

fn recovered(folder: &Path, args: &RecoverArgs) -> Result<Exit, Failure> {
    if !args.anyway && folder.join(DATABASE).exists() && is_sound(folder)? {
        if verify(folder).is_ok_and(|report| report.is_exported) {
            return Err(unusable(OpenError::Exported).and("--anyway makes another stream of it all the same"));
        }
        let text = "the store is sound, and would become another stream for nothing; --anyway does it all the same";
        return Err(Failure::new(Exit::Rejected, text));
    }
    let rescue = if args.empty { reset } else { recover };
    let rescue = rescue(folder, args.above, now_ms()).map_err(unusable)?;
    let Rescue { stream_id, after, head, kept, reduced, ended, outcomes, is_damaged, .. } = &rescue;
    output::line(json!({
        "v": 1, "stream_id": stream_id, "after": after, "head": head, "kept": kept, "reduced": reduced, "ended": ended,
        "outcomes": outcomes, "damaged": is_damaged, "unreadable": rescue.is_unreadable,
        "numbers_known": rescue.is_number_known, "files": rescue.files.display().to_string(),
    }))?;
    match lost(&rescue, args.empty) {
        None => Ok(Exit::Done),
        Some(text) => Err(Failure::new(Exit::Lost, text)),
    }
}

/// Whether everything holds. A disk without room and a file that somebody else has say nothing about it.
fn is_sound(folder: &Path) -> Result<bool, Failure> {
    match verify(folder) {
        Ok(report) => Ok(report.violations.is_empty()),
        Err(error @ OpenError::Store(StoreError::Full | StoreError::Busy)) => Err(unusable(error)),
        Err(_) => Ok(false),
    }
}

/// What a store that was made anew has not of the old one, besides what its operator wanted it to forget; in words for one line.
fn lost(rescue: &Rescue, is_empty: bool) -> Option<String> {
    let mut words = Vec::new();
    if rescue.is_unreadable && !is_empty {
        words.push(match rescue.outcomes {
            0 => "nothing of the old store could be read, and no outcome lay beside it".to_owned(),
            many => format!("nothing of the old store could be read; {many} outcomes lay beside it and are kept"),
        });
    } else if rescue.is_damaged && !is_empty {
        let Rescue { kept, reduced, ended, .. } = rescue;
        words.push(format!(
            "not all of the old store could be read: {kept} ended requests are whole, of {reduced} only the end is known, \
             {ended} that were open have ended"
        ));
    }
    if rescue.is_damaged && !is_empty {
        words.push("ids that are forgotten may be sent again, unless they are UUIDs of version 7".to_owned());
    }
    if !rescue.is_number_known {
        words.push("nothing tells how far its numbers went; --above sets it, the new stream has its own id".to_owned());
    }
    (!words.is_empty()).then(|| format!("store_lost: {}", words.join("; ")))
}

/// Why the store cannot be used, with a code as the daemon's own are.
fn unusable(error: OpenError) -> Failure {
    let code = match error {
        OpenError::Locked => "store_locked",
        OpenError::Corrupt { .. } => "store_corrupt",
        OpenError::Exported => "store_exported",
        OpenError::Newer { .. } => "store_newer",
        OpenError::UnknownVersion { .. } => "store_version_unknown",
        OpenError::Foreign => "store_foreign",
        _ => "store_unavailable",
    };
    Failure::new(Exit::Store, format!("{code}: {error}"))
}
