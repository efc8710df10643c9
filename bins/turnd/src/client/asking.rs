//! One request, sent again and again until an answer settles it. Only what bears being sent twice is asked so.

use hyper::Method;
use serde_json::Value;

use super::{ANSWER_LIMIT, Answer, Client, ClientError, Outage};

/// What all tries came to.
pub(crate) struct Asked {
    pub(crate) outcome: Result<Answer, ClientError>,
    /// Whether an earlier try may have arrived without its answer being heard.
    pub(crate) may_have_arrived: bool,
    /// Whether a refusal said that what is asked for is on record: it is there, and only its answer cannot be had.
    pub(crate) is_registered: bool,
}

impl Client {
    /// Sends a request, and the same again after a lost connection or an answer that asks for it, for as long as is borne. Where nobody ever
    /// listened, that is told at once, unless the caller said for how long it is to be borne.
    pub(crate) async fn ask(&mut self, method: Method, path: &str, body: Option<&Value>) -> Asked {
        let mut outage = Outage::new(self.bound());
        let outcome = self.call(method.clone(), path, body).await;
        let mut asked = Asked { outcome, may_have_arrived: false, is_registered: false };
        loop {
            asked.is_registered |= matches!(&asked.outcome, Ok(answer) if answer.is_of_something_stored());
            let (why, after) = match &asked.outcome {
                Ok(answer) if answer.asks_again() => (answer.brief(), answer.retry_after),
                Err(error) if error.is_passing() && self.may_be_back() => (error.to_string(), None),
                _ => return asked,
            };
            asked.may_have_arrived |= match &asked.outcome {
                // What a proxy says of a daemon that it lost.
                Ok(answer) => answer.status != 503,
                Err(error) => error.may_have_arrived(),
            };
            if asked.is_registered {
                outage.endure();
            }
            if !outage.wait(why, after, "the same request again").await {
                return asked;
            }
            asked.outcome = self.call_within(outage.room(ANSWER_LIMIT), method.clone(), path, body).await;
        }
    }
}
