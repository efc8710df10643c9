//! The commands a person types.

use std::fs::File;
use std::io::Write;
use std::process::{Command, Output, Stdio};

pub(crate) fn turnd(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_turnd")).args(args).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_demo_tells_three_outcomes_and_makes_none_up() {
    let output = turnd(&["demo"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for sentence in ["kill -9", "completed (end_turn)", "turn_result", "unknown"] {
        assert!(text.contains(sentence), "no {sentence:?} in:\n{text}");
    }
}

#[test]
fn help_reads_like_a_page_and_names_every_command() {
    let text = stdout(&turnd(&["--help"]));
    for command in ["serve", "demo", "explain", "agent"] {
        assert!(text.contains(&format!("  {command} ")), "{text}");
    }
    assert!(stdout(&turnd(&["agent", "--help"])).contains("slow"), "the scripts are listed");
}

#[test]
fn the_agent_answers_whatever_its_streams_are() {
    let folder = tempfile::tempdir().unwrap();
    let (asked, answered) = (folder.path().join("asked"), folder.path().join("answered"));
    let question = concat!(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#, "\n");
    std::fs::write(&asked, question).unwrap();
    for (from_file, to_file) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut agent = Command::new(env!("CARGO_BIN_EXE_turnd"));
        agent.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped());
        if from_file {
            agent.stdin(File::open(&asked).unwrap());
        }
        if to_file {
            agent.stdout(File::create(&answered).unwrap());
        }
        let mut agent = agent.spawn().unwrap();
        if let Some(mut input) = agent.stdin.take() {
            input.write_all(question.as_bytes()).unwrap();
        }
        let output = agent.wait_with_output().unwrap();
        let text = if to_file { std::fs::read_to_string(&answered).unwrap() } else { stdout(&output) };
        assert!(output.status.success() && text.contains("protocolVersion"), "{from_file} {to_file}: {text}");
    }
}

#[test]
fn a_certificate_that_cannot_be_used_is_said_and_nothing_is_opened() {
    let output = turnd(&["serve", "--port", "0", "--tls-cert", "/nowhere/cert.pem", "--tls-key", "/nowhere/key.pem"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), true), "{said}");
    assert!(said.contains("/nowhere/cert.pem"), "{said}");
    for half in ["--tls-cert", "--tls-key"] {
        assert_eq!(turnd(&["serve", "--port", "0", half, "/nowhere/file.pem"]).status.code(), Some(2), "{half} alone");
    }
}

#[test]
fn a_bind_that_others_can_reach_without_a_token_is_refused() {
    let output = turnd(&["serve", "--port", "0", "--hostname", "0.0.0.0"]);
    assert_eq!(output.status.code(), Some(78));
    assert!(output.stdout.is_empty(), "nothing was opened");
    assert!(String::from_utf8_lossy(&output.stderr).contains("needs a token"));
}

#[test]
fn rules_for_permissions_that_mean_nothing_are_refused() {
    for (flags, blamed) in [
        (&["--permission-policy", "everybody"][..], "--permission-policy"),
        (&["--permission-policy", "consensus", "--consensus-quorum", "0"], "--consensus-quorum"),
        (&["--consensus-quorum", "2"], "--consensus-quorum"),
    ] {
        let output = turnd(&[&["serve", "--port", "0"][..], flags].concat());
        assert!(output.status.code().is_some_and(|code| code != 0), "{flags:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(blamed), "{flags:?}");
    }
}

#[test]
fn a_deadline_that_would_end_every_prompt_at_once_is_refused() {
    for flag in ["--prompt-deadline-ms", "--prompt-run-deadline-ms"] {
        let output = turnd(&["serve", "--port", "0", "--workspace", "/nowhere", flag, "0"]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(flag), "{flag}");
    }
}

#[test]
fn two_workspaces_of_one_name_in_the_store_are_wrong_usage() {
    let base = tempfile::tempdir().unwrap();
    let folder = |name: &str| base.path().join(name).to_str().unwrap().to_owned();
    for name in ["a-b", "a/b", "c"] {
        std::fs::create_dir_all(folder(name)).unwrap();
    }
    let store = folder("store");
    let serve = ["serve", "--port", "0", "--store", &store];
    let spaces = [folder("c"), folder("a-b"), folder("a/b")];
    let flags: Vec<&str> = spaces.iter().flat_map(|space| ["--workspace", space]).collect();
    let output = turnd(&[&serve[..], &flags].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot be served together"));
    assert!(!base.path().join("store").exists(), "nothing was opened");
    let output = turnd(&[&serve[..], &["--workspace", &spaces[0], "--workspace", &folder("none")]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(!base.path().join("store").exists(), "nothing was opened");
}
