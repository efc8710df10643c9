//! One request from its head to its answer: wall, body, route; a panic on the way is a 500 and nothing more.

use std::sync::Arc;

use bridge::{Session, Voter};
use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{Method, Request};

use crate::body::{self, Fields};
use crate::caller::Caller;
use crate::daemon::Daemon;
use crate::identity;
use crate::refusal::Refusal;
use crate::reply::{Reply, refuse};
use crate::returns::refusal::told;
use crate::returns::understood::{self, is_about_returns};
use crate::router::{Matched, Route};
use crate::routes;
use crate::unpanicked::unpanicked;
use crate::wall::{Passage, mark_allowed};
use crate::whereabouts;
use crate::workspace::Workspace;

/// The header that names the calling client.
pub(crate) const CLIENT_ID: &str = "x-qwen-client-id";

/// A request that reached its route.
pub(crate) struct Call<'a> {
    pub(crate) daemon: &'a Arc<Daemon>,
    /// Where the session of the path is, or what the body's `cwd` names; the primary one otherwise.
    pub(crate) workspace: &'a Arc<Workspace>,
    pub(crate) head: &'a Parts,
    pub(crate) fields: Fields<'a>,
    pub(crate) matched: Matched<'a>,
}

impl<'a> Call<'a> {
    /// The session id of the path, as it is looked up.
    pub(crate) fn session_id(&self) -> String {
        identity::session_id(self.matched.id())
    }

    /// The calling client, if it says who it is.
    ///
    /// # Errors
    /// 400 `invalid_client_id` when the header is malformed.
    pub(crate) fn client_id(&self) -> Result<Option<&'a str>, Refusal> {
        identity::client_id(self.head.headers.get(CLIENT_ID).map(|value| value.as_bytes()))
    }

    /// Whoever votes with this request as `client`.
    pub(crate) fn voter(&self, client: Option<&str>) -> Voter {
        let caller = self.head.extensions.get::<Caller>();
        let is_local = caller.is_some_and(|caller| caller.is_local(&self.head.headers));
        Voter { client_id: client.map(Into::into), is_local }
    }

    /// The live session of the path, and the calling client, which it must know.
    ///
    /// # Errors
    /// 404 for a session that is not live, 400 for a client that is not registered there.
    pub(crate) fn session_and_client(&self) -> Result<(Session, Option<&'a str>), Refusal> {
        let client = self.client_id()?;
        let session = self.workspace.session(&self.session_id())?;
        registered(&session, client)?;
        Ok((session, client))
    }

    /// The same for a request that changes the session.
    ///
    /// # Errors
    /// The same, and 409 `session_archiving` while the session is being closed.
    pub(crate) fn open_session_and_client(&self) -> Result<(Session, Option<&'a str>), Refusal> {
        let client = self.client_id()?;
        let id = self.session_id();
        if self.workspace.desk.is_closing(&id) {
            return Err(Refusal::archiving(&id));
        }
        let session = self.workspace.session(&id)?;
        registered(&session, client)?;
        Ok((session, client))
    }
}

/// Whether a session knows the client that calls.
///
/// # Errors
/// 400 `invalid_client_id`.
pub(crate) fn registered(session: &Session, client: Option<&str>) -> Result<(), Refusal> {
    match client {
        Some(client) if !session.is_registered(client) => Err(Refusal::unregistered(session.id(), client)),
        _ => Ok(()),
    }
}

/// The answer to a request, whatever happens.
pub(crate) async fn answer<B>(daemon: &Arc<Daemon>, request: Request<B>) -> Reply
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
{
    let (head, body) = request.into_parts();
    let origin = match daemon.wall.check(&head) {
        Passage::Pass(origin) => origin,
        Passage::Stop(reply) => return reply,
    };
    if let Some(mut reply) = daemon.gate.stop(&head) {
        if let Some(origin) = &origin {
            mark_allowed(reply.headers_mut(), origin);
        }
        return reply;
    }
    let outcome = unpanicked(routed(daemon, &head, body)).await.unwrap_or_else(|| Err(Refusal::internal()));
    let mut reply = outcome.unwrap_or_else(|refusal| refuse(&told(&head, refusal)));
    if let Some(origin) = &origin {
        mark_allowed(reply.headers_mut(), origin);
    }
    reply
}

