//! A notation for what happens to a session and for what comes of it.
//!
//! | happens | means |
//! |---|---|
//! | `admit A`, `admit A 300`, `admit A run 300`, `admit A 300 200` | a prompt is submitted, with a deadline in ms, a run deadline, both |
//! | `alone A` | a prompt is submitted that is to run next or not at all |
//! | `retry A` | a prompt is submitted as the repetition of a failed one |
//! | `witness A`, `witness A 300`, `witness A run 300` | a prompt is submitted that has a witness, with a deadline, a run deadline |
//! | `go A`, `drop A`, `confirm A` | A's witness lets it run, or not; it has the outcome |
//! | `written A` | the host says that the agent has the whole of A |
//! | `strayed` | the host says that the agent has spoken outside of its turns |
//! | `unreadable` | the agent wrote something that cannot be read |
//! | `user m` | the agent says what it takes for the user's message m |
//! | `steer A` | a client says something into the running turn |
//! | `drain`, `drain A`, `drain foreign` | the agent asks for it; for the turn of A; for another session |
//! | `cancel`, `remove A` | a client cancels, or removes |
//! | `settle A end_turn` | the agent answers A; `settle ? …` whatever it holds |
//! | `host A completed end_turn` | the same with the host's stamp |
//! | `fail A`, `hostfail A` | the agent, or the host, answers A with an error |
//! | `hostgone A` | the host answers A with the word that its agent is gone |
//! | `hostreplaced A` | the host answers A with the word that it had to end the agent |
//! | `replaced`, `kept`, `needless`, `noagent` | the host answers the request for another agent |
//! | `say hi`, `say m: hi`, `call c`, `done c` | the agent says something, as a piece of message m; it begins and ends a tool call |
//! | `ask q`, `ask q r 7`, `odd` | the agent asks, `q` being our id; the same asked as `r` under its own id `7`; it asks for what nobody does |
//! | `vote q yes`, `vote q yes c`, `vote q yes c afar` | somebody votes; client c does; from another machine |
//! | `join c`, `leave c` | a client is registered, and is gone |
//! | `wait 300` | time passes, and what is due happens |
//! | `tick 300` | time passes, and nobody looks at what is due |
//! | `clock -300`, `clock 300` | somebody sets the wall clock, back or forward; no time passes |
//! | `runover A` | A's run deadline is said to have come, as it may be by a clock that is late |
//! | `hold`, `shut` | somebody keeps the session still; and what is submitted meanwhile is refused |
//! | `rewound`, `release` | whoever does has taken the conversation back, and is done |
//! | `close`, `kill`, `shutdown`, `lost`, `exited` | the session ends; `exited` is `lost` after the host's report |
//!
//! Effects are words too: `~ …` for what a witness is told, `record A`, `receipt A`, `> prompt A` for what the agent is told, `complete A end_turn`, …

use std::collections::BTreeSet;
use std::sync::Arc;

use acp::RequestId;

use crate::effect::{Effect, Reply, Tell, Told, Word};
use crate::event::{Event, Exit, News};
use acp::Speech;

use crate::incoming::{Ask, Offer, Update};
use crate::input::Input;
use crate::limits::Timeouts;
use crate::moment::{Moment, Steady};
use crate::outcome::{Answer, HostWord};
use crate::prompt::{Prompt, Receipt};
use crate::session::Session;
use crate::session::steering::{Drain, Said};
use crate::steering::Steered;
use crate::succession::Succession;
use crate::witness::Cause;
use crate::{
    AdmitError, Announcement, Deadline, Decision, HoldError, InputWritten, Meanwhile, Mediation, NotOpen, Reason,
    Resolution, Terminal, Vote, VoteOutcome, Voter,
};

pub(super) const TIMEOUTS: Timeouts = Timeouts {
    initialize_ms: 0,
    restore_ms: 0,
    settle_ms: 1_000,
    end_ms: 500,
    grace_ms: 30_000,
    answer_ms: 600,
    obey_ms: 300,
};

