//! Fields that several bodies share, and what is wrong with them.

use std::path::{Path, PathBuf};

use bridge::Source;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::body::{Fields, text};
use crate::limits::{CWD_BYTES_MAX, SOURCE_ID_CHARS_MAX};
use crate::refusal::Refusal;

/// The approval modes of the wire rules, section 6.1.
pub(crate) const APPROVAL_MODES: [&str; 5] = ["plan", "default", "auto-edit", "auto", "yolo"];

/// Most characters of a source type.
const SOURCE_CHARS_MAX: usize = 64;

/// The source that only the peer's daemon itself may use.
const RESERVED_SOURCE: &str = "standalone";

/// A `cwd`, if there is one.
///
/// # Errors
/// 400 when it is no absolute path.
pub(crate) fn cwd(fields: &Fields<'_>) -> Result<Option<String>, Refusal> {
    let invalid = |message: &'static str| Refusal::bad_request("invalid_cwd", message);
    let Some(cwd) = text(fields, "cwd").map_err(|_| invalid("`cwd` must be a string absolute path when provided"))?
    else {
        return Ok(None);
    };
    if !cwd.starts_with('/') {
        return Err(invalid("`cwd` must be an absolute path when provided"));
    }
    if cwd.len() > CWD_BYTES_MAX || cwd.contains('\0') {
        return Err(invalid("`cwd` is too long"));
    }
    Ok(Some(cwd))
}

/// What a path means: its plain spelling, and where its links lead.
pub(crate) struct Place {
    plain: String,
    real: Option<PathBuf>,
}

impl Place {
    /// The place of an absolute path.
    pub(crate) fn of(cwd: &str) -> Self {
        Self { plain: normal(cwd), real: std::fs::canonicalize(cwd).ok() }
    }

    /// Whether it is this workspace's.
    pub(crate) fn is(&self, bound: &str) -> bool {
        self.plain == normal(bound) || self.real.as_deref() == Some(Path::new(bound))
    }
}

/// A `cwd`, which must be the workspace that the request has come to: one that names another served folder has come there.
///
/// # Errors
/// 400 when it is no absolute path, or none that is served.
pub(crate) fn workspace(fields: &Fields<'_>, bound: &str) -> Result<(), Refusal> {
    let Some(cwd) = cwd(fields)? else { return Ok(()) };
    if Place::of(&cwd).is(bound) {
        return Ok(());
    }
    Err(mismatch(bound, &cwd))
}

/// 400 for a folder that is not served.
pub(crate) fn mismatch(bound: &str, cwd: &str) -> Refusal {
    let message = format!("Workspace mismatch: daemon is bound to \"{bound}\"");
    Refusal::bad_request("workspace_mismatch", message).with("boundWorkspace", bound).with("requestedWorkspace", cwd)
}

/// A path without empty and `.` parts. `..` is left alone: what it means depends on links, and no file is looked at here.
fn normal(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").fold(String::new(), |path, part| path + "/" + part)
}