async fn routed<B>(daemon: &Arc<Daemon>, head: &Parts, body: B) -> Result<Reply, Refusal>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
{
    let reads = head.method == Method::GET || head.method == Method::HEAD;
    let bytes = if reads { Bytes::new() } else { body::read(&head.headers, body, &daemon.options.limits).await? };
    let fields = body::fields(&bytes)?;
    let matched = daemon.router.find(&head.method, head.uri.path())?;
    let workspace = whereabouts::workspace(daemon, &matched, &fields).await?;
    let call = Call { daemon, workspace, head, fields, matched };
    if is_about_returns(call.matched.route) {
        daemon.returns.opened().await;
        understood::check(&call, &bytes).await?;
    }
    answered(&call).await
}

/// The answer of the route.
async fn answered(call: &Call<'_>) -> Result<Reply, Refusal> {
    match call.matched.route {
        Route::Health => Ok(routes::health::get(call)),
        Route::Capabilities => Ok(routes::capabilities::get(call)),
        Route::Openapi => Ok(routes::openapi::get()),
        Route::Acp => routes::acp::enter(call),
        Route::CreateSession => routes::session::create(call).await,
        Route::CloseSession => routes::session::close(call).await,
        Route::Status => routes::session::status(call),
        Route::Sessions => routes::sessions::list(call).await,
        Route::LiveState => routes::sessions::live_state(call).await,
        Route::Heartbeat => routes::session::heartbeat(call),
        Route::Detach => routes::session::detach(call),
        Route::Transcript => routes::transcript::get(call).await,
        Route::Context => routes::context::get(call).await,
        Route::Rename => routes::settings::rename(call).await,
        Route::Model => routes::settings::model(call).await,
        Route::ApprovalMode => routes::settings::approval_mode(call).await,
        Route::Load => routes::load::load(call).await,
        Route::Resume => routes::load::resume(call).await,
        Route::Branch => routes::branch::post(call).await,
        Route::Rewind => routes::rewind::post(call).await,
        Route::RewindSnapshots => routes::rewind::snapshots(call).await,
        Route::Prompt => routes::prompt::admit(call).await,
        Route::Cancel => routes::prompt::cancel(call),
        Route::PendingPrompts => routes::pending::list(call),
        Route::RemovePrompt => routes::pending::remove(call),
        Route::Events => routes::events::subscribe(call),
        Route::Turn => routes::turns::exact(call).await,
        Route::CurrentTurn => routes::turns::current(call).await,
        Route::TurnResult => routes::result::get(call).await,
        Route::Vote => routes::permission::vote(call),
        Route::Shell => routes::shell::run(call).await,
        Route::Steer => routes::steering::say(call).await,
        Route::Steering => routes::steering::list(call),
        Route::RemoveSteering => routes::steering::remove(call),
        Route::Recap => routes::aside::recap(call).await,
        Route::Btw => routes::aside::btw(call).await,
        Route::Generate => routes::generate::generate(call).await,
        Route::Continue => routes::continuation::post(call).await,
        Route::Fork => routes::aside::fork(call).await,
        Route::SessionVote => routes::permission::session_vote(call),
        Route::Archive => routes::shelf::archive(call).await,
        Route::Unarchive => routes::shelf::unarchive(call).await,
        Route::DeleteSessions => routes::shelf::delete(call).await,
        Route::SubmitReturn => routes::returns::submit(call).await,
        Route::Return => routes::returns::get(call).await,
        Route::Returns => routes::returns::list(call).await,
        Route::CancelReturn => routes::returns::cancel::post(call).await,
        Route::ReturnEvents => routes::returns::events::get(call).await,
        Route::ReturnStream => routes::returns::events::head(call).await,
        Route::ReturnConsumer => routes::returns::events::consumer(call).await,
        Route::Webhooks => routes::webhooks::list(call).await,
        Route::PutWebhook => routes::webhooks::put(call).await,
        Route::Webhook => routes::webhooks::get(call).await,
        Route::DeleteWebhook => routes::webhooks::delete(call).await,
        Route::RedeliverWebhook => routes::webhooks::redeliver(call).await,
        Route::ResumeWebhook => routes::webhooks::resume(call).await,
        Route::RotateWebhook => routes::webhooks::secrets::rotate(call).await,
        Route::EndWebhookSecret => routes::webhooks::secrets::end(call).await,
    }
}