/// A session at play, and the time there.
pub(super) struct Play {
    pub(super) session: Session,
    pub(super) now_ms: u64,
    /// By how much the wall clock was set since.
    set_ms: i64,
    clients: BTreeSet<Arc<str>>,
}

impl Play {
    pub(super) fn new() -> Self {
        Self::under(Mediation::default())
    }

    /// A session whose questions are decided by other rules than the first vote.
    pub(super) fn under(mediation: Mediation) -> Self {
        // The pause behind its opening is over.
        let mut play = Self::opened(mediation);
        play.session.witnessing.pause_until = Steady(0);
        play
    }

    /// A session that has gone live just now.
    pub(super) fn opened(mediation: Mediation) -> Self {
        Self {
            session: Session::new(5, TIMEOUTS, mediation, Moment::of(0)),
            now_ms: 0,
            set_ms: 0,
            clients: BTreeSet::new(),
        }
    }

    /// Lets one statement happen.
    pub(super) fn act(&mut self, statement: &str) -> Vec<Effect> {
        let words: Vec<&str> = statement.split_whitespace().collect();
        if let ["wait", ms] = words[..] {
            return self.wait(ms.parse().unwrap());
        }
        match words[..] {
            ["join", client] => {
                self.clients.insert(client.into());
                return Vec::new();
            }
            ["leave", client] => {
                self.clients.remove(client);
            }
            ["tick", ms] => {
                self.now_ms += ms.parse::<u64>().unwrap();
                return Vec::new();
            }
            ["clock", ms] => {
                self.set_ms += ms.parse::<i64>().unwrap();
                return Vec::new();
            }
            _ => {}
        }
        let input = self.input(&words);
        self.session.step(input, self.now())
    }

    fn now(&self) -> Moment {
        Moment { at_ms: self.now_ms.saturating_add_signed(self.set_ms), steady: Steady(self.now_ms) }
    }

    /// Time passes; what comes due happens at its time.
    fn wait(&mut self, ms: u64) -> Vec<Effect> {
        let until_ms = self.now_ms + ms;
        let mut effects = Vec::new();
        while let Some((due, input)) = self.session.due().filter(|(due, _)| due.0 <= until_ms) {
            self.now_ms = self.now_ms.max(due.0);
            effects.extend(self.session.step(input, self.now()));
        }
        self.now_ms = until_ms;
        effects
    }

    /// The prompt that runs, or would if its witness had let it.
    fn held(&self) -> Option<String> {
        let asked = || self.session.asked().map(|asked| asked.to_string());
        let turn = self.session.turn.as_ref().or_else(|| self.session.settling());
        turn.map(|turn| turn.entry.prompt_id.to_string()).or_else(asked)
    }

