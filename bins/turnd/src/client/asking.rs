//! One request, sent again and again until an answer settles it. Only what bears being sent twice is asked so.

use hyper::Method;
use serde_json::Value;

use super::{Answer, Backoff, Client, ClientError, dice};
use crate::output::progress;

/// How often a request is sent again: together some fifteen seconds, enough for a daemon to be started anew.
const TRIES_MORE: u32 = 8;

/// What all tries came to.
pub(crate) struct Asked {
    pub(crate) outcome: Result<Answer, ClientError>,
    /// Whether an earlier try may have arrived without its answer being heard.
    pub(crate) may_have_arrived: bool,
}

impl Client {
    /// Sends a request, and the same again after a lost connection or an answer that asks for it. Where nobody ever listened, that is told
    /// at once.
    pub(crate) async fn ask(&mut self, method: Method, path: &str, body: Option<&Value>) -> Asked {
        let mut backoff = Backoff::bounded(TRIES_MORE);
        let mut asked = Asked { outcome: self.call(method.clone(), path, body).await, may_have_arrived: false };
        loop {
            let (why, after) = match &asked.outcome {
                Ok(answer) if answer.asks_again() => {
                    (format!("the daemon answers {}", answer.status), answer.retry_after)
                }
                Err(error) if error.is_passing() && self.was_reached() => (error.to_string(), None),
                _ => return asked,
            };
            asked.may_have_arrived |= match &asked.outcome {
                // What a proxy says of a daemon that it lost.
                Ok(answer) => answer.status != 503,
                Err(error) => error.may_have_arrived(),
            };
            let Some(pause) = backoff.next(after, dice()) else { return asked };
            progress(format_args!("{why}; the same request again in {} ms", pause.as_millis()));
            tokio::time::sleep(pause).await;
            asked.outcome = self.call(method.clone(), path, body).await;
        }
    }
}
