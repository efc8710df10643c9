//! `turnd webhook`: the endpoints that ended requests are posted to.

mod secret;
mod table;

use hyper::Method;
use serde_json::{Value, json};

use super::explain::now_ms;
use super::request::{client, object_of, one_line};
use crate::cli::{
    WebhookAddArgs, WebhookArgs, WebhookCommand, WebhookListArgs, WebhookNameArgs, WebhookRedeliverArgs,
    WebhookRetireArgs, WebhookRotateArgs, WebhookShownArgs, WhichSecret,
};
use crate::client::{Answer, Asked, Client, segment};
use crate::exit::{Exit, Failure};
use crate::output::{self, complain};

/// Does one of the commands.
pub(crate) async fn run(args: WebhookArgs) -> Result<Exit, Failure> {
    match args.command {
        WebhookCommand::List(args) => list(&args).await,
        WebhookCommand::Show(args) => show(&args).await,
        WebhookCommand::Add(args) => add(&args).await,
        WebhookCommand::Remove(args) => remove(&args).await,
        WebhookCommand::Resume(args) => resume(&args).await,
        WebhookCommand::Rotate(args) => rotate(&args).await,
        WebhookCommand::Retire(args) => retire(&args).await,
        WebhookCommand::DeadLetters(args) => dead_letters(&args).await,
        WebhookCommand::Redeliver(args) => redeliver(&args).await,
    }
}

/// Where an endpoint is asked about; `part` begins with a slash, or is nothing.
fn path(name: &str, part: &str) -> String {
    format!("/return-requests/webhooks/{}{part}", segment(name))
}

async fn list(args: &WebhookListArgs) -> Result<Exit, Failure> {
    let answer = client(&args.shown.daemon)?.ask(Method::GET, "/return-requests/webhooks", None).await.outcome?;
    if !answer.is_success() {
        return Err(Failure::refused(&answer));
    }
    let body = answer.json();
    let Some(endpoints) = body["webhooks"].as_array() else {
        return Err(Failure::new(Exit::Failed, "unexpected answer: it is no list of endpoints"));
    };
    if args.shown.json {
        endpoints.iter().try_for_each(output::line)?;
    } else if !endpoints.is_empty() {
        table::endpoints(endpoints).iter().try_for_each(output::line)?;
    }
    Ok(Exit::Done)
}

async fn show(args: &WebhookNameArgs) -> Result<Exit, Failure> {
    let (_, answer) = found(args).await?;
    shown(&answer, &args.name, &args.shown)
}

async fn dead_letters(args: &WebhookNameArgs) -> Result<Exit, Failure> {
    let (endpoint, _) = found(args).await?;
    let letters = endpoint["dead_letters"].as_array().map(Vec::as_slice).unwrap_or_default();
    if args.shown.json {
        letters.iter().try_for_each(output::line)?;
    } else if !letters.is_empty() {
        table::letters(letters).iter().try_for_each(output::line)?;
    }
    Ok(Exit::Done)
}

async fn found(args: &WebhookNameArgs) -> Result<(Value, Answer), Failure> {
    let answer = client(&args.shown.daemon)?.ask(Method::GET, &path(&args.name, ""), None).await.outcome?;
    Ok((object_of(&answer, ("name", &args.name))?, answer))
}

/// Prints the endpoint that an answer is.
fn shown(answer: &Answer, name: &str, args: &WebhookShownArgs) -> Result<Exit, Failure> {
    let endpoint = object_of(answer, ("name", name))?;
    if args.json {
        output::bytes_line(&one_line(&answer.body))?;
    } else {
        table::endpoint(&endpoint, now_ms()).iter().try_for_each(output::line)?;
    }
    Ok(Exit::Done)
}

/// The same of one with a secret, which is told this once; `otherwise` says what to do where it is not.
fn secret_shown(answer: &Answer, args: (&str, &WebhookShownArgs), otherwise: &str) -> Result<Exit, Failure> {
    let told = shown(answer, args.0, args.1);
    told.map_err(|failure| failure.and(&format!("the secret was told to nobody: `turnd webhook {otherwise}")))
}