    fn input(&self, words: &[&str]) -> Input {
        let named = |id: &str| if id == "?" { self.held().unwrap_or_default() } else { id.to_owned() };
        let settled = |id: &str, answer| Input::Settled { prompt_id: named(id).as_str().into(), answer };
        match *words {
            ["admit", id] => admit(id, Prompt::default()),
            ["admit", id, "of", client] => {
                admit(id, Prompt { originator: Some(client.to_owned()), ..Prompt::default() })
            }
            ["leave", client] => Input::ClientGone { client_id: client.to_owned() },
            ["admit", id, "run", ms] => admit(id, Prompt { run_deadline_ms: ms.parse().ok(), ..Prompt::default() }),
            ["admit", id, ms, run] => {
                let (deadline_ms, run_deadline_ms) = (ms.parse().ok(), run.parse().ok());
                admit(id, Prompt { deadline_ms, run_deadline_ms, ..Prompt::default() })
            }
            ["admit", id, ms] => admit(id, Prompt { deadline_ms: ms.parse().ok(), ..Prompt::default() }),
            ["alone", id] => admit(id, Prompt { alone: true, ..Prompt::default() }),
            ["retry", id] => admit(id, Prompt { retry: true, ..Prompt::default() }),
            // A witness that it is said to have means nothing.
            ["steer", id] => match admit(id, Prompt { witnessed: true, ..Prompt::default() }) {
                Input::Admit { prompt, receipt } => Input::Steer { prompt, receipt },
                input => input,
            },
            ["drain"] => drain(None, true),
            ["drain", "foreign"] => drain(None, false),
            ["drain", id] => drain(Some(id), true),
            ["cancel"] => Input::Cancel { prompt_id: None, by: Some("client".into()) },
            ["cancel", id] => Input::Cancel { prompt_id: Some(id.to_owned()), by: Some("client".into()) },
            ["remove", id] => Input::Remove { prompt_id: named(id), by: None },
            ["settle", id, stop] => settled(id, answer(stop, None, None)),
            ["host", id, "completed", stop] => settled(id, answer(stop, Some(HostWord::Completed), None)),
            ["host", id, "cancelled", stop] => settled(id, answer("cancelled", Some(HostWord::Cancelled), Some(stop))),
            ["fail", id] => settled(id, failure("-32603", false)),
            ["hostfail", id] => settled(id, failure("transcript_unwritable", true)),
            ["hostgone", id] => settled(id, failure("channel_closed", true)),
            ["runover", id] => Input::DeadlineExpired { prompt_id: id.into(), deadline: Deadline::Run },
            ["hostreplaced", id] => settled(id, Answer::replaced()),
            ["replaced"] => Input::Replaced(Succession::Done { memory: Some("fresh".to_owned()) }),
            ["kept"] => Input::Replaced(Succession::Kept { code: "no".to_owned(), message: String::new() }),
            ["needless"] => Input::Replaced(Succession::Needless),
            ["noagent"] => Input::Replaced(Succession::Lost),
            ["say", id, ref words @ ..] if id.ends_with(':') => said(words, id.strip_suffix(':')),
            ["say", ref words @ ..] => said(words, None),
            ["call", id] => update(Speech::ToolCall { call_id: id.to_owned() }),
            ["done", id] => update(Speech::ToolCallUpdate { call_id: id.to_owned(), over: true }),
            ["ask", id] => self.asked(id, ask(id)),
            ["ask", id, call, number] => {
                let agent_request = RequestId::parse(number).unwrap();
                self.asked(id, Ask { agent_request, tool_call: format!("{{{call:?}:1}}"), ..ask(id) })
            }
            ["odd"] => Input::AskedUnknown { agent_request: RequestId::from(7), method: "odd".to_owned() },
            ["vote", id, choice] => vote(id, choice, Voter::default()),
            ["vote", id, choice, client] => vote(id, choice, Voter { client_id: Some(client.into()), is_local: true }),
            ["vote", id, choice, client, "afar"] => {
                vote(id, choice, Voter { client_id: Some(client.into()), is_local: false })
            }
            ["hold"] => Input::Hold { meanwhile: Meanwhile::Wait },
            ["shut"] => Input::Hold { meanwhile: Meanwhile::Refuse },
            ["release"] => Input::Release,
            ["rewound"] => Input::Rewound { announcement: rewound(), by: None },
            ["close"] => Input::Close { reason: "client_close".to_owned(), closed_by: None },
            ["kill"] => Input::Kill,
            ["shutdown"] => Input::Shutdown,
            ["lost"] => Input::ChannelLost { exit: None },
            ["exited"] => Input::ChannelLost { exit: Some(Exit { code: Some(1), signal: None }) },
            _ => self.witness_input(words),
        }
    }

    /// What has to do with witnesses.
    fn witness_input(&self, words: &[&str]) -> Input {
        let named = |id: &str| if id == "?" { self.held().unwrap_or_default() } else { id.to_owned() };
        match *words {
            ["witness", id] => admit(id, Prompt { witnessed: true, ..Prompt::default() }),
            ["witness", id, "run", ms] => {
                admit(id, Prompt { witnessed: true, run_deadline_ms: ms.parse().ok(), ..Prompt::default() })
            }
            ["witness", id, ms] => {
                admit(id, Prompt { witnessed: true, deadline_ms: ms.parse().ok(), ..Prompt::default() })
            }
            ["go", id] => Input::Dispatch { prompt_id: named(id), go: true },
            ["drop", id] => Input::Dispatch { prompt_id: named(id), go: false },
            ["confirm", id] => Input::Confirm { prompt_id: named(id) },
            ["written", id] => Input::Written { prompt_id: named(id) },
            ["strayed"] => Input::Strayed,
            ["unreadable"] => Input::Unreadable,
            ["user", id] => update(Speech::User { message_id: Some(id.to_owned()), content: format!("{id:?}") }),
            _ => panic!("no such statement: {words:?}"),
        }
    }

