//! What the threads of one proxy share: the rules, the slots, the open sockets, the denials.

use std::collections::{HashMap, VecDeque};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{Denied, Event, HostRules, Limits, Log};

/// How many denials are kept until they are asked for.
const DENIALS_MAX: usize = 64;

/// What the threads of a proxy have in common.
pub(crate) struct Shared {
    pub(crate) rules: HostRules,
    pub(crate) limits: Limits,
    pub(crate) log: Log,
    state: Mutex<State>,
    /// A slot became free, or the proxy stops.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stopping: bool,
    slots_taken: usize,
    /// The open sockets by a number of their own, to be shut down at the end.
    streams: HashMap<u64, Arc<TcpStream>>,
    next: u64,
    denials: VecDeque<Denied>,
}

impl Shared {
    pub(crate) fn new(rules: HostRules, limits: Limits, log: Log) -> Self {
        Self { rules, limits, log, state: Mutex::default(), changed: Condvar::new() }
    }

    /// No code panics under this lock, and the state is sound after every statement.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for a connection; `None` once the proxy stops.
    pub(crate) fn slot(self: &Arc<Self>) -> Option<Slot> {
        let full =
            |state: &mut State| !state.stopping && state.slots_taken >= self.limits.connections;
        let mut state =
            self.changed.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        if state.stopping {
            return None;
        }
        state.slots_taken += 1;
        drop(state);
        Some(Slot { shared: Arc::clone(self) })
    }

    /// Has `stream` closed when the proxy stops; `None` if it stops already.
    pub(crate) fn watch(&self, stream: &Arc<TcpStream>) -> Option<Watched<'_>> {
        let mut state = self.lock();
        if state.stopping {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.streams.insert(number, Arc::clone(stream));
        drop(state);
        Some(Watched { shared: self, number })
    }

    /// Keeps and logs a denial. One that is kept already moves to the end: a client that tries again and again does not
    /// push the others out.
    pub(crate) fn deny(&self, denied: Denied) {
        (self.log)(&Event::Denied(&denied));
        let mut state = self.lock();
        state.denials.retain(|kept| *kept != denied);
        if state.denials.len() == DENIALS_MAX {
            state.denials.pop_front();
        }
        state.denials.push_back(denied);
    }

    pub(crate) fn take_denials(&self) -> Vec<Denied> {
        self.lock().denials.drain(..).collect()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Lets nothing new begin; gives the sockets that are to be shut down.
    pub(crate) fn stop(&self) -> Vec<Arc<TcpStream>> {
        let mut state = self.lock();
        state.stopping = true;
        let streams = state.streams.drain().map(|(_, stream)| stream).collect();
        drop(state);
        self.changed.notify_all();
        streams
    }

    /// Waits until no connection is left, at most for `limit`; says how many are.
    pub(crate) fn wait_for_end(&self, limit: Duration) -> usize {
        let busy = |state: &mut State| state.slots_taken > 0;
        let (state, _timed_out) = self
            .changed
            .wait_timeout_while(self.lock(), limit, busy)
            .unwrap_or_else(PoisonError::into_inner);
        state.slots_taken
    }

    /// Waits until the proxy stops, or `limit` has passed.
    pub(crate) fn pause(&self, limit: Duration) {
        let running = |state: &mut State| !state.stopping;
        drop(self.changed.wait_timeout_while(self.lock(), limit, running));
    }
}

/// Room for one connection, given back when dropped.
pub(crate) struct Slot {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.shared.lock().slots_taken -= 1;
        self.shared.changed.notify_all();
    }
}

/// A socket on the list of those to close.
pub(crate) struct Watched<'a> {
    shared: &'a Shared,
    number: u64,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        drop(self.shared.lock().streams.remove(&self.number));
    }
}
