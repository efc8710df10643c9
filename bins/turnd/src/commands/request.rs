//! `turnd request`: durable requests as a caller sees them.

mod list;
mod standing;
mod store;
mod wait;
mod watch;

use std::borrow::Cow;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};

use crate::cli::{AckArgs, CancelArgs, DaemonArgs, GetArgs, RequestArgs, RequestCommand};
use crate::client::{Answer, Client, Endpoint, segment};
use crate::exit::{Exit, Failure};
use crate::output;

/// Does one of the commands.
pub(crate) async fn run(args: RequestArgs) -> Result<Exit, Failure> {
    match args.command {
        RequestCommand::Get(args) => get(&mut client(&args.daemon)?, &args).await,
        RequestCommand::Cancel(args) => cancel(&mut client(&args.daemon)?, &args).await,
        RequestCommand::List(args) => list::run(&mut client(&args.daemon)?, &args).await,
        RequestCommand::Wait(args) => wait::run(&mut client(&args.daemon)?, &args).await,
        RequestCommand::Watch(args) => watch::run(&mut client(&args.daemon)?, &args).await,
        RequestCommand::Ack(args) => ack(&mut client(&args.daemon)?, &args).await,
        RequestCommand::Store(args) => store::run(&args),
    }
}

/// The daemon that was named.
pub(super) fn client(args: &DaemonArgs) -> Result<Client, Failure> {
    let endpoint = Endpoint::parse(&args.url).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let token = args.token.as_ref().map(|token| token.text()).filter(|token| !token.is_empty());
    Ok(Client::new(endpoint, token)?.awaiting(args.retry_ms.map(Duration::from_millis)))
}

async fn get(client: &mut Client, args: &GetArgs) -> Result<Exit, Failure> {
    let path = format!("/return-requests/{}", segment(&args.id));
    print(&client.ask(Method::GET, &path, None).await.outcome?, ("request_id", &args.id))
}

async fn cancel(client: &mut Client, args: &CancelArgs) -> Result<Exit, Failure> {
    let path = format!("/return-requests/{}/cancel", segment(&args.id));
    let body = if args.interrupt { json!({"interrupt": true}) } else { json!({}) };
    print(&client.ask(Method::POST, &path, Some(&body)).await.outcome?, ("request_id", &args.id))
}

async fn ack(client: &mut Client, args: &AckArgs) -> Result<Exit, Failure> {
    let path = format!("/return-requests/consumers/{}", segment(&args.name));
    let mut body = json!({"acked": args.number});
    if let Some(protect) = args.protect {
        body["protect"] = protect.into();
    }
    print(&client.ask(Method::PUT, &path, Some(&body)).await.outcome?, ("name", &args.name))
}

/// Prints the object that an answer is, byte for byte, as one line.
pub(super) fn print(answer: &Answer, named: (&str, &str)) -> Result<Exit, Failure> {
    object_of(answer, named)?;
    printed(answer)
}

/// The same of an answer that was looked at.
pub(super) fn printed(answer: &Answer) -> Result<Exit, Failure> {
    output::bytes_line(&one_line(&answer.body))?;
    Ok(Exit::Done)
}

/// The object that an answer is, which has to name what was asked about: some other page of some other server says nothing of it.
pub(super) fn object_of(answer: &Answer, (key, name): (&str, &str)) -> Result<Value, Failure> {
    if !answer.is_success() {
        return Err(Failure::refused(answer));
    }
    let object = answer.json();
    if object[key] != name {
        return Err(Failure::new(Exit::Failed, format!("unexpected answer: {} without {name:?}", answer.status)));
    }
    Ok(object)
}

/// JSON text as one line: its strings hold no bare newline, so whichever is there stands between two words.
pub(super) fn one_line(json: &[u8]) -> Cow<'_, [u8]> {
    let json = json.trim_ascii();
    if json.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect::<Vec<_>>().into()
    } else {
        json.into()
    }
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn an_object_is_one_line_and_keeps_its_bytes() {
        for (given, expected) in [
            (r#"{"b":1, "a":"x\ny"}"#, r#"{"b":1, "a":"x\ny"}"#),
            ("{\"a\":1}\n", "{\"a\":1}"),
            ("{\r\n  \"a\": 1\n}", "{    \"a\": 1 }"),
        ] {
            assert_eq!(one_line(given.as_bytes()), expected.as_bytes(), "{given:?}");
        }
    }
}