    fn asked(&self, request_id: &str, ask: Ask) -> Input {
        Input::Asked { ask, request_id: request_id.into(), registered: self.clients.clone() }
    }
}

fn admit(id: &str, prompt: Prompt) -> Input {
    let prompt = Prompt { content: format!("[{id:?}]"), text: id.to_owned(), ..prompt };
    let receipt = Receipt { prompt_id: id.to_owned(), last_event_id: 0, event_epoch: "epoch".to_owned() };
    Input::Admit { prompt, receipt }
}

fn drain(prompt_id: Option<&str>, is_ours: bool) -> Input {
    Input::Drain(Drain { agent_request: RequestId::from(9), prompt_id: prompt_id.map(str::to_owned), is_ours })
}

fn answer(stop_reason: &str, host: Option<HostWord>, agent_stop_reason: Option<&str>) -> Answer {
    let (stop_reason, agent_stop_reason) = (Some(stop_reason.to_owned()), agent_stop_reason.map(str::to_owned));
    Answer::Settled { stop_reason, host, agent_stop_reason, branch_point: None }
}

fn failure(code: &str, from_host: bool) -> Answer {
    let input_written = from_host.then_some(InputWritten::No);
    Answer::Failed { message: "no".to_owned(), code: code.to_owned(), from_host, input_written }
}

fn rewound() -> Announcement {
    Announcement::SessionRewound {
        prompt_id: "A".to_owned(),
        target_turn_index: 0,
        files_changed: "[]".to_owned(),
        files_failed: "[]".to_owned(),
        memory: Some("cut".to_owned()),
    }
}

fn update(speech: Speech) -> Input {
    Input::Updated(Update { raw: "{}".to_owned(), speech, state: None, message_id: None, whose: acp::Whose::Own })
}

fn said(words: &[&str], message_id: Option<&str>) -> Input {
    let (speech, message_id) = (Speech::Text(words.join(" ")), message_id.map(str::to_owned));
    Input::Updated(Update { raw: "{}".to_owned(), speech, state: None, message_id, whose: acp::Whose::Own })
}

fn ask(id: &str) -> Ask {
    let offer = |id: &str, rejects_once| Offer { id: id.to_owned(), raw: format!("\"{id}\""), rejects_once };
    Ask {
        agent_request: RequestId::string(id),
        tool_call: "{}".to_owned(),
        options: "[]".to_owned(),
        offers: vec![offer("yes", false), offer("reject", true)],
        news: Speech::Other,
    }
}

fn vote(request_id: &str, choice: &str, voter: Voter) -> Input {
    let vote = match choice {
        "cancelled" => Vote::Cancelled,
        option_id => Vote::Selected { option_id: option_id.to_owned(), answers: None },
    };
    Input::Vote { request_id: request_id.to_owned(), vote, voter }
}

/// Plays a script row by row and compares what comes of each statement.
pub(super) fn check(rows: &[(&str, &str)]) {
    check_under(Mediation::default(), rows);
}

/// The same in a session whose questions are decided by other rules than the first vote.
pub(super) fn check_under(mediation: Mediation, rows: &[(&str, &str)]) {
    let mut play = Play::under(mediation);
    for (statement, expected) in rows {
        let effects: Vec<String> = play.act(statement).iter().map(word).collect();
        assert_eq!(effects.join(", "), *expected, "after {statement:?} in {rows:#?}");
    }
}

/// Plays a script and gives the session.
pub(super) fn after(script: &str) -> Session {
    let mut play = Play::new();
    for statement in script.split(';') {
        play.act(statement);
    }
    play.session
}

