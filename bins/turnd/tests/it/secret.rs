//! The token: asked for, and told to nobody.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const TOKEN: &str = "s3cret-Token.of~the=daemon";

/// A daemon that was started with a token, killed when dropped.
struct Daemon {
    child: Child,
    /// What it said on stdout, up to the line with its address.
    said: Vec<String>,
    address: SocketAddr,
}

impl Daemon {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        let address = loop {
            let line = next(&mut lines);
            if let Some((_, address)) = line.split_once("://") {
                let address = address.parse().unwrap();
                said.push(line);
                break address;
            }
            said.push(line);
        };
        Self { child, said, address }
    }

    /// One request on a connection of its own: the whole answer, head and body.
    fn ask(&self, line: &str, token: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let (host, length) = (self.address, body.len());
        let request = format!(
            "{line} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn json(&self, line: &str, body: &str) -> Value {
        let answer = self.ask(line, TOKEN, body);
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap_or(Value::Null)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next(lines: &mut std::io::Lines<BufReader<ChildStdout>>) -> String {
    lines.next().unwrap().unwrap()
}

fn serve(base: &Path) -> Command {
    let workspace = base.join("workspace");
    fs::create_dir_all(&workspace).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_turnd"));
    command.args(["serve", "--port", "0", "--store"]).arg(base.join("store")).arg("--workspace").arg(workspace);
    command.env_remove("TURND_TOKEN");
    command
}

/// Every file below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Environment and command line of every host below `base`.
fn hosts(base: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        // A process may be gone between two looks.
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(" host ") && line.contains(base.to_str().unwrap()) {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            found.push(format!("{line} {}", String::from_utf8_lossy(&environment)));
        }
    }
    found
}

#[test]
fn the_token_is_in_no_log_no_answer_no_event_no_file_and_no_child() {
    let base = tempfile::tempdir().unwrap();
    let seen = base.path().join("agent-environment");
    let agent = format!("sh -c 'env > {}; exec {} agent'", seen.display(), env!("CARGO_BIN_EXE_turnd"));
    let log = base.path().join("log");
    let mut command = serve(base.path());
    command.args(["--log-level", "trace", "--require-auth", "--agent", &agent]);
    command.env("TURND_TOKEN", TOKEN).env("QWEN_SERVER_TOKEN", TOKEN).stderr(fs::File::create(&log).unwrap());
    let daemon = Daemon::start(&mut command);

    let session = daemon.json("POST /session", "{}")["sessionId"].as_str().unwrap().to_owned();
    let body = json!({ "prompt": [{ "type": "text", "text": "hello" }], "promptId": "p" }).to_string();
    let mut told = vec![daemon.ask(&format!("POST /session/{session}/prompt"), TOKEN, &body)];
    // The stream is read to its end, which the close brings.
    std::thread::scope(|scope| {
        let events = scope.spawn(|| daemon.ask(&format!("GET /session/{session}/events"), TOKEN, ""));
        while daemon.json(&format!("GET /session/{session}/turns/p"), "")["state"] != "completed" {}
        while daemon.json("GET /health?deep=1", "")["connectedClients"] == 0 {}
        told.extend(hosts(base.path()));
        assert_eq!(told.len(), 2, "one host was seen");
        for line in [
            "GET /capabilities".to_owned(),
            format!("GET /session/{session}/status"),
            format!("GET /nope?token={TOKEN}"),
            format!("GET /session/nobody/status?access_token={TOKEN}"),
            format!("DELETE /session/{session}"),
            format!("POST /session/{session}/load"),
        ] {
            told.push(daemon.ask(&line, TOKEN, ""));
            told.push(daemon.ask(&line, "wrong", ""));
            told.push(daemon.ask(&line, &format!("{TOKEN}x"), "").replace(&format!("{TOKEN}x"), ""));
        }
        told.push(events.join().unwrap());
    });
    drop(daemon);

    assert!(told.iter().any(|text| text.contains("session_closed")), "the stream was read to its end");
    assert!(fs::read_to_string(&log).unwrap().contains("DEBUG"), "the log tells all it can");
    assert!(fs::read_to_string(&seen).unwrap().contains("PATH="), "the agent has an environment");
    told.extend(files(base.path()).iter().map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned()));
    for text in told {
        assert!(!text.contains(TOKEN), "{text}");
    }
}

