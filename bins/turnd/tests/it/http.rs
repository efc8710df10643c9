//! A daemon under test and a plain blocking client: one kept-alive connection, whole answers.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// No answer in a test or a benchmark takes this long; a hung daemon must end the run.
const READ_LIMIT: Duration = Duration::from_secs(60);

/// A running `turnd serve`, killed with signal 9 when dropped.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
}

impl Daemon {
    /// Starts a daemon below `base` and returns when its first line says where it listens.
    pub(crate) fn start(base: &Path, flags: &[&str]) -> Self {
        Self::logging(base, flags, Stdio::inherit())
    }

    /// The same, with its log and its hosts' somewhere else than the test's.
    pub(crate) fn logging(base: &Path, flags: &[&str], log: Stdio) -> Self {
        Self::planned(base, flags, log, "")
    }

    /// The same, where the store of return requests fails as it is planned.
    pub(crate) fn planned(base: &Path, flags: &[&str], log: Stdio, plan: &str) -> Self {
        let workspace = base.join("workspace");
        std::fs::create_dir_all(&workspace).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_turnd"))
            .args(["serve", "--port", "0", "--log-level", "warn", "--store"])
            .arg(base.join("store"))
            .arg("--workspace")
            .arg(workspace)
            .args(flags)
            .env("TURND_FAIL_POINTS", plan)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().trim().parse().unwrap();
        Self { child, address }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Ended already where a test killed or stopped it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One kept-alive connection; every answer read whole by its content length.
pub(crate) struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::try_open(address).unwrap()
    }

    /// The same; nothing where nobody listens.
    pub(crate) fn try_open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(READ_LIMIT)).unwrap();
        Some(Self { stream, address, buffer: Vec::new() })
    }

    /// Sends one request and returns the status and the body's text.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        self.try_call(method, path, body).unwrap_or_else(|| panic!("the daemon hung up on {method} {path}"))
    }

    /// As [`Self::call`]; nothing when the peer hung up before its answer was whole.
    pub(crate) fn try_call(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        self.try_call_with(method, path, "", body)
    }

    /// The same with further lines in the head, each with its end. Of an answer without a length, its body is not waited for.
    pub(crate) fn try_call_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Option<(u16, String)> {
        self.exchange(method, path, headers, body).map(|(status, _, body)| (status, body))
    }

    /// The same, with the head of the answer, in lower case, between its status and its body.
    pub(crate) fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Option<(u16, String, String)> {
        let (host, length) = (self.address, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        );
        // A peer that refuses a body may stop reading it; its answer is there all the same.
        let _ = self.stream.write_all(request.as_bytes());
        self.buffer.clear();
        let mut chunk = [0; 4096];
        loop {
            let read = match self.stream.read(&mut chunk) {
                // A process that was stopped for a moment and goes on is not told more than that.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.ok().filter(|read| *read > 0)?,
            };
            self.buffer.extend_from_slice(&chunk[..read]);
            if let Some(answer) = answer(&self.buffer) {
                return Some(answer);
            }
        }
    }
}

/// The answer in the buffer, once it is whole.
fn answer(buffer: &[u8]) -> Option<(u16, String, String)> {
    let head_end = buffer.windows(4).position(|end| end == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&buffer[..head_end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length =
        head.split("content-length: ").nth(1).map_or(0, |rest| rest.lines().next().unwrap().trim().parse().unwrap());
    let body = &buffer[head_end + 4..];
    (body.len() >= length).then(|| (status, head, String::from_utf8_lossy(body).into_owned()))
}
