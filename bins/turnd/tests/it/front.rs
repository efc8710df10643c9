//! A proxy in front of a daemon: it stays where it is when the daemon is started anew somewhere else, and loses answers when it is told to.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::scripted::Started;

/// The proxy. It is there until the test ends.
pub(crate) struct Front {
    address: SocketAddr,
    daemon: Arc<Mutex<SocketAddr>>,
    lost: Arc<AtomicUsize>,
}

impl Front {
    pub(crate) fn of(daemon: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = Self {
            address: listener.local_addr().unwrap(),
            daemon: Arc::new(Mutex::new(daemon)),
            lost: Arc::new(AtomicUsize::new(0)),
        };
        let (daemon, lost) = (Arc::clone(&front.daemon), Arc::clone(&front.lost));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (daemon, lost) = (*daemon.lock().unwrap(), Arc::clone(&lost));
                // Whoever finds no daemon is hung up on.
                thread::spawn(move || drop(pass(client, daemon, &lost)));
            }
        });
        front
    }

    /// Where the daemon is now.
    pub(crate) fn lead_to(&self, daemon: SocketAddr) {
        *self.daemon.lock().unwrap() = daemon;
    }

    /// Of the next so many requests the daemon's answer is lost: it has done what was asked, and nobody hears of it.
    pub(crate) fn lose(&self, answers: usize) {
        self.lost.store(answers, Ordering::SeqCst);
    }

    /// How many answers are still to be lost.
    pub(crate) fn left_to_lose(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }

    /// A command that talks to the daemon through this.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_turnd"));
        command.args(words).env("TURND_URL", format!("http://{}", self.address)).env_remove("TURND_TOKEN");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self, words: &[&str]) -> Started {
        Started(self.command(words).spawn().unwrap())
    }
}

/// Passes one connection on, both ways, until either side ends it.
fn pass(mut client: TcpStream, daemon: SocketAddr, lost: &AtomicUsize) -> io::Result<()> {
    let (address, mut daemon) = (daemon, TcpStream::connect(daemon)?);
    let (mut from_client, mut to_daemon) = (client.try_clone()?, daemon.try_clone()?);
    let front = client.local_addr()?;
    thread::spawn(move || {
        let _ = name(&mut from_client, &mut to_daemon, front, address);
        let _ = io::copy(&mut from_client, &mut to_daemon);
    });
    let mut chunk = [0; 4096];
    loop {
        let read = daemon.read(&mut chunk)?;
        let is_lost = lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if read == 0 || is_lost {
            return client.shutdown(Shutdown::Both).and(daemon.shutdown(Shutdown::Both));
        }
        client.write_all(&chunk[..read])?;
    }
}

/// Passes the head of the only request on, naming the daemon in it: it answers to its own names, and the port is one of them.
fn name(client: &mut TcpStream, daemon: &mut TcpStream, front: SocketAddr, address: SocketAddr) -> io::Result<()> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let read = client.read(&mut chunk)?;
        bytes.extend_from_slice(&chunk[..read]);
        if read == 0 || bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            let text = String::from_utf8(bytes).unwrap();
            return daemon
                .write_all(text.replacen(&format!("host: {front}"), &format!("host: {address}"), 1).as_bytes());
        }
    }
}
