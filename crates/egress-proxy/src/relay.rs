//! Bytes in both directions between a client and its target, until both have said all or nothing moves.
//!
//! One thread for each direction, one buffer for each thread. The end of one direction is passed on as a half-close
//! and leaves the other alone. Every blocking call has a time-out, and closing both sockets from elsewhere ends
//! both threads at once: nothing polls.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::body::Body;

const BUFFER: usize = 16 * 1024;
/// What a client may send beyond its request before it is no longer read.
const DISCARD_MAX: usize = 1024 * 1024;
/// Ample for a loop of read and write.
const STACK: usize = 256 * 1024;

/// A client and its target; `client` is the hostile side, and so may `upstream` be.
#[derive(Debug)]
pub(crate) struct Relay<'a> {
    pub(crate) client: &'a TcpStream,
    pub(crate) upstream: &'a TcpStream,
    pub(crate) idle: Idle,
}

/// What goes to the target before the client is read again.
#[derive(Debug)]
pub(crate) struct Opening {
    /// The head written anew; empty for a tunnel.
    pub(crate) head: Vec<u8>,
    /// What the client sent behind its head; it counts towards the body.
    pub(crate) early: Vec<u8>,
    pub(crate) body: Body,
}

/// How a direction ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Reading,
    Writing,
    Idle,
    Framing,
}

impl Relay<'_> {
    /// Carries bytes until both directions have ended.
    ///
    /// With `linger` the answer's end is the end of all: the client then has that long to close.
    pub(crate) fn run(&self, opening: Opening, linger: Option<Duration>) -> io::Result<()> {
        let limit = Some(self.idle.limit);
        for stream in [self.client, self.upstream] {
            stream.set_read_timeout(limit)?;
            stream.set_write_timeout(limit)?;
        }
        thread::scope(|scope| {
            let (running, ended) = mpsc::channel::<()>();
            let upload = thread::Builder::new().name("proxy-upload".to_owned()).stack_size(STACK);
            upload.spawn_scoped(scope, move || {
                self.upload(opening);
                drop(running);
            })?;
            self.download();
            if let Some(linger) = linger
                && ended.recv_timeout(linger) != Err(RecvTimeoutError::Disconnected)
            {
                self.abort();
            }
            Ok(())
        })
    }

    fn upload(&self, opening: Opening) {
        match self.send(opening) {
            // The body is sent, or the target stopped reading: its answer may still be on the way. A client that
            // closes its half now is not passed on; the target might take it for a lost client.
            Ok(true) | Err(Broken::Writing) => self.discard(),
            Ok(false) => close(self.upstream, Shutdown::Write),
            Err(Broken::Reading | Broken::Idle | Broken::Framing) => self.abort(),
        }
    }

    /// Sends the request; `true` if its body is complete, `false` if the client closed before.
    fn send(&self, opening: Opening) -> Result<bool, Broken> {
        let Opening { head, early, mut body } = opening;
        self.write(self.upstream, &head)?;
        self.send_part(&early, &mut body)?;
        drop((head, early));
        let mut buffer = vec![0; BUFFER];
        while !body.is_complete() {
            match self.read(self.client, &mut buffer)? {
                [] => return Ok(false),
                bytes => {
                    self.idle.touch();
                    self.send_part(bytes, &mut body)?;
                }
            }
        }
        Ok(true)
    }

    fn send_part(&self, bytes: &[u8], body: &mut Body) -> Result<(), Broken> {
        let taken = body.take(bytes).map_err(|_| Broken::Framing)?;
        self.write(self.upstream, bytes.get(..taken).unwrap_or(bytes))
    }

    fn download(&self) {
        let mut buffer = vec![0; BUFFER];
        let ended = loop {
            match self.read(self.upstream, &mut buffer) {
                Ok([]) => break Ok(()),
                Ok(bytes) => {
                    self.idle.touch();
                    if let Err(broken) = self.write(self.client, bytes) {
                        break Err(broken);
                    }
                }
                Err(broken) => break Err(broken),
            }
        };
        match ended {
            Ok(()) => close(self.client, Shutdown::Write),
            // Without a client nobody waits for the rest.
            Err(_) => self.abort(),
        }
    }

    /// Reads on, so that closing later does not reset the connection under an answer that is still on its way.
    /// What is read here keeps nothing alive.
    fn discard(&self) {
        let mut buffer = vec![0; BUFFER];
        let mut left = DISCARD_MAX;
        loop {
            match self.read(self.client, &mut buffer) {
                Ok([]) | Err(Broken::Reading) => return,
                Ok(bytes) => match left.checked_sub(bytes.len()) {
                    Some(rest) => left = rest,
                    None => return,
                },
                Err(_) => return self.abort(),
            }
        }
    }

    /// Reads some bytes; none at the end.
    fn read<'b>(&self, mut from: &TcpStream, buffer: &'b mut [u8]) -> Result<&'b [u8], Broken> {
        loop {
            match from.read(buffer) {
                Ok(count) => return Ok(buffer.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => {
                    let left = self.idle.left().ok_or(Broken::Idle)?;
                    from.set_read_timeout(Some(left)).map_err(|_| Broken::Reading)?;
                }
                Err(_) => return Err(Broken::Reading),
            }
        }
    }

    fn write(&self, mut to: &TcpStream, mut bytes: &[u8]) -> Result<(), Broken> {
        while !bytes.is_empty() {
            match to.write(bytes) {
                Ok(0) => return Err(Broken::Writing),
                Ok(count) => {
                    self.idle.touch();
                    bytes = bytes.get(count..).unwrap_or_default();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => {
                    let left = self.idle.left().ok_or(Broken::Idle)?;
                    to.set_write_timeout(Some(left)).map_err(|_| Broken::Writing)?;
                }
                Err(_) => return Err(Broken::Writing),
            }
        }
        Ok(())
    }

    fn abort(&self) {
        close(self.client, Shutdown::Both);
        close(self.upstream, Shutdown::Both);
    }
}

/// Sends a last answer, then waits until the client has closed or `limit` has passed: closing over unread bytes would
/// reset the connection, and the client might never see the answer.
pub(crate) fn send_last(mut client: &TcpStream, answer: &[u8], limit: Duration) -> io::Result<()> {
    let idle = Idle::new(limit);
    client.set_write_timeout(Some(limit))?;
    client.write_all(answer)?;
    client.shutdown(Shutdown::Write)?;
    let mut buffer = vec![0; BUFFER];
    let mut left = DISCARD_MAX;
    while let Some(time) = idle.left() {
        client.set_read_timeout(Some(time))?;
        let count = match client.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if is_timeout(&error) || error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let Some(rest) = left.checked_sub(count) else { break };
        left = rest;
    }
    Ok(())
}

/// Shuts a socket down; one that is closed already is what was wanted.
pub(crate) fn close(stream: &TcpStream, how: Shutdown) {
    stream.shutdown(how).ok();
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// When something last moved, for both directions together.
#[derive(Debug)]
pub(crate) struct Idle {
    limit: Duration,
    start: Instant,
    /// Milliseconds after `start`.
    moved: AtomicU64,
}

impl Idle {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, start: Instant::now(), moved: AtomicU64::new(0) }
    }

    fn touch(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.fetch_max(now, Ordering::Relaxed);
    }

    /// The time until the limit is reached; `None` once it is. At least a millisecond: a time-out of zero is no time-out.
    fn left(&self) -> Option<Duration> {
        let end = Duration::from_millis(self.moved.load(Ordering::Relaxed)) + self.limit;
        let left = end.checked_sub(self.start.elapsed())?;
        Some(left.max(Duration::from_millis(1)))
    }
}
