//! The agent that does not stop (design, section 3, rule 2).
//!
//! Once a turn was told to stop it gets a grace period. Behind that the host is asked for another process in the agent's place: when
//! a client wanted the turn to stop, and also when only its caller's deadline has passed but another prompt waits. Nothing is
//! dispatched until the host has answered. An agent that cannot bring the session back is kept, and the queue with it: to end it
//! would cost the conversation and the prompts that wait, which nobody asked for; whoever prefers that closes the session.

use std::sync::Arc;

use super::straying::Straying;
use super::{Phase, Session};
use crate::effect::{Step, Tell};
use crate::event::{News, StopCause};
use crate::input::Input;
use crate::moment::Steady;
use crate::outcome::Answer;
use crate::prompt::PromptId;
use crate::succession::Succession;
use crate::{FlushOrigin, Reason};

/// Whether the session's agent is being replaced.
#[derive(Debug, Default)]
pub(super) enum Replacing {
    /// It is not.
    #[default]
    No,
    /// The host was asked for it, and has until then to answer.
    Asked { until: Steady, culprit: Culprit },
    /// The running turn's agent cannot be replaced.
    Kept,
}

/// The prompt whose turn does not stop.
#[derive(Clone, Debug)]
pub(super) struct Culprit {
    prompt_id: PromptId,
    originator: Option<Arc<str>>,
    reason: StopCause,
}

impl Session {
    pub(super) fn is_replacing(&self) -> bool {
        matches!(self.replacing, Replacing::Asked { .. })
    }

    /// The next time at which something is due about the agent's place.
    pub(super) fn next_replacement(&self) -> Option<(Steady, Input)> {
        match &self.replacing {
            Replacing::Asked { until, .. } => Some((*until, Input::ReplaceOver)),
            Replacing::No => self.grace_until().map(|until| (until, Input::GraceOver)),
            Replacing::Kept => None,
        }
    }

    fn grace_until(&self) -> Option<Steady> {
        let turn = self
            .turn
            .as_ref()
            .filter(|turn| turn.stop_wanted || !self.queue.is_empty() || !self.steering.is_empty())?;
        Some(turn.cancelled?.steady.after(self.timeouts.grace_ms))
    }

    /// The agent had time enough to stop.
    pub(super) fn stop_waiting_for_obedience(&mut self, step: &mut Step) {
        let due = self.grace_until().is_some_and(|until| until <= step.at.steady);
        if !due || !matches!(self.phase, Phase::Open) || !matches!(self.replacing, Replacing::No) {
            return;
        }
        let Some(turn) = &self.turn else { return };
        let (prompt_id, originator) = (turn.entry.prompt_id.clone(), turn.entry.originator.clone());
        let reason = if turn.stop_wanted { StopCause::Cancel } else { StopCause::Deadline };
        // What the old agent has asked is answered before the request, so that no answer comes behind it and reaches the new one.
        self.refuse_permissions(|_| true, Reason::AgentReplaced, step);
        step.tell(Tell::Replace { prompt_id: prompt_id.clone() });
        let until = step.at.steady.after(self.timeouts.replace_ms());
        self.replacing = Replacing::Asked { until, culprit: Culprit { prompt_id, originator, reason } };
    }

    /// The host has answered.
    pub(super) fn replaced(&mut self, succession: Succession, step: &mut Step) {
        let Replacing::Asked { culprit, .. } = std::mem::take(&mut self.replacing) else { return };
        let Culprit { prompt_id, originator, reason } = culprit;
        let readers = self.has_readers();
        match succession {
            Succession::Done { memory } => {
                self.straying = Straying::default();
                self.begin_long_pause(step);
                if readers {
                    step.publish(Some(prompt_id.clone()), originator, News::AgentReplaced { reason, memory });
                }
                // The host answers the prompt first. Should it not have: no agent holds it any more.
                match self.turn {
                    Some(_) => self.settle(&prompt_id, &Answer::replaced(), step),
                    None => self.dispatch_next(step),
                }
            }
            Succession::Kept { code, message } => {
                self.replacing = Replacing::Kept;
                if readers {
                    step.publish(Some(prompt_id), originator, News::AgentKept { reason, code, message });
                }
                self.forget_kept();
                self.dispatch_next(step);
            }
            Succession::Needless => self.dispatch_next(step),
            Succession::Lost if matches!(self.phase, Phase::Open) => self.await_loss(step),
            Succession::Lost => {}
        }
    }

    /// The next turn has its own grace period.
    pub(super) fn forget_kept(&mut self) {
        if self.turn.is_none() && matches!(self.replacing, Replacing::Kept) {
            self.replacing = Replacing::No;
        }
    }

    /// The host did not answer: there is no telling which agent it has, so the session ends as if it had none.
    pub(super) fn stop_waiting_for_successor(&mut self, step: &mut Step) {
        if self.is_replacing() && matches!(self.phase, Phase::Open) {
            self.replacing = Replacing::No;
            self.await_loss(step);
            step.tell(Tell::Close(FlushOrigin::ChannelClosed));
        }
    }
}