/// An `approvalMode`.
///
/// # Errors
/// 400 `invalid_approval_mode` for an unknown one.
pub(crate) fn approval_mode(fields: &Fields<'_>) -> Result<Option<&'static str>, Refusal> {
    approval_mode_in(fields, "approvalMode").map_err(|()| {
        let message = "`approvalMode` must be a known approval mode when provided";
        Refusal::bad_request("invalid_approval_mode", message).with("allowed", APPROVAL_MODES.as_slice())
    })
}

/// The same in the field `key`.
///
/// # Errors
/// None: an unknown one is `Err(())`, for the caller to word.
pub(crate) fn approval_mode_in(fields: &Fields<'_>, key: &str) -> Result<Option<&'static str>, ()> {
    let Some(mode) = text(fields, key).map_err(|_| ())? else { return Ok(None) };
    APPROVAL_MODES.iter().find(|known| **known == mode).map(|known| Some(*known)).ok_or(())
}

/// A `sourceType` with its `sourceId`.
///
/// # Errors
/// 400 for a malformed or reserved one.
pub(crate) fn check_source(fields: &Fields<'_>) -> Result<Option<Source>, Refusal> {
    let invalid = |message: &'static str| Refusal::bad_request("invalid_session_source", message);
    let malformed = || invalid("`sourceType` must match [a-z][a-z0-9_-]{0,63} when provided");
    let source = text(fields, "sourceType").map_err(|_| malformed())?;
    match source {
        Some(source) if source == RESERVED_SOURCE => Err(Refusal::bad_request(
            "reserved_session_source",
            "The requested session source is reserved for daemon-owned standalone sessions.",
        )),
        Some(source) if !is_source(&source) => Err(malformed()),
        Some(kind) => {
            let malformed =
                || invalid("`sourceId` must be a non-empty text of at most 256 characters without controls");
            let id = text(fields, "sourceId").map_err(|_| malformed())?;
            if id.as_deref().is_some_and(|id| !is_source_id(id)) {
                Err(malformed())
            } else {
                Ok(Some(Source { kind, id }))
            }
        }
        None if fields.contains_key("sourceId") => Err(invalid("`sourceId` requires `sourceType`")),
        None => Ok(None),
    }
}

fn is_source_id(text: &str) -> bool {
    (1..=SOURCE_ID_CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// Whether `text` names a kind of source.
pub(crate) fn is_source(text: &str) -> bool {
    text.len() <= SOURCE_CHARS_MAX
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte))
}

/// Whether the field `key` says `summary` and not `full`, which it says when it is absent.
///
/// # Errors
/// 400 with `code`.
pub(crate) fn is_summary(fields: &Fields<'_>, key: &'static str, code: &'static str) -> Result<bool, Refusal> {
    match fields.get(key).map(|raw| raw.get()) {
        None | Some("\"full\"") => Ok(false),
        Some("\"summary\"") => Ok(true),
        Some(_) => Err(Refusal::bad_request(code, format!("`{key}` must be `full` or `summary`"))),
    }
}

/// A whole number in `range` in a field.
///
/// # Errors
/// None: what does not fit is `Err(())`, for the caller to word.
pub(crate) fn number(raw: &RawValue, range: std::ops::RangeInclusive<u64>) -> Result<u64, ()> {
    let value: Value = serde_json::from_str(raw.get()).map_err(|_| ())?;
    whole_number(&value).filter(|number| range.contains(number)).ok_or(())
}

/// A whole number that is not negative, in either spelling: JSON makes no difference between `5` and `5.0`, and some writers send the
/// latter.
pub(crate) fn whole_number(value: &Value) -> Option<u64> {
    /// The greatest whole number below which a float skips none.
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and within range")]
    let exact = |number: f64| (number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(&number)).then_some(number as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(exact))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::fields;

    fn code<T>(outcome: Result<T, Refusal>) -> String {
        outcome.map_or_else(|refusal| refusal.code.into_owned(), |_| "ok".to_owned())
    }

    #[test]
    fn only_the_bound_workspace_is_served() {
        let cases = [
            ("{}", "ok"),
            (r#"{"cwd":"/ws"}"#, "ok"),
            (r#"{"cwd":"/ws/"}"#, "ok"),
            (r#"{"cwd":"/./ws//"}"#, "ok"),
            (r#"{"cwd":5}"#, "invalid_cwd"),
            (r#"{"cwd":null}"#, "invalid_cwd"),
            (r#"{"cwd":"ws"}"#, "invalid_cwd"),
            (r#"{"cwd":"/other"}"#, "workspace_mismatch"),
            (r#"{"cwd":"/ws/../ws"}"#, "workspace_mismatch"),
        ];
        for (body, expected) in cases {
            assert_eq!(code(workspace(&fields(body.as_bytes()).unwrap(), "/ws")), expected, "{body}");
        }
    }

    #[test]
    fn a_link_to_the_bound_workspace_is_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().canonicalize().unwrap().join("real"), folder.path().join("link"));
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let body = format!(r#"{{"cwd":"{}"}}"#, link.display());
        assert_eq!(code(workspace(&fields(body.as_bytes()).unwrap(), real.to_str().unwrap())), "ok");
    }

    #[test]
    fn a_whole_number_is_one_in_either_spelling() {
        for (text, expected) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("5e0", Some(5)),
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("5.5", None),
            ("-5", None),
            ("1e300", None),
            ("\"5\"", None),
            ("null", None),
        ] {
            assert_eq!(whole_number(&serde_json::from_str(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn modes_and_sources_come_from_known_sets() {
        let cases = [
            (r#"{"approvalMode":"yolo","sourceType":"bot-1","sourceId":"x"}"#, "ok", "ok"),
            (r#"{"approvalMode":"bogus","sourceType":"Bad Type!"}"#, "invalid_approval_mode", "invalid_session_source"),
            (r#"{"approvalMode":7,"sourceType":"standalone"}"#, "invalid_approval_mode", "reserved_session_source"),
            (r#"{"sourceId":"x"}"#, "ok", "invalid_session_source"),
            (r#"{"sourceType":"bot","sourceId":""}"#, "ok", "invalid_session_source"),
            (r#"{"sourceType":"bot","sourceId":7}"#, "ok", "invalid_session_source"),
            (r#"{"sourceType":"bot","sourceId":"a\nb"}"#, "ok", "invalid_session_source"),
        ];
        for (body, mode, source) in cases {
            let fields = fields(body.as_bytes()).unwrap();
            assert_eq!(
                (code(approval_mode(&fields)), code(check_source(&fields))),
                (mode.into(), source.into()),
                "{body}"
            );
        }
    }
}
