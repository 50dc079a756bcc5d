//! Calls in a place: counted, so that the place can end them and goes after them.
//!
//! Invariant: a call that has left holds nothing of the place any more.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use proc_runner::Cancel;

use super::Place;
use crate::locked::lock;

/// How long calls in a place that is closed have to leave it: a command's own grace, and more.
const LEAVING: Duration = Duration::from_secs(10);

/// An open place, and the calls that are in it.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) place: Arc<Place>,
    visits: Arc<Visits>,
}

/// The calls in a place, each by a number, with what ends it.
#[derive(Debug, Default)]
struct Visits {
    inside: Mutex<Inside>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    entered: u64,
    calls: BTreeMap<u64, Cancel>,
}

/// One call in a place, which lasts at least as long.
#[derive(Debug)]
pub struct Visit {
    /// The place's id.
    pub id: String,
    /// Let go before the ticket, which tells that the call has left.
    place: Arc<Place>,
    ticket: Ticket,
}

/// The proof that a call is in a place.
#[derive(Debug)]
struct Ticket {
    visits: Arc<Visits>,
    number: u64,
}

impl Open {
    /// A place that nobody is in.
    pub(super) fn new(place: Place) -> Self {
        Self { place: Arc::new(place), visits: Arc::default() }
    }

    /// Enters it, for a call that `cancel` ends.
    pub(super) fn enter(&self, id: &str, cancel: &Cancel) -> Visit {
        let mut inside = lock(&self.visits.inside);
        inside.entered += 1;
        let number = inside.entered;
        inside.calls.insert(number, cancel.clone());
        let ticket = Ticket { visits: Arc::clone(&self.visits), number };
        Visit { id: id.to_owned(), place: Arc::clone(&self.place), ticket }
    }
}

impl Visit {
    /// Ends the other calls that are in the place, and waits until they have left.
    pub fn end_others(&self) {
        let Ticket { visits, number } = &self.ticket;
        let inside = lock(&visits.inside);
        for (_, cancel) in inside.calls.iter().filter(|(other, _)| *other != number) {
            cancel.cancel();
        }
        let are_others = |inside: &mut Inside| inside.calls.keys().any(|other| other != number);
        let waited = visits.left.wait_timeout_while(inside, LEAVING, are_others);
        if waited.is_err() || waited.is_ok_and(|(_, waited)| waited.timed_out()) {
            tracing::warn!(id = self.id, "calls in a sandbox do not end; it goes when they have");
        }
    }
}

impl Deref for Visit {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.place
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        lock(&self.visits.inside).calls.remove(&self.number);
        self.visits.left.notify_all();
    }
}