/// An effect in a few words.
pub(super) fn word(effect: &Effect) -> String {
    match effect {
        Effect::RecordAdmission { prompt_id, .. } => format!("record {prompt_id}"),
        Effect::RecordTerminal { prompt_id, terminal, .. } => format!("record {prompt_id} {}", terminal_word(terminal)),
        Effect::RecordWish { prompt_id, .. } => format!("wish {prompt_id}"),
        Effect::Reply(reply) => reply_word(reply),
        Effect::Publish(event) => event_word(event),
        Effect::Tell(tell) => format!("> {}", tell_word(tell)),
        Effect::Witness { prompt_id, word } => format!("~ {}", witness_word(prompt_id, word)),
        Effect::EndStreams => "end".to_owned(),
        Effect::Forget => "forget".to_owned(),
    }
}

fn terminal_word(terminal: &Terminal) -> String {
    let detail = terminal.code().or(terminal.stop_reason()).unwrap_or("-");
    if detail == terminal.state() { detail.to_owned() } else { format!("{} {detail}", terminal.state()) }
}

fn witness_word(id: &str, word: &Word) -> String {
    let told = |told: &Told| {
        let strayed = if told.strayed { " strayed" } else { "" };
        let unreadable = if told.unreadable { " unreadable" } else { "" };
        format!("{} {}{strayed}{unreadable}", terminal_word(&told.terminal), told.input_written.as_str())
    };
    match word {
        Word::Dispatching { baseline, .. } => {
            format!("next {id} after {} {}", baseline.turn, baseline.prompt_id.as_deref().unwrap_or("-"))
        }
        Word::Written => format!("written {id}"),
        Word::HeardUpdate => format!("heard {id}"),
        Word::HeardUser { message_id, .. } => format!("user {} {id}", message_id.as_deref().unwrap_or("-")),
        Word::Settling(outcome) => format!("settling {id} {}", told(outcome)),
        Word::Ended { cause, told: outcome } => format!("ended {id} {} {}", told(outcome), cause_word(*cause)),
        Word::Late(outcome) => format!("late {id} {}", told(outcome)),
    }
}

fn cause_word(cause: Cause) -> &'static str {
    match cause {
        Cause::Answered => "answered",
        Cause::Dropped => "dropped",
        Cause::TakenBack => "taken back",
        Cause::Expired(_) => "expired",
        Cause::Flushed(_) => "flushed",
    }
}

fn reply_word(reply: &Reply) -> String {
    match reply {
        Reply::Admitted(receipt) => format!("receipt {}", receipt.prompt_id),
        Reply::NotAdmitted(AdmitError::QueueFull { pending, .. }) => format!("full {pending}"),
        Reply::NotAdmitted(AdmitError::Known { same_content, .. }) => format!("known {same_content}"),
        Reply::NotAdmitted(AdmitError::Busy) => "busy".to_owned(),
        Reply::NotAdmitted(AdmitError::NotContent) => "not content".to_owned(),
        Reply::NotAdmitted(AdmitError::Closing) | Reply::NotOpen(NotOpen::Closing) => "closing".to_owned(),
        Reply::NotAdmitted(AdmitError::Gone) | Reply::NotOpen(NotOpen::Gone) => "gone".to_owned(),
        Reply::NotHeld(HoldError::Closing) => "closing".to_owned(),
        Reply::NotHeld(HoldError::Gone) => "gone".to_owned(),
        Reply::NotHeld(HoldError::Busy) => "busy".to_owned(),
        Reply::Held { at_ms } => format!("held {at_ms}"),
        Reply::Steered(Steered::Accepted(receipt)) => format!("steered {}", receipt.prompt_id),
        Reply::Steered(Steered::Idle) => "idle".to_owned(),
        Reply::Done => "ok".to_owned(),
        Reply::Removed(removed) => format!("removed {removed}"),
        Reply::Voted(VoteOutcome::Recorded) => "voted".to_owned(),
        Reply::Voted(VoteOutcome::AlreadyResolved(resolution)) => format!("too late {}", resolution_word(resolution)),
        Reply::Voted(VoteOutcome::Repeated) => "voted before".to_owned(),
        Reply::Voted(VoteOutcome::Forbidden(why)) => format!("no vote {}", why.as_str()),
        Reply::Voted(VoteOutcome::InvalidOption) => "no such option".to_owned(),
        Reply::Voted(VoteOutcome::Unknown) => "no such request".to_owned(),
    }
}

