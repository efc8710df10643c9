//! What can be typed behind `turnd webhook`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::DaemonArgs;
use crate::exit::STATUSES;

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = format!("\
An endpoint is a URL to which the daemon posts each request that ends, as `turnd request watch`
prints it: in order, one at a time, at least once. Any 2xx moves it on. Whatever else comes is
tried again for a day; then the event is a dead letter, and the next one goes out. Each try is
signed as Standard Webhooks has it, with a secret that is told once, when it is made.

Examples:
  turnd webhook add pager https://hooks.example.org/turnd
  turnd webhook list

{STATUSES}")
)]
pub(crate) struct WebhookArgs {
    #[command(subcommand)]
    pub(crate) command: WebhookCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Print all endpoints, and how it goes with each
    List(WebhookListArgs),
    /// Print one endpoint
    Show(WebhookNameArgs),
    /// Name an endpoint, or give one another URL; prints the secret of a new one, this once
    Add(WebhookAddArgs),
    /// Forget an endpoint and its dead letters
    Remove(WebhookNameArgs),
    /// Serve an endpoint again that is disabled or behind a gap, or try at once
    Resume(WebhookNameArgs),
    /// Have another secret sign beside the one until now, and print it, this once
    Rotate(WebhookRotateArgs),
    /// End one of two secrets: the former one, when all receivers know the newer
    Retire(WebhookRetireArgs),
    /// Print the events that an endpoint did not take
    DeadLetters(WebhookNameArgs),
    /// Send an endpoint one event once more, before what is next in order
    Redeliver(WebhookRedeliverArgs),
}

/// How it is printed, and who is asked.
#[derive(Debug, Args)]
pub(crate) struct WebhookShownArgs {
    /// Print the daemon's JSON, one object a line, instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
NEXT is the number of the event whose turn it is, TRIES how often it was tried; DEAD counts dead
letters, and LAST ERROR is what became of the last try.

Examples:
  turnd webhook list
  turnd webhook list --json | jq -r 'select(.state != \"active\").name'

{STATUSES}"))]
pub(crate) struct WebhookListArgs {
    #[command(flatten)]
    pub(crate) shown: WebhookShownArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  turnd webhook show pager
  turnd webhook dead-letters pager --json | jq -r .seq

{STATUSES}"))]
pub(crate) struct WebhookNameArgs {
    /// The endpoint's name
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) shown: WebhookShownArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
A new endpoint begins at the end of the stream, unless --after says where. The secret is told in
this answer and never again: give it to the receiver, which checks `webhook-signature` with it.
The same name once more changes the URL and keeps the secret; a secret that is read from a file
takes the place of all that sign, so that one that has leaked signs no more.

Examples:
  turnd webhook add pager https://hooks.example.org/turnd
  turnd webhook add ops http://127.0.0.1:9000/hook --after 0 --secret-file ops.secret

{STATUSES}"))]
pub(crate) struct WebhookAddArgs {
    /// The endpoint's name: letters, digits, `.`, `_` and `-`
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) name: String,
    /// Where events are posted to, http or https
    #[arg(value_name = "URL")]
    pub(crate) target: String,
    /// Begin behind this terminal_event_sequence
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) shown: WebhookShownArgs,
}

/// A secret that somebody else has made.
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// A file that holds the secret, whsec_ and base64, alone on one line; `-` is stdin [default: one is made]
    #[arg(long, value_name = "PATH")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Both secrets sign from now on: a receiver that knows either takes what comes. Give the receivers the
newer one, and then `retire` the former. Nothing is sent twice or left out for it.

Examples:
  turnd webhook rotate pager && echo 'tell the receiver, then: turnd webhook retire pager'
  turnd webhook rotate pager --secret-file new.secret

{STATUSES}"))]
pub(crate) struct WebhookRotateArgs {
    /// The endpoint's name
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) secret: SecretArgs,
    #[command(flatten)]
    pub(crate) shown: WebhookShownArgs,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  turnd webhook retire pager
  turnd webhook retire pager --which current    # takes the rotation back

{STATUSES}"))]
pub(crate) struct WebhookRetireArgs {
    /// The endpoint's name
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) name: String,
    /// The one of the two that signs no more
    #[arg(long, value_enum, default_value = "former")]
    pub(crate) which: WhichSecret,
    #[command(flatten)]
    pub(crate) shown: WebhookShownArgs,
}

/// One of two secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichSecret {
    /// The one from before the rotation.
    Former,
    /// The newer one: it is as it was before.
    Current,
}

#[derive(Debug, Args)]
#[command(after_help = format!("\
It is one try, and it moves nothing: when it fails, the event is a dead letter.

Examples:
  turnd webhook redeliver pager 42
  turnd webhook dead-letters pager --json | jq .seq | xargs -n 1 turnd webhook redeliver pager

{STATUSES}"))]
pub(crate) struct WebhookRedeliverArgs {
    /// The endpoint's name
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) name: String,
    /// The event's terminal_event_sequence
    #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) number: u64,
    #[command(flatten)]
    pub(crate) shown: WebhookShownArgs,
}

/// A name that a daemon takes, so that a mistyped one is told before anything is sent.
fn name(text: &str) -> Result<String, String> {
    let name = ::request::webhook::EndpointName::parse(text).map_err(|error| error.to_string())?;
    Ok(name.as_str().to_owned())
}
