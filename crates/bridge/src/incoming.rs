//! What the agent says, as far as a rule needs to know it. The raw text goes on as it is.

use std::borrow::Cow;

use acp::{Message, RequestId, RpcError, Speech, Whose, raw_at, string_at};

use crate::event::Exit;
use crate::limits::{BRANCH_POINT_BYTES_MAX, STOP_REASON_UNITS_MAX};
use crate::outcome::{Answer, HostWord};
use crate::policy::CANCELLED;
use crate::recording::Recording;
use crate::witness::Process;
use crate::{Clipped, InputWritten};

/// An update of the session by the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Update {
    /// The update: raw JSON object text.
    pub(crate) raw: String,
    /// What it means to a turn.
    pub(crate) speech: Speech,
    /// What it means to clients that join later.
    pub(crate) state: Option<StateKind>,
    /// The message of the agent's that it is a piece of, if the agent gives it an id.
    pub(crate) message_id: Option<String>,
    /// Whether it is certain that the agent says it of this session.
    pub(crate) whose: Whose,
}

/// Updates that are state: sent once, and needed by those who come later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StateKind {
    AvailableCommands,
    CurrentMode,
    ConfigOptions,
    Info,
    Usage,
}

/// A request for permission by the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The agent's id for it, which the answer repeats byte for byte.
    pub(crate) agent_request: RequestId,
    /// Raw JSON object text.
    pub(crate) tool_call: String,
    /// Raw JSON array text.
    pub(crate) options: String,
    /// What can be chosen.
    pub(crate) offers: Vec<Offer>,
    /// What it is to the turn: it may be the first sign of a call.
    pub(crate) news: Speech,
}

/// One option of a request for permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Its id.
    pub(crate) id: String,
    /// The raw JSON of its id, which the answer repeats.
    pub(crate) raw: String,
    /// It denies what is asked, and nothing beyond that.
    pub(crate) rejects_once: bool,
}

/// The parameters of `session/update`. `None` when there is no update in them.
pub(crate) fn update(params: &str, whose: Whose) -> Option<Update> {
    let raw = raw_at(params, &["update"]).filter(|raw| raw.starts_with('{'))?;
    let kind = string_at(raw, &["sessionUpdate"]).unwrap_or_default();
    let state = match kind.as_str() {
        "available_commands_update" => Some(StateKind::AvailableCommands),
        "current_mode_update" => Some(StateKind::CurrentMode),
        "config_option_update" => Some(StateKind::ConfigOptions),
        "session_info_update" => Some(StateKind::Info),
        "usage_update" => Some(StateKind::Usage),
        _ => None,
    };
    let raw = if state == Some(StateKind::AvailableCommands) { without_skill_texts(raw) } else { raw.to_owned() };
    let message_id = (kind == "agent_message_chunk").then(|| string_at(&raw, &["messageId"])).flatten();
    Some(Update { speech: Speech::read(&raw), raw, state, message_id, whose })
}

/// One agent sends the full texts of its skills with its commands, half a megabyte for each session; no client reads them.
fn without_skill_texts(update: &str) -> String {
    const TEXTS: &str = "availableSkillDetails";
    match raw_at(update, &["_meta"]).filter(|meta| raw_at(meta, &[TEXTS]).is_some()) {
        Some(meta) => acp::with_member(update, "_meta", &crate::json::without(meta, TEXTS)),
        None => update.to_owned(),
    }
}

/// The parameters of `session/request_permission`. `None` when nothing is offered. An option under the name that stands for a
/// cancelled vote cannot be chosen, nor one of several under one name: the agent could take a refusal for the permission.
pub(crate) fn ask(agent_request: &RequestId, params: &str, whose: Whose) -> Option<Ask> {
    let options = raw_at(params, &["options"])?;
    let offered: Vec<&serde_json::value::RawValue> = serde_json::from_str(options).ok()?;
    let offers = offered.iter().filter_map(|option| {
        let raw = raw_at(option.get(), &["optionId"])?;
        let id = acp::decode_string(raw).filter(|id| id != CANCELLED)?;
        let rejects_once = string_at(option.get(), &["kind"]).as_deref() == Some("reject_once");
        Some(Offer { id, raw: raw.to_owned(), rejects_once })
    });
    let offers: Vec<Offer> = offers.collect();
    let is_only = |offer: &&Offer| offers.iter().filter(|other| other.id == offer.id).count() == 1;
    Some(Ask {
        agent_request: agent_request.clone(),
        tool_call: raw_at(params, &["toolCall"]).unwrap_or("{}").to_owned(),
        options: options.to_owned(),
        news: match (whose, raw_at(params, &["toolCall"])) {
            (Whose::Own, Some(call)) => Speech::asked_about(call),
            (Whose::Unclear, Some(_)) => Speech::Unclear,
            (Whose::Other, _) | (_, None) => Speech::Other,
        },
        offers: offers.iter().filter(is_only).cloned().collect(),
    })
}

