//! A daemon that plays what a test wrote: it hears requests over HTTP and answers, stalls, tears and hangs up as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// No line in a test takes this long; a command that prints none must end the run.
const LINE_LIMIT: Duration = Duration::from_secs(60);

/// A request as it was heard.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) method: String,
    pub(crate) target: String,
    /// The head, in small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What is done about a request.
pub(crate) enum Reply {
    /// A whole answer; further header lines each with their end.
    Answer(u16, &'static str, String),
    /// Nothing is said.
    HangUp,
    /// An answer that breaks off in the middle.
    Torn(String),
    /// A stream of pieces, and what comes behind them.
    Stream(Vec<String>, End),
    /// The answer waits until the test lets it go.
    Held(Receiver<()>, Box<Self>),
}

/// How a stream ends.
pub(crate) enum End {
    /// In order.
    Ended,
    /// By a broken connection.
    Cut,
    /// Not at all: it says nothing more for as long as somebody listens.
    Open,
}

/// A daemon that plays. It is there until the test ends.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Scripted {
    /// Plays the script: it is asked for a reply to each request, with the number of requests before it.
    pub(crate) fn play(script: impl FnMut(&Heard, usize) -> Reply + Send + 'static) -> Self {
        Self::play_on(TcpListener::bind("127.0.0.1:0").unwrap(), script)
    }

    /// Nobody listens there.
    pub(crate) fn nobody(address: SocketAddr) -> Self {
        Self { address, heard: Arc::default() }
    }

    /// Plays the script where it is told to.
    pub(crate) fn play_on(listener: TcpListener, script: impl FnMut(&Heard, usize) -> Reply + Send + 'static) -> Self {
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (script, log) = (Arc::new(Mutex::new(script)), Arc::clone(&heard));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, log) = (Arc::clone(&script), Arc::clone(&log));
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let Some(request) = hear(&mut stream) else { return };
                    let reply = {
                        let mut log = log.lock().unwrap();
                        log.push(request.clone());
                        (script.lock().unwrap())(&request, log.len() - 1)
                    };
                    // Whom a test killed hears nothing.
                    let _ = say(&mut stream, reply);
                });
            }
        });
        Self { address, heard }
    }

    /// Answers every request in the same way.
    pub(crate) fn always(status: u16, body: &str) -> Self {
        let body = body.to_owned();
        Self::play(move |_, _| Reply::Answer(status, "", body.clone()))
    }

    /// The requests so far.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    /// A command that talks to this daemon.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnd"));
        command.args(words).env("TURND_URL", format!("http://{}", self.address)).env_remove("TURND_TOKEN");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Starts a command.
    pub(crate) fn start(&self, words: &[&str]) -> Started {
        Started(self.command(words).spawn().unwrap())
    }
}

/// A command that runs, killed when the test is done with it.
pub(crate) struct Started(pub(crate) Child);

impl Started {
    /// What it prints, line by line.
    pub(crate) fn lines(&mut self) -> Lines {
        let mut stdout = BufReader::new(self.0.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut line = String::new();
            while stdout.read_line(&mut line).is_ok_and(|read| read > 0) && sender.send(line.clone()).is_ok() {
                line.clear();
            }
        });
        Lines(lines)
    }
}

/// The lines of a command that runs. Dropping them closes its output.
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    /// The next line with its end.
    pub(crate) fn next(&mut self) -> String {
        self.0.recv_timeout(LINE_LIMIT).unwrap()
    }

    /// So many lines.
    pub(crate) fn take(&mut self, count: usize) -> String {
        (0..count).map(|_| self.next()).collect()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Ended already where the test waited for that.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A reply that waits, and what lets it go.
pub(crate) fn held(reply: Reply) -> (Sender<()>, Reply) {
    let (release, released) = channel();
    (release, Reply::Held(released, Box::new(reply)))
}

/// Reads one request; nothing where the peer said none.
fn hear(stream: &mut TcpStream) -> Option<Heard> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let head_end = bytes.windows(4).position(|end| end == b"\r\n\r\n");
        if let Some(end) = head_end {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let small = head.to_ascii_lowercase();
            let length =
                small.split("content-length: ").nth(1).map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
            if bytes.len() >= end + 4 + length {
                let mut words = head.split(' ');
                return Some(Heard {
                    method: words.next().unwrap().to_owned(),
                    target: words.next().unwrap().to_owned(),
                    head: small,
                    body: String::from_utf8(bytes[end + 4..].to_vec()).unwrap(),
                });
            }
        }
        let read = stream.read(&mut chunk).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&chunk[..read]);
    }
}

fn say(stream: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::HangUp => Ok(()),
        Reply::Torn(body) => {
            write!(stream, "HTTP/1.1 200 said\r\ncontent-length: {}\r\n\r\n{}", body.len(), &body[..body.len() / 3])
        }
        Reply::Answer(status, headers, body) => {
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} said\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
        }
        Reply::Stream(pieces, end) => {
            write!(
                stream,
                "HTTP/1.1 200 said\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
            )?;
            for piece in pieces {
                write!(stream, "{:x}\r\n{piece}\r\n", piece.len())?;
            }
            match end {
                End::Ended => write!(stream, "0\r\n\r\n"),
                End::Cut => Ok(()),
                End::Open => stream.read(&mut [0]).map(drop),
            }
        }
        Reply::Held(released, reply) => {
            // A test that ended lets everything go.
            let _ = released.recv();
            say(stream, *reply)
        }
    }
}
