//! Sessions whose answers outlive a connection, and whose commands do not outlive the session.
//!
//! The SDK's sessions forget an answer that was ready while its client had no connection, and let the commands of a
//! session that was ended run on for some seconds. Around them stands this: each call's events pass through a
//! [`Track`], which keeps them for whoever comes back with the last one it saw, and each call carries its session's end.
//! Invariant: whenever a call ends, the events of at most [`KEPT`] that have ended are kept, none older than
//! [`KEPT_FOR`], those that nobody heard before others; a client that reads slower than its call tells is cut off, and can come back.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _, stream};
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::locked::lock;
use crate::server::SessionEnd;

/// Calls that have ended and can still be heard, over all sessions of a client.
const KEPT: usize = 32;
/// How long they can.
const KEPT_FOR: Duration = Duration::from_mins(1);
/// Events of one call that are kept: the answer and what was said last before it.
const EVENTS: usize = 64;
/// Events on their way to a listener beyond those of the past.
const AHEAD: usize = 64;

/// The sessions of one client.
pub(super) struct Sessions {
    inner: LocalSessionManager,
    known: Arc<Mutex<HashMap<SessionId, Known>>>,
}

/// One session.
#[derive(Default)]
struct Known {
    ending: CancellationToken,
    /// By the number that the SDK gives each of its calls.
    tracks: HashMap<u64, Arc<Mutex<Track>>>,
}

/// What one call has told so far.
#[derive(Default)]
struct Track {
    events: VecDeque<ServerSseMessage>,
    listener: Option<mpsc::Sender<ServerSseMessage>>,
    /// When it ended, and whether somebody listened.
    ended: Option<(Instant, bool)>,
}

impl Sessions {
    pub(super) fn new(inner: LocalSessionManager) -> Self {
        Self { inner, known: Arc::default() }
    }

    /// How many there are.
    pub(super) async fn count(&self) -> usize {
        self.inner.sessions.read().await.len()
    }
}

impl Track {
    fn take(&mut self, event: ServerSseMessage) {
        if self.listener.as_ref().is_some_and(|to| to.try_send(event.clone()).is_err()) {
            self.listener = None;
        }
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn end(&mut self) {
        let heard = self.listener.take().is_some_and(|listener| !listener.is_closed());
        self.ended = Some((Instant::now(), heard));
    }

    /// What came after the event of that index, and what is still to come.
    fn after(&mut self, index: u64) -> mpsc::Receiver<ServerSseMessage> {
        let (listener, receiver) = mpsc::channel(EVENTS + AHEAD);
        let missed = self.events.iter().filter(|event| {
            event_id(event).and_then(place).is_some_and(|(of_event, _)| of_event > index)
        });
        for event in missed {
            // There is room for all of them.
            listener.try_send(event.clone()).ok();
        }
        match &mut self.ended {
            Some((_, heard)) => *heard = true,
            None => self.listener = Some(listener),
        }
        receiver
    }
}

/// Drops what was kept for too long or is too much: first what was heard, then what is oldest.
fn forget(known: &mut HashMap<SessionId, Known>) {
    let mut ended: Vec<(bool, Instant, SessionId, u64)> = Vec::new();
    for (id, session) in known.iter_mut() {
        session.tracks.retain(|number, track| match lock(track).ended {
            Some((at, _)) if at.elapsed() > KEPT_FOR => false,
            Some((at, heard)) => {
                ended.push((!heard, at, Arc::clone(id), *number));
                true
            }
            None => true,
        });
    }
    ended.sort();
    let excess = ended.len().saturating_sub(KEPT);
    for (_, _, id, number) in ended.into_iter().take(excess) {
        if let Some(session) = known.get_mut(&id) {
            session.tracks.remove(&number);
        }
    }
}

/// Index and call of an event's id, `INDEX/CALL`; those of no call have an index alone.
fn place(event_id: &str) -> Option<(u64, u64)> {
    let (index, call) = event_id.split_once('/')?;
    Some((index.parse().ok()?, call.parse().ok()?))
}

fn event_id(event: &ServerSseMessage) -> Option<&str> {
    event.event_id.as_deref()
}

fn events(mut receiver: mpsc::Receiver<ServerSseMessage>) -> impl Stream<Item = ServerSseMessage> {
    stream::poll_fn(move |context| receiver.poll_recv(context))
}

/// Takes a call's events to its track, whoever listens.
async fn follow(
    calls: impl Stream<Item = ServerSseMessage> + Send,
    track: Arc<Mutex<Track>>,
    id: SessionId,
    known: Arc<Mutex<HashMap<SessionId, Known>>>,
) {
    let mut calls = std::pin::pin!(calls);
    let mut is_known = false;
    while let Some(event) = calls.next().await {
        if !is_known && let Some((_, call)) = event_id(&event).and_then(place) {
            is_known = true;
            if let Some(session) = lock(&known).get_mut(&id) {
                session.tracks.insert(call, Arc::clone(&track));
            }
        }
        lock(&track).take(event);
    }
    lock(&track).end();
    forget(&mut lock(&known));
}

impl SessionManager for Sessions {
    type Error = <LocalSessionManager as SessionManager>::Error;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.inner.create_session().await?;
        lock(&self.known).insert(Arc::clone(&id), Known::default());
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if let Some(session) = lock(&self.known).remove(id) {
            session.ending.cancel();
        }
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        if let ClientJsonRpcMessage::Request(request) = &mut message
            && let Some(session) = lock(&self.known).get(id)
        {
            request.request.extensions_mut().insert(SessionEnd(session.ending.clone()));
        }
        let calls = self.inner.create_stream(id, message).await?;
        let (listener, receiver) = mpsc::channel(EVENTS + AHEAD);
        let track = Track { listener: Some(listener), ..Track::default() };
        let (track, known) = (Arc::new(Mutex::new(track)), Arc::clone(&self.known));
        tokio::spawn(follow(calls, track, Arc::clone(id), known));
        Ok(events(receiver))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        if let Some((index, call)) = place(&last_event_id) {
            let track = lock(&self.known).get(id).and_then(|it| it.tracks.get(&call).cloned());
            // A call that is forgotten has nothing more to tell.
            let missed = track.map(|track| events(lock(&track).after(index)));
            return Ok(stream::iter(missed).flatten().left_stream());
        }
        Ok(self.inner.resume(id, last_event_id).await?.right_stream())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(index: u64, call: u64) -> ServerSseMessage {
        ServerSseMessage::priming(format!("{index}/{call}"), Duration::ZERO)
    }

