//! Ids that callers send: which shapes are accepted, and which are never allowed near a file name.

use crate::refusal::Refusal;

/// Most characters of a client id or a prompt id (wire rules, section 4).
const TOKEN_CHARS_MAX: usize = 128;

/// Most characters of a session id that may become part of a file name.
const FILE_ID_CHARS_MAX: usize = 128;

/// Whether `text` is a client id or a prompt id: `[A-Za-z0-9._:-]{1,128}`.
pub(crate) fn is_token(text: &str) -> bool {
    (1..=TOKEN_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
}

/// Whether a caller may choose `text` for its prompt: a token, and no word that a path means something else by: the current one,
/// or a place in a tree, which clients of HTTP put straight before they send it.
pub(crate) fn is_prompt_id(text: &str) -> bool {
    is_token(text) && !matches!(text, "current" | "." | "..")
}

/// Whether `text` is a UUID of version 1 to 5 of the RFC's variant, in either case.
pub(crate) fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => (b'1'..=b'5').contains(byte),
            19 => b"89abAB".contains(byte),
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The session id a path or body names, as it is looked up: a UUID is lower-cased, anything else is taken as it stands.
pub(crate) fn session_id(text: &str) -> String {
    if is_uuid(text) { text.to_ascii_lowercase() } else { text.to_owned() }
}

/// Whether `id` may become part of a file name. Separators, dots at the front and control characters may not.
pub(crate) fn is_file_id(id: &str) -> bool {
    (1..=FILE_ID_CHARS_MAX).contains(&id.len())
        && !id.starts_with('.')
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !id.contains("..")
        && !id.ends_with(".ledger")
}

/// The value of an `X-Qwen-Client-Id` header. An empty one counts as absent.
///
/// # Errors
/// 400 `invalid_client_id` when it is no token.
pub(crate) fn client_id(header: Option<&[u8]>) -> Result<Option<&str>, Refusal> {
    match header {
        None | Some([]) => Ok(None),
        Some(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if is_token(text) => Ok(Some(text)),
            _ => Err(Refusal::bad_request(
                "invalid_client_id",
                "`X-Qwen-Client-Id` must be a non-empty token of 128 characters or fewer",
            )),
        },
    }
}

/// A fresh random UUID, for sessions and streams.
pub(crate) fn fresh_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_lower_cased_and_nothing_else_is() {
        let cases = [
            ("11111111-1111-4111-8111-11111111AAAA", "11111111-1111-4111-8111-11111111aaaa"),
            ("11111111-1111-6111-8111-11111111AAAA", "11111111-1111-6111-8111-11111111AAAA"),
            ("11111111-1111-4111-C111-11111111AAAA", "11111111-1111-4111-C111-11111111AAAA"),
            ("NotAUuid", "NotAUuid"),
        ];
        for (given, expected) in cases {
            assert_eq!(session_id(given), expected, "{given}");
        }
    }

    #[test]
    fn ids_that_look_like_paths_never_reach_a_file() {
        for id in
            ["", ".", "..", "a/b", "../x", "a..b", "a\\b", "a\0b", ".hidden", "a b", "ü", "x.ledger", &"a".repeat(129)]
        {
            assert!(!is_file_id(id), "{id:?}");
        }
        for id in ["a", "abc-1_2.x", "11111111-1111-4111-8111-11111111aaaa"] {
            assert!(is_file_id(id), "{id:?}");
        }
    }

    #[test]
    fn a_client_id_is_a_token_or_absent() {
        assert_eq!(client_id(None).ok(), Some(None));
        assert_eq!(client_id(Some(b"")).ok(), Some(None));
        assert_eq!(client_id(Some(b"client_a:1.2-x")).ok(), Some(Some("client_a:1.2-x")));
        for bad in [&b"bad id!"[..], b"\xff", &[b'x'; 129]] {
            assert!(client_id(Some(bad)).is_err());
        }
    }

    /// Both doors to a file name: an id that a caller chooses, and one that a caller wants restored.
    fn passes(id: &str) -> bool {
        is_uuid(id) || is_file_id(&session_id(id))
    }

    proptest::proptest! {
        #[test]
        fn no_id_that_passes_leads_out_of_the_folder_of_sessions_or_into_another_ones_file(
            id in proptest::prop_oneof![
                "[a-zA-Z0-9._%/\\\\ -]{0,12}",
                "(\\.\\./|%2e|%2F|/|\\\\|\\.|a|\u{0}){0,6}",
                "[a-z]{1,3}[.](ledger|jsonl|host|lock)",
                "\\PC{0,40}",
                "[0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
            ],
        ) {
            let layout = crate::layout::Layout::new("/store".as_ref(), "/ws".as_ref());
            let chats = std::path::Path::new("/store/projects/-ws/chats");
            if passes(&id) {
                for (path, folder, end) in [
                    (layout.transcript(&id), chats.to_owned(), ".jsonl"),
                    (layout.ledger(&id), chats.to_owned(), ".ledger.jsonl"),
                    (layout.archived_transcript(&id), chats.join("archive"), ".jsonl"),
                ] {
                    proptest::prop_assert_eq!(path.parent(), Some(folder.as_path()));
                    let name = path.file_name().unwrap().to_str().unwrap();
                    proptest::prop_assert_eq!(name, format!("{id}{end}"));
                    proptest::prop_assert!(name.len() < 255, "file systems take no longer name");
                }
                proptest::prop_assert!(!id.ends_with(".ledger"), "its transcript would be another session's ledger");
            }
        }
    }
}