fn event_word(event: &Event) -> String {
    let about = event.prompt_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    match &event.news {
        News::Echo { .. } => format!("echo{about}"),
        News::Update { .. } => format!("update{about}"),
        News::PendingAdded { .. } => format!("added{about}"),
        News::PendingStarted { .. } => format!("started{about}"),
        News::PendingCompleted { removed: true } => format!("taken{about}"),
        News::PendingCompleted { removed: false } => format!("left{about}"),
        News::MidTurnInjected { said } => format!("injected {}{about}", ids(said)),
        News::PromptCancelled { forward_failed: true } => format!("refused{about}"),
        News::PromptCancelled { forward_failed: false } => format!("cancel{about}"),
        News::TurnComplete { stop_reason, .. } => format!("complete{about} {stop_reason}"),
        News::TurnError { code, .. } => format!("error{about} {}", code.as_deref().unwrap_or("-")),
        News::PermissionRequest { request_id, .. } => format!("ask {request_id}"),
        News::PermissionResolved { request_id, resolution } => {
            format!("resolved {request_id} {}", resolution_word(resolution))
        }
        News::PermissionPartialVote { request_id, tally } => {
            format!("partial {request_id} {} of {}", tally.received, tally.quorum)
        }
        News::PermissionForbidden { request_id, why, .. } => format!("forbidden {request_id} {}", why.as_str()),
        News::PermissionAlreadyResolved { request_id, decision } => {
            format!("was resolved {request_id} {}", decision_word(decision))
        }
        News::AgentReplaced { reason, memory } => {
            format!("replaced{about} {} {}", reason.as_str(), memory.as_deref().unwrap_or("-"))
        }
        News::AgentKept { reason, code, .. } => format!("kept{about} {} {code}", reason.as_str()),
        News::Announced(announcement) => announcement.kind().to_owned(),
        News::Recording(recording) => recording.kind().to_owned(),
        News::SessionClosed { reason, .. } => format!("closed {reason}"),
        News::SessionDied { reason, .. } => format!("died {reason}"),
    }
}

/// The ids of messages, or a dash where there are none.
fn ids(said: &[Said]) -> String {
    let ids: Vec<&str> = said.iter().map(|said| said.id.as_str()).collect();
    if ids.is_empty() { "-".to_owned() } else { ids.join("+") }
}

fn tell_word(tell: &Tell) -> String {
    match tell {
        Tell::Prompt { prompt_id, .. } => format!("prompt {prompt_id}"),
        Tell::Cancel => "cancel".to_owned(),
        Tell::Replace { prompt_id } => format!("replace {prompt_id}"),
        Tell::Ruling(ruling) => {
            let id = ruling.agent_request.as_raw().trim_matches('"');
            format!("ruling {id} {}", ruling.option.as_deref().unwrap_or("cancelled"))
        }
        Tell::Drained { said, queued, .. } => {
            format!("drained {}{}", ids(said), if *queued { " and more" } else { "" })
        }
        Tell::Unsupported { method, .. } => format!("unsupported {method}"),
        Tell::Close(origin) => format!("close {}", origin.code()),
    }
}

/// The decision, and why it was made if not by a vote.
fn resolution_word(resolution: &Resolution) -> String {
    let decision = decision_word(&resolution.decision);
    match resolution.reason {
        Reason::Vote => decision.to_owned(),
        reason => format!("{decision} {}", reason.as_str()),
    }
}

fn decision_word(decision: &Decision) -> &str {
    match decision {
        Decision::Selected { option_id } => option_id,
        Decision::Cancelled => "cancelled",
    }
}
