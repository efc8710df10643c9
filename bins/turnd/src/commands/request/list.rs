//! `turnd request list`: all pages of the list, one object a line.

use std::collections::BTreeMap;

use hyper::Method;
use serde_json::value::RawValue;

use super::one_line;
use crate::cli::ListArgs;
use crate::client::{Client, segment};
use crate::exit::{Exit, Failure};
use crate::output;

/// Requests a page.
const PAGE_REQUESTS: usize = 100;

/// Prints every page as it comes.
pub(super) async fn run(client: &mut Client, args: &ListArgs) -> Result<Exit, Failure> {
    let mut page: Option<String> = None;
    loop {
        let path = target(args.state.as_deref(), args.session.as_deref(), page.as_deref());
        let answer = client.ask(Method::GET, &path, None).await.outcome?;
        if !answer.is_success() {
            return Err(Failure::refused(&answer));
        }
        let (requests, next) = parts(&answer.body)
            .ok_or_else(|| Failure::new(Exit::Failed, format!("unexpected answer: {path} is no page of requests")))?;
        for request in requests {
            output::bytes_line(&one_line(request.get().as_bytes()))?;
        }
        match next {
            // A page that leads to itself would be printed for ever.
            Some(next) if page.as_ref() != Some(&next) => page = Some(next),
            _ => return Ok(Exit::Done),
        }
    }
}

fn target(state: Option<&str>, session: Option<&str>, page: Option<&str>) -> String {
    let given = [("state", state), ("session", session), ("page", page)];
    let mut target = format!("/return-requests?limit={PAGE_REQUESTS}");
    for (key, value) in given {
        if let Some(value) = value {
            target.push_str(&format!("&{key}={}", segment(value)));
        }
    }
    target
}

/// The requests of a page, byte for byte, and the name of the page behind it.
fn parts(body: &[u8]) -> Option<(Vec<Box<RawValue>>, Option<String>)> {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).ok()?;
    let requests = serde_json::from_str(fields.get("requests")?.get()).ok()?;
    let next = match fields.get("next_page") {
        Some(next) => serde_json::from_str(next.get()).ok()?,
        None => None,
    };
    Some((requests, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_apart_and_what_is_none_is_not() {
        for (body, expected) in [
            (r#"{"requests":[],"next_page":null}"#, Some((vec![], None))),
            (r#"{"requests":[{"b":1, "a":2}]}"#, Some((vec![r#"{"b":1, "a":2}"#], None))),
            (r#"{"v":1,"requests":[{},{}],"next_page":"p2"}"#, Some((vec!["{}", "{}"], Some("p2")))),
            (r#"{"next_page":"p2"}"#, None),
            (r#"[]"#, None),
            ("<html>", None),
        ] {
            let parts = parts(body.as_bytes());
            let parts = parts.as_ref().map(|(requests, next)| {
                (requests.iter().map(|request| request.get()).collect::<Vec<_>>(), next.as_deref())
            });
            assert_eq!(parts, expected, "{body}");
        }
    }

    #[test]
    fn a_filter_and_a_page_are_part_of_what_is_asked() {
        let narrowed = target(Some("bound"), Some("a/b"), Some("p+2"));
        assert_eq!(narrowed, "/return-requests?limit=100&state=bound&session=a%2Fb&page=p%2B2");
        assert_eq!(target(None, None, None), "/return-requests?limit=100");
    }
}