    /// The ids of what can be received at once, and whether that is all there will be.
    fn check(receiver: &mut mpsc::Receiver<ServerSseMessage>, expected: &[&str], is_all: bool) {
        let mut ids = Vec::new();
        let end = loop {
            match receiver.try_recv() {
                Ok(event) => ids.push(event.event_id.unwrap()),
                Err(end) => break end,
            }
        };
        assert_eq!(
            (ids, end == mpsc::error::TryRecvError::Disconnected),
            (expected.iter().map(|id| (*id).to_owned()).collect(), is_all)
        );
    }

    #[test]
    fn whoever_comes_back_hears_what_it_missed_and_what_follows() {
        let mut track = Track::default();
        track.take(event(0, 7));
        let mut first = track.after(0);
        track.take(event(1, 7));
        check(&mut first, &["1/7"], false);
        drop(first);
        track.take(event(2, 7));
        let mut second = track.after(1);
        track.take(event(3, 7));
        check(&mut second, &["2/7", "3/7"], false);
        track.end();
        check(&mut second, &[], true);
        check(&mut track.after(0), &["1/7", "2/7", "3/7"], true);
    }

    #[test]
    fn what_nobody_heard_is_kept_the_longest() {
        let mut known: HashMap<SessionId, Known> = HashMap::new();
        let session: SessionId = "s".into();
        for call in 0..2 * KEPT as u64 {
            let mut track =
                Track { ended: Some((Instant::now(), call % 2 == 0)), ..Track::default() };
            track.events.push_back(event(1, call));
            let known = known.entry(Arc::clone(&session)).or_default();
            known.tracks.insert(call, Arc::new(Mutex::new(track)));
        }
        let running = Arc::new(Mutex::new(Track::default()));
        known.get_mut(&session).unwrap().tracks.insert(1000, running);
        forget(&mut known);
        let tracks = &known[&session].tracks;
        assert_eq!(tracks.len(), KEPT + 1);
        assert!(tracks.keys().all(|call| call % 2 == 1 || *call == 1000));
    }

    #[test]
    fn an_event_has_its_place_in_a_call() {
        assert_eq!(place("3/14"), Some((3, 14)));
        for other in ["3", "", "a/1", "1/", "1/2/3"] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
