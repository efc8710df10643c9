//! Who may call: where the daemon's token comes from, and that none is needed only where nobody but this machine can call.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::Path;

use serve::Token;

use crate::cli::AccessArgs;

/// Random bytes of a made token: 256 bits are not guessed.
const MADE_BYTES: usize = 32;

/// Most bytes of a token's file: more than any token is some other file, given by mistake.
const FILE_BYTES_MAX: u64 = 4096;

/// Who may call.
pub(crate) struct Access {
    /// What callers must know; none lets everyone on this machine call.
    pub(crate) token: Option<Token>,
    /// The text of a token that was made here, to be told once.
    pub(crate) made: Option<String>,
}

/// Why nobody may call.
#[derive(Debug)]
pub(crate) enum AccessError {
    /// Others can reach the address, and there is no token.
    Unguarded(IpAddr),
    /// The token cannot be one, or there is none and one is asked for.
    Usage(String),
    /// The file with the token, or the system's randomness, cannot be read.
    Io(String, io::Error),
}

/// Decides from the flags, and makes a token if that is wanted.
///
/// # Errors
/// Whenever the outcome would be less guarded than it looks.
pub(crate) fn decide(args: &AccessArgs, bind: IpAddr) -> Result<Access, AccessError> {
    let made = if args.generate_token { Some(made()?) } else { None };
    let text = match (&args.token, &args.token_file) {
        (Some(given), _) => Some(given.text().to_owned()),
        (None, Some(path)) => Some(read(path)?),
        (None, None) => made.clone(),
    };
    let token = text.as_deref().map(Token::new).transpose();
    let token = token.map_err(|error| AccessError::Usage(error.to_string()))?;
    if token.is_none() && !bind.is_loopback() {
        return Err(AccessError::Unguarded(bind));
    }
    if token.is_none() && args.require_auth {
        return Err(AccessError::Usage("--require-auth needs a token: TURND_TOKEN, --token-file or --token".into()));
    }
    Ok(Access { token, made })
}

/// The content of a token's file, without the line end that editors put behind it.
fn read(path: &Path) -> Result<String, AccessError> {
    let failed = |error| AccessError::Io(format!("cannot read the token in {}", path.display()), error);
    let mut text = String::new();
    File::open(path).map_err(failed)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(AccessError::Usage(format!("{} is too large to be a token", path.display())));
    }
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(line.strip_suffix('\r').unwrap_or(line).to_owned())
}

/// Fresh random bytes, as hexadecimal digits.
fn made() -> Result<String, AccessError> {
    let mut bytes = [0; MADE_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        AccessError::Io("the system gives no random bytes".into(), io::Error::other(error.to_string()))
    })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Decides; the outcome in a word.
    fn check(args: &AccessArgs, bind: Ipv4Addr) -> &'static str {
        match decide(args, bind.into()) {
            Ok(Access { token: None, .. }) => "open",
            Ok(Access { made: Some(_), .. }) => "made",
            Ok(_) => "given",
            Err(AccessError::Unguarded(_)) => "unguarded",
            Err(AccessError::Usage(_)) => "usage",
            Err(AccessError::Io(..)) => "io",
        }
    }

    fn with(token: &str) -> AccessArgs {
        AccessArgs { token: Some(token.to_owned().into()), ..AccessArgs::default() }
    }

    #[test]
    fn without_a_token_only_this_machine_may_call() {
        let (here, world) = (Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED);
        let none = AccessArgs::default();
        assert_eq!((check(&none, here), check(&none, world)), ("open", "unguarded"));
        assert_eq!((check(&with("t"), here), check(&with("t"), world)), ("given", "given"));
        let generate = AccessArgs { generate_token: true, ..AccessArgs::default() };
        assert_eq!((check(&generate, here), check(&generate, world)), ("made", "made"));
        let required = AccessArgs { require_auth: true, ..AccessArgs::default() };
        assert_eq!(check(&required, here), "usage");
    }

    #[test]
    fn a_token_that_guards_nothing_is_refused() {
        for token in ["", " ", "\n", "a b", "a\u{1}"] {
            assert_eq!(check(&with(token), Ipv4Addr::LOCALHOST), "usage", "{token:?}");
        }
    }

    #[test]
    fn a_made_token_has_256_bits_and_is_made_anew_each_time() {
        let made = || decide(&AccessArgs { generate_token: true, ..AccessArgs::default() }, Ipv4Addr::LOCALHOST.into());
        let [first, second] = [made(), made()].map(|access| access.ok().unwrap().made.unwrap());
        assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
        assert_ne!(first, second);
    }

    #[test]
    fn a_token_is_read_from_a_file_without_its_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        for (name, text) in [("plain", "secret"), ("unix", "secret\n"), ("windows", "secret\r\n")] {
            assert_eq!(file(name, text).ok().as_deref(), Some("secret"), "{name}");
        }
        assert!(matches!(file("large", &"x".repeat(5000)), Err(AccessError::Usage(_))));
        let nowhere = AccessArgs { token_file: Some(folder.path().join("nowhere")), ..AccessArgs::default() };
        assert_eq!(check(&nowhere, Ipv4Addr::LOCALHOST), "io");
    }
}
