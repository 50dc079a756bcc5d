//! What a call says while it runs: a heartbeat with the last line its command printed.
//!
//! Clients give up on a silent call after a minute or so. Invariants: nothing is sent to a client that did not ask;
//! progress only ever grows; a client that does not read holds up neither the command nor the answer for long; what
//! is kept of the output is half a kilobyte.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::time::{MissedTickBehavior, interval_at, timeout};

use crate::locked::lock;

/// When a call speaks up first.
const FIRST: Duration = Duration::from_secs(2);
/// And how often after that.
const EVERY: Duration = Duration::from_secs(10);
/// A client that takes longer to take a heartbeat misses it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes of the output's end that are kept for it.
const TAIL: usize = 512;

/// The end of what a running command has printed; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Heard(Arc<Mutex<Vec<u8>>>);

impl Heard {
    /// Takes the next bytes.
    pub fn push(&self, bytes: &[u8]) {
        let mut tail = lock(&self.0);
        let new = bytes.get(bytes.len().saturating_sub(TAIL)..).unwrap_or_default();
        let surplus = (tail.len() + new.len()).saturating_sub(TAIL);
        tail.drain(..surplus);
        tail.extend_from_slice(new);
    }

    /// The last line that shows anything, without control characters; it may be the end of a longer one.
    pub fn last_line(&self) -> Option<String> {
        let tail = String::from_utf8_lossy(&lock(&self.0)).into_owned();
        let shown = |line: &str| visible(line).trim().to_owned();
        tail.split(['\n', '\r']).rev().map(shown).find(|line| !line.is_empty())
    }
}

/// The text without escape sequences and control characters.
fn visible(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => {
                if chars.next() == Some('[') {
                    chars.by_ref().find(char::is_ascii_alphabetic);
                }
            }
            char if char.is_control() => {}
            char => shown.push(char),
        }
    }
    shown
}

/// Awaits `work`, telling `peer` about it where the request asked for that with a token.
pub async fn during<T>(
    work: impl Future<Output = T>,
    peer: &Peer<RoleServer>,
    token: Option<ProgressToken>,
    heard: &Heard,
) -> T {
    let Some(token) = token else { return work.await };
    let started = Instant::now();
    let mut ticks = interval_at(tokio::time::Instant::now() + FIRST, EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = ticks.tick() => {}
        }
        let seconds = started.elapsed().as_secs_f64();
        let mut beat = ProgressNotificationParam::new(token.clone(), seconds);
        let line = heard.last_line();
        beat.message = Some(match line {
            Some(line) => format!("{seconds:.0}s: {line}"),
            None => format!("{seconds:.0}s"),
        });
        match timeout(PATIENCE, peer.notify_progress(beat)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "no heartbeat"),
            Err(_) => tracing::debug!("the client takes no heartbeat"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], expected: Option<&str>) {
        let heard = Heard::default();
        for piece in pieces {
            heard.push(piece);
        }
        assert_eq!(heard.last_line().as_deref(), expected);
        assert!(lock(&heard.0).len() <= TAIL);
    }

    #[test]
    fn the_last_line_that_shows_anything_is_told() {
        check(&[], None);
        check(&[b"one\ntwo\n\n \n"], Some("two"));
        check(&[b"one\nhal", b"f a line"], Some("half a line"));
        check(&[b"10 %\r\x1b[1;32m20 %\x1b[0m\r"], Some("20 %"));
        check(&[&[b'x'; 5000], b"\nend\n"], Some("end"));
        check(&[&[b'x'; 5000]], Some(&"x".repeat(TAIL)));
        check(&[b"\xff\xfe\n"], Some("\u{fffd}\u{fffd}"));
    }
}