async fn add(args: &WebhookAddArgs) -> Result<Exit, Failure> {
    let secret = secret::read(args.secret.secret_file.as_deref())?;
    let mut body = json!({ "url": args.target });
    if let Some(after) = args.after {
        body["after"] = after.into();
    }
    let is_brought = secret.is_some();
    if let Some(secret) = secret {
        body["secret"] = secret.reveal().into();
    }
    let mut client = client(&args.shown.daemon)?;
    let Asked { outcome, may_have_arrived, .. } = client.ask(Method::PUT, &path(&args.name, ""), Some(&body)).await;
    let answer = outcome?;
    let exit = match is_brought || answer.json()["secret"].is_null() {
        true => shown(&answer, &args.name, &args.shown)?,
        false => {
            let otherwise = format!("rotate {}` makes another one", args.name);
            secret_shown(&answer, (&args.name, &args.shown), &otherwise)?
        }
    };
    if may_have_arrived && !is_brought && answer.json()["secret"].is_null() {
        let name = &args.name;
        complain(format_args!(
            "turnd: if the endpoint is new, its secret was in an answer that was lost; `turnd webhook rotate {name}` makes another one"
        ));
    }
    Ok(exit)
}

async fn remove(args: &WebhookNameArgs) -> Result<Exit, Failure> {
    let mut client = client(&args.shown.daemon)?;
    let Asked { outcome, may_have_arrived, .. } = client.ask(Method::DELETE, &path(&args.name, ""), None).await;
    let answer = outcome?;
    // What an earlier try has removed is not there any more.
    let was_removed = may_have_arrived && answer.json()["code"] == "webhook_not_found";
    if answer.is_success() || was_removed { Ok(Exit::Done) } else { Err(Failure::refused(&answer)) }
}

async fn resume(args: &WebhookNameArgs) -> Result<Exit, Failure> {
    let mut client = client(&args.shown.daemon)?;
    let answer = client.ask(Method::POST, &path(&args.name, "/resume"), Some(&json!({}))).await.outcome?;
    shown(&answer, &args.name, &args.shown)
}

async fn redeliver(args: &WebhookRedeliverArgs) -> Result<Exit, Failure> {
    let mut client = client(&args.shown.daemon)?;
    let body = json!({ "seq": args.number });
    let answer = client.ask(Method::POST, &path(&args.name, "/redeliver"), Some(&body)).await.outcome?;
    shown(&answer, &args.name, &args.shown)
}

/// The secret is made here, so that the same can be sent again after an answer that was lost.
async fn rotate(args: &WebhookRotateArgs) -> Result<Exit, Failure> {
    let brought = secret::read(args.secret.secret_file.as_deref())?;
    let made = if brought.is_none() { Some(secret::made()?) } else { None };
    let secret = brought.as_ref().or(made.as_ref()).map(|secret| secret.reveal());
    let mut client = client(&args.shown.daemon)?;
    let body = json!({ "secret": secret });
    let answer = client.ask(Method::POST, &path(&args.name, "/secrets"), Some(&body)).await.outcome?;
    let Some(made) = made else { return shown(&answer, &args.name, &args.shown) };
    let mut endpoint = object_of(&answer, ("name", &args.name))?;
    endpoint["secret"] = made.reveal().into();
    let answer = Answer { body: endpoint.to_string().into(), ..answer };
    let otherwise = format!("retire {} --which current` takes it back", args.name);
    secret_shown(&answer, (&args.name, &args.shown), &otherwise)
}

async fn retire(args: &WebhookRetireArgs) -> Result<Exit, Failure> {
    let mut client = client(&args.shown.daemon)?;
    let which = match args.which {
        WhichSecret::Former => "former",
        WhichSecret::Current => "current",
    };
    let secret = path(&args.name, &format!("/secrets/{which}"));
    let Asked { outcome, may_have_arrived, .. } = client.ask(Method::DELETE, &secret, None).await;
    let answer = outcome?;
    if may_have_arrived && answer.json()["code"] == "webhook_not_rotating" {
        return shown_again(&mut client, args).await;
    }
    shown(&answer, &args.name, &args.shown)
}

/// An earlier try has done it, and its answer was lost.
async fn shown_again(client: &mut Client, args: &WebhookRetireArgs) -> Result<Exit, Failure> {
    let answer = client.ask(Method::GET, &path(&args.name, ""), None).await.outcome?;
    shown(&answer, &args.name, &args.shown)
}