/// The answer to a prompt. Whatever the agent answers ends the turn, however odd it is.
pub(crate) fn answer(message: &Message) -> Answer {
    if let Some(error) = message.rpc_error() {
        return failure(&error);
    }
    let result = message.result().unwrap_or("null");
    let stamp = |key| string_at(result, &["_meta", "turnd/turn", key]);
    let host = match stamp("state").as_deref() {
        Some("completed") => Some(HostWord::Completed),
        Some("cancelled") => Some(HostWord::Cancelled),
        _ => None,
    };
    Answer::Settled {
        stop_reason: string_at(result, &["stopReason"]).map(stop_reason),
        host,
        agent_stop_reason: stamp("agentStopReason").map(stop_reason),
        branch_point: raw_at(result, &["_meta", "qwen.branchPoint"])
            .filter(|point| point.starts_with('{') && point.len() <= BRANCH_POINT_BYTES_MAX)
            .map(str::to_owned),
    }
}

/// A terminal has to reach every reader, so nothing that an agent puts into one is without a bound.
fn stop_reason(word: String) -> String {
    Clipped::new(&word, STOP_REASON_UNITS_MAX).text
}

fn failure(error: &RpcError) -> Answer {
    let data = |key| error.data.as_deref().and_then(|data| string_at(data, &[key]));
    let host_code = data("turnd/code");
    let input_written = match data("turnd/inputWritten").as_deref() {
        Some("no") => Some(InputWritten::No),
        Some("yes") => Some(InputWritten::Yes),
        Some("maybe") => Some(InputWritten::Maybe),
        _ => None,
    };
    Answer::Failed {
        message: error.details().unwrap_or_else(|| error.message.clone()),
        from_host: host_code.is_some(),
        code: host_code.unwrap_or_else(|| error.code.to_string()),
        input_written,
    }
}

/// The parameters of the host's `turnd/agent_exited`.
pub(crate) fn exit(params: &str) -> Exit {
    let number = |key| raw_at(params, &[key]).and_then(|raw| raw.parse().ok());
    Exit { code: number("exitCode"), signal: number("signal") }
}

/// The host's answer that opens a session or replaces the agent, without the process in it, which is no client's business; and that process.
pub(crate) fn without_process(answer: &str) -> (Cow<'_, str>, Option<Process>) {
    const PROCESS: &str = "turnd/process";
    let Some(meta) = raw_at(answer, &["_meta"]) else { return (answer.into(), None) };
    let Some(told) = raw_at(meta, &[PROCESS]) else { return (answer.into(), None) };
    let rest = crate::json::without(meta, PROCESS);
    let is_empty = rest.trim_matches(['{', '}', ' ']).is_empty();
    let answer =
        if is_empty { crate::json::without(answer, "_meta") } else { acp::with_member(answer, "_meta", &rest) };
    (answer.into(), process(told))
}

fn process(process: &str) -> Option<Process> {
    Some(Process {
        pid: raw_at(process, &["pid"])?.parse().ok()?,
        start_ticks: raw_at(process, &["startTicks"])?.parse().ok()?,
        boot_id: string_at(process, &["bootId"])?,
    })
}