#[test]
fn a_made_token_is_told_once_and_then_asked_for() {
    let base = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(serve(base.path()).arg("--generate-token"));
    let token = daemon.said.iter().find_map(|line| line.strip_prefix("turnd token ")).unwrap();
    assert_eq!(daemon.said.len(), 2);
    assert!(daemon.ask("GET /capabilities", token, "").starts_with("HTTP/1.1 200"));
    assert!(daemon.ask("GET /capabilities", "guess", "").starts_with("HTTP/1.1 401"));
    assert!(daemon.ask(&format!("GET /capabilities?token={token}"), "guess", "").starts_with("HTTP/1.1 401"));
}

#[test]
fn a_token_that_cannot_be_one_keeps_the_daemon_from_starting_and_is_not_shown() {
    for token in ["", " ", "two words", "line\nend"] {
        let base = tempfile::tempdir().unwrap();
        let output = serve(base.path()).env("TURND_TOKEN", token).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{token:?}: {said}");
        assert!(said.contains("token"), "{said}");
        assert!(token.trim().is_empty() || !said.contains(token), "{said}");
    }
}

/// The certificate itself is tried out in the tests of the crate below; this is about the process.
#[test]
fn a_daemon_with_a_certificate_says_https_and_outlives_a_renewal_that_fails() {
    let base = tempfile::tempdir().unwrap();
    let (certificate, key) = (base.path().join("cert.pem"), base.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let mut command = serve(base.path());
    command.arg("--tls-cert").arg(&certificate).arg("--tls-key").arg(&key).stderr(Stdio::piped());
    let mut daemon = Daemon::start(&mut command);
    assert!(daemon.said[0].starts_with("turnd listens on https://127.0.0.1:"), "{:?}", daemon.said);
    assert!(daemon.ask("GET /health", TOKEN, "").contains("tls_required"));

    let mut log = BufReader::new(daemon.child.stderr.take().unwrap()).lines();
    let mut renewed = || {
        let pid = daemon.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
        log.find(|line| line.as_ref().unwrap().contains("certificate")).unwrap().unwrap()
    };
    assert!(renewed().contains("certificate and key are read again"));
    fs::write(&key, "no key").unwrap();
    let told = renewed();
    assert!(told.contains("the old certificate goes on") && told.contains("key.pem"), "{told}");
    assert!(daemon.ask("GET /health", TOKEN, "").contains("tls_required"), "it still listens");
}

#[test]
fn the_command_line_speaks_https_with_a_daemon_whose_certificate_it_knows_and_tells_no_other_one_its_token() {
    let base = tempfile::tempdir().unwrap();
    let (certificate, key) = (base.path().join("cert.pem"), base.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    fs::write(base.path().join("other.pem"), other.cert.pem()).unwrap();
    fs::write(base.path().join("none.pem"), "").unwrap();
    let mut command = serve(base.path());
    let daemon = Daemon::start(command.arg("--tls-cert").arg(&certificate).arg("--tls-key").arg(&key));
    let url = format!("https://{}", daemon.address);
    for (roots, expected, said) in [
        ("cert.pem", 3, "session_not_found"),
        ("other.pem", 9, "cannot reach the daemon: invalid peer certificate"),
        ("none.pem", 2, "SSL_CERT_FILE"),
    ] {
        let mut send = Command::new(env!("CARGO_BIN_EXE_turnd"));
        send.args(["send", "nowhere", "hello", "--url", &url]);
        send.env("TURND_TOKEN", TOKEN).env("SSL_CERT_FILE", base.path().join(roots)).env_remove("SSL_CERT_DIR");
        let output = send.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(expected), "{roots}: {told}");
        assert!(told.contains(said) && !told.contains(TOKEN), "{roots}: {told}");
    }
}

#[test]
fn two_tokens_are_one_too_many() {
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("token");
    fs::write(&file, "from-file\n").unwrap();
    let output = serve(base.path()).env("TURND_TOKEN", TOKEN).arg("--token-file").arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!said.contains(TOKEN), "{said}");
    let daemon = Daemon::start(serve(base.path()).arg("--token-file").arg(&file));
    assert!(daemon.ask("GET /capabilities", "from-file", "").starts_with("HTTP/1.1 200"));
}
