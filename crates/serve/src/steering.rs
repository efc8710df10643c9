//! Words for a turn that runs (wire rules, section 13.6). A message may become a prompt under its own id, so its id is taken when it
//! is accepted, by the rules for ids that callers choose: a conflict is found now, when somebody is there to hear of it.

use std::sync::Arc;

use bridge::{AdmitError, Prompt, Session, Steered};

use crate::admission::{
    fingerprint_of_words, id_conflict, is_taken_elsewhere, load_ids, no_room, not_admitted, prompt, refused,
};
use crate::chosen::{Once, OnceError};
use crate::content::Content;
use crate::identity::fresh_uuid;
use crate::refusal::Refusal;
use crate::workspace::Workspace;

/// What a message was answered with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It waits, or was accepted before, under this id.
    Accepted(String),
    /// There is no turn to say it to.
    Idle,
}

/// Says something into the running turn of a session.
///
/// # Errors
/// When it can neither wait nor be said to find no turn; nothing has happened then.
pub(crate) async fn steer(
    workspace: &Arc<Workspace>,
    session: &Session,
    client: Option<&str>,
    mut content: Content,
) -> Result<Answer, Refusal> {
    let chosen = content.prompt_id.is_some();
    let id = content.prompt_id.take().unwrap_or_else(fresh_uuid);
    content.prompt_id = Some(id.clone());
    let message = prompt(workspace, session, client, content);
    let words = fingerprint_of_words(&message);
    if chosen {
        load_ids(workspace, session).await?;
        match workspace.chosen.known(session.id(), &id, words) {
            Ok(Some(_)) => return Ok(Answer::Accepted(id)),
            Ok(None) => {}
            Err(error) => return Err(not_admitted(session, &id, error)),
        }
        workspace.returns.check_chosen(session.id(), &id).await?;
    }
    if !session.status().has_active_prompt {
        return Ok(Answer::Idle);
    }
    if workspace.returns.tracked.running_in(session.id()).is_some() {
        return Err(into_a_return(session.id()));
    }
    if !workspace.sink.has_room(session.id()) {
        return Err(no_room());
    }
    if chosen {
        return steer_once(workspace, session, &id, message, words);
    }
    match session.steer(message) {
        Ok(Steered::Accepted(_)) => {
            note_words(workspace, session);
            workspace.chosen.note(session.id(), &id);
            Ok(Answer::Accepted(id))
        }
        Ok(Steered::Idle) => Ok(Answer::Idle),
        Err(error) => Err(refused(session.id(), error)),
    }
}

/// 409: nobody says anything into the turn of a return request, whose outcome is promised to be that of its prompt alone.
fn into_a_return(session: &str) -> Refusal {
    let message = "The running turn is a return request's, and takes no further words";
    Refusal::conflict("return_request_running", message).with("sessionId", session)
}

/// Words that were said in the very moment in which a return request began may reach its turn: then it is not its prompt's alone.
fn note_words(workspace: &Workspace, session: &Session) {
    if let Some(request) = workspace.returns.tracked.running_in(session.id()) {
        request.note_extra_message();
    }
}

fn steer_once(
    workspace: &Workspace,
    session: &Session,
    id: &str,
    message: Prompt,
    words: u128,
) -> Result<Answer, Refusal> {
    if is_taken_elsewhere(workspace, session, id) {
        return Err(id_conflict(session.id(), id));
    }
    let mut is_idle = false;
    let once = workspace.chosen.once(session.id(), id, words, || match session.steer(message)? {
        Steered::Accepted(receipt) => Ok(receipt),
        Steered::Idle => {
            // The id is free again, as after every refusal.
            is_idle = true;
            Err(AdmitError::Gone)
        }
    });
    match once {
        Ok(Once::Admitted(_) | Once::Repeated(_)) => {
            note_words(workspace, session);
            Ok(Answer::Accepted(id.to_owned()))
        }
        Err(OnceError::Refused(_)) if is_idle => Ok(Answer::Idle),
        Err(error) => Err(not_admitted(session, id, error)),
    }
}