/// The parameters of the host's `turnd/recording_degraded`.
pub(crate) fn recording(params: &str) -> Recording {
    let number = |key| raw_at(params, &[key]).and_then(|raw| raw.parse().ok()).unwrap_or(0);
    let given_up = raw_at(params, &["givenUp"]) == Some("true");
    Recording { held_records: number("heldRecords"), held_bytes: number("heldBytes"), given_up }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speech_of(update_raw: &str) -> Speech {
        update(&format!(r#"{{"sessionId":"s","update":{update_raw}}}"#), Whose::Own).unwrap().speech
    }

    fn answer_to(rest: &str) -> Answer {
        answer(&Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,{rest}}}"#).into()).unwrap())
    }

    #[test]
    fn text_of_the_agent_is_text_even_with_half_a_surrogate_pair() {
        let chunk =
            |text| format!(r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#);
        assert_eq!(speech_of(&chunk("hi")), Speech::Text("hi".into()));
        assert_eq!(speech_of(&chunk(r"cut \ud83d")), Speech::Text("cut \u{fffd}".into()));
    }

    #[test]
    fn what_is_not_the_agents_own_text_is_none() {
        let others = [
            r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"image","text":"x"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"sub"},"_meta":{"parentToolCallId":"c"}}"#,
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"sub"},"_meta":{"claudeCode":{"parentToolUseId":"c"}}}"#,
            r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"sub"},"_meta":{"parentToolCallId":"c"}}"#,
            r#"{"sessionUpdate":7}"#,
            "{}",
        ];
        for raw in others {
            assert_eq!(speech_of(raw), Speech::Other, "{raw}");
        }
        let null_parent = r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"top"},"_meta":{"parentToolCallId":null}}"#;
        assert_eq!(speech_of(null_parent), Speech::Text("top".into()));
    }

    #[test]
    fn what_the_agent_takes_for_the_users_words_is_told_with_its_id() {
        let user = |message_id: Option<&str>, content: &str| Speech::User {
            message_id: message_id.map(str::to_owned),
            content: content.to_owned(),
        };
        let named =
            r#"{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"\ud83d"}}"#;
        assert_eq!(speech_of(named), user(Some("m"), r#"{"type":"text","text":"\ud83d"}"#));
        assert_eq!(speech_of(r#"{"sessionUpdate":"user_message_chunk"}"#), user(None, "null"));
    }

    #[test]
    fn a_tool_call_is_over_when_it_completed_or_failed() {
        let update = |status| {
            speech_of(&format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c","status":{status}}}"#))
        };
        let expected = |over| Speech::ToolCallUpdate { call_id: "c".into(), over };
        for (status, over) in
            [("\"completed\"", true), ("\"failed\"", true), ("\"in_progress\"", false), ("null", false)]
        {
            assert_eq!(update(status), expected(over), "{status}");
        }
        assert_eq!(speech_of(r#"{"sessionUpdate":"tool_call"}"#), Speech::ToolCall { call_id: String::new() });
    }

    #[test]
    fn an_update_without_an_update_is_none() {
        for params in ["{}", "null", r#"{"update":null}"#, r#"{"update":[]}"#, "[]"] {
            assert_eq!(update(params, Whose::Own), None, "{params}");
        }
    }

    #[test]
    fn the_raw_update_is_kept_but_for_the_skill_texts() {
        let raw = r#"{ "sessionUpdate" : "plan", "entries": [] }"#;
        assert_eq!(update(&format!(r#"{{"update":{raw}}}"#), Whose::Own).unwrap().raw, raw);
        let commands =
            r#"{"sessionUpdate":"available_commands_update","_meta":{"availableSkillDetails":{"a":"b"},"x":1}}"#;
        let update = update(&format!(r#"{{"update":{commands}}}"#), Whose::Own).unwrap();
        assert_eq!(update.raw, r#"{"sessionUpdate":"available_commands_update","_meta":{"x":1}}"#);
        assert_eq!(update.state, Some(StateKind::AvailableCommands));
    }

    #[test]
    fn a_request_without_options_to_choose_from_is_none_of_ours() {
        let id = RequestId::from(0);
        for params in ["{}", r#"{"options":null}"#, r#"{"options":{}}"#] {
            assert_eq!(ask(&id, params, Whose::Own), None, "{params}");
        }
        let odd =
            ask(&id, r#"{"options":[{"name":"no id"},{"optionId":7},{"optionId":"\ud83d"}]}"#, Whose::Own).unwrap();
        let half = Offer { id: "\u{fffd}".to_owned(), raw: r#""\ud83d""#.to_owned(), rejects_once: false };
        assert_eq!(odd.offers, [half]);
        assert_eq!(odd.tool_call, "{}");
    }

    #[test]
    fn an_option_may_say_that_it_rejects_once_and_none_may_take_the_name_of_a_cancelled_vote() {
        let options = r#"[{"optionId":"n","kind":"reject_once"},{"optionId":"N","kind":"reject_always"},
            {"optionId":"__cancelled__","kind":"reject_once"},{"optionId":"__c\u0061ncelled__"},{"optionId":"y","kind":7}]"#;
        let asked = ask(&RequestId::from(0), &format!(r#"{{"options":{options}}}"#), Whose::Own).unwrap();
        let offers: Vec<_> = asked.offers.iter().map(|offer| (offer.id.as_str(), offer.rejects_once)).collect();
        assert_eq!(offers, [("n", true), ("N", false), ("y", false)]);
    }

    #[test]
    fn options_under_one_name_cannot_be_chosen() {
        let options = r#"[{"optionId":"a","kind":"allow_once"},{"optionId":"n","kind":"reject_once"},{"optionId":"\u0061","kind":"reject_once"}]"#;
        let asked = ask(&RequestId::from(0), &format!(r#"{{"options":{options}}}"#), Whose::Own).unwrap();
        assert_eq!(asked.offers.iter().map(|offer| offer.id.as_str()).collect::<Vec<_>>(), ["n"]);
    }

    #[test]
    fn whatever_answers_a_prompt_is_an_answer() {
        let nothing = Answer::Settled { stop_reason: None, host: None, agent_stop_reason: None, branch_point: None };
        assert_eq!(answer_to(r#""result":null"#), nothing);
        assert_eq!(
            answer_to(r#""result":{"stopReason":7,"_meta":{"turnd/turn":"x","qwen.branchPoint":null}}"#),
            nothing
        );
        assert!(matches!(answer_to(r#""error":"odd""#), Answer::Failed { from_host: false, .. }));
    }

    #[test]
    fn an_answer_is_bounded_whatever_the_agent_puts_into_it() {
        let long = "x".repeat(5_000);
        let answer = answer_to(&format!(
            r#""result":{{"stopReason":"{long}","_meta":{{"turnd/turn":{{"agentStopReason":"{long}"}},"qwen.branchPoint":{{"a":"{long}"}}}}}}"#
        ));
        let Answer::Settled { stop_reason, agent_stop_reason, branch_point, .. } = answer else { panic!("no answer") };
        let bounded = Some("x".repeat(STOP_REASON_UNITS_MAX));
        assert_eq!((stop_reason, agent_stop_reason, branch_point), (bounded.clone(), bounded, None));
    }

    #[test]
    fn the_hosts_stamp_is_read_from_the_result() {
        let stamped = answer_to(
            r#""result":{"stopReason":"cancelled","_meta":{"turnd/turn":{"state":"cancelled","agentStopReason":"end_turn"}}}"#,
        );
        let expected = Answer::Settled {
            stop_reason: Some("cancelled".into()),
            host: Some(HostWord::Cancelled),
            agent_stop_reason: Some("end_turn".into()),
            branch_point: None,
        };
        assert_eq!(stamped, expected);
    }

    #[test]
    fn an_error_gives_its_details_and_the_hosts_code_before_its_own() {
        let failed = |message: &str, code: &str, from_host| Answer::Failed {
            message: message.into(),
            code: code.into(),
            from_host,
            input_written: None,
        };
        let plain = answer_to(r#""error":{"code":-32603,"message":"Internal error"}"#);
        assert_eq!(plain, failed("Internal error", "-32603", false));
        let detailed = answer_to(r#""error":{"code":400,"message":"Internal error","data":{"details":"bad request"}}"#);
        assert_eq!(detailed, failed("bad request", "400", false));
        let host = answer_to(r#""error":{"code":-32000,"message":"gone","data":{"turnd/code":"channel_closed"}}"#);
        assert_eq!(host, failed("gone", "channel_closed", true));
        let odd = answer_to(r#""error":{"code":1,"message":"x","data":[1]}"#);
        assert_eq!(odd, failed("x", "1", false));
    }

    #[test]
    fn the_agents_process_is_known_whole_or_not_at_all() {
        let told = r#"{"pid":7,"startTicks":42,"bootId":"b"}"#;
        let process = Process { pid: 7, start_ticks: 42, boot_id: "b".into() };
        let check = |answer: &str, left: &str, expected: Option<&Process>| {
            let (answer, process) = without_process(answer);
            assert_eq!((&*answer, process.as_ref()), (left, expected));
        };
        check(&format!(r#"{{"a":1,"_meta":{{"turnd/process":{told}}}}}"#), r#"{"a":1}"#, Some(&process));
        let more = format!(r#"{{"_meta":{{"x":1,"turnd/process":{told}}}}}"#);
        check(&more, r#"{"_meta":{"x":1}}"#, Some(&process));
        check(r#"{"_meta":{"turnd/process":{"pid":7,"startTicks":-1,"bootId":"b"}}}"#, "{}", None);
        for untold in ["null", "{}", r#"{ "_meta":{} }"#] {
            check(untold, untold, None);
        }
    }

    #[test]
    fn the_end_of_the_agent_is_a_code_or_a_signal_or_unknown() {
        assert_eq!(exit(r#"{"exitCode":3}"#), Exit { code: Some(3), signal: None });
        assert_eq!(exit(r#"{"exitCode":null,"signal":9}"#), Exit { code: None, signal: Some(9) });
        assert_eq!(exit(r#"{"exitCode":"x"}"#), Exit::UNKNOWN);
    }
}
