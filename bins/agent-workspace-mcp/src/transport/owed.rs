//! What the server owes its client: requests that were read and not yet answered, and answers not yet taken.
//!
//! A client that asks without ever reading must not fill the server's memory: reading waits while this is too much,
//! and goes on as the client takes its answers. Invariant: a request counts from its line to the end of its answer's
//! writing, or to its cancellation, which has no answer. Non-goal: fairness, as there is one client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rmcp::model::RequestId;
use tokio::sync::Notify;

use crate::locked::lock;

/// Bytes of requests and answers; one line more is read beyond it.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Requests at one time: their answers, which cannot be counted before they are there, have limits of their own.
const MOST_REQUESTS: usize = 256;

/// Shared by the reading and the writing side.
#[derive(Debug, Clone, Default)]
pub(super) struct Owed {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    owed: Mutex<State>,
    less: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes of the line of each request.
    requests: HashMap<RequestId, usize>,
    bytes: usize,
}

impl State {
    fn settle(&mut self, id: &RequestId) {
        if let Some(bytes) = self.requests.remove(id) {
            self.bytes -= bytes;
        }
    }
}

/// An answer on its way out; it counts until this is dropped.
#[derive(Debug)]
pub(super) struct Answer {
    owed: Owed,
    id: Option<RequestId>,
    bytes: usize,
}

impl Owed {
    /// Waits until there is room for another request.
    pub(super) async fn room(&self) {
        loop {
            // Before the look, or what happens between the two would be missed.
            let less = self.shared.less.notified();
            let is_full = {
                let owed = lock(&self.shared.owed);
                owed.bytes >= MOST_BYTES || owed.requests.len() >= MOST_REQUESTS
            };
            if !is_full {
                return;
            }
            less.await;
        }
    }

    /// A request of so many bytes was read.
    pub(super) fn asked(&self, id: RequestId, bytes: usize) {
        let mut owed = lock(&self.shared.owed);
        // An id that is used twice at a time is answered once.
        owed.settle(&id);
        owed.bytes += bytes;
        owed.requests.insert(id, bytes);
    }

    /// A request will have no answer.
    pub(super) fn cancelled(&self, id: &RequestId) {
        lock(&self.shared.owed).settle(id);
        self.shared.less.notify_one();
    }

    /// So many bytes wait to be written, an answer if there is an id.
    pub(super) fn answer(&self, id: Option<RequestId>, bytes: usize) -> Answer {
        lock(&self.shared.owed).bytes += bytes;
        Answer { owed: self.clone(), id, bytes }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let mut owed = lock(&self.owed.shared.owed);
        owed.bytes -= self.bytes;
        if let Some(id) = &self.id {
            owed.settle(id);
        }
        drop(owed);
        self.owed.shared.less.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether there is room at once.
    fn has_room(owed: &Owed) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(owed.room()).poll(&mut context).is_ready()
    }

    #[test]
    fn there_is_room_again_when_an_answer_was_written_or_a_request_cancelled() {
        let owed = Owed::default();
        owed.asked(RequestId::Number(1), MOST_BYTES);
        assert!(!has_room(&owed));
        owed.cancelled(&RequestId::Number(1));
        assert!(has_room(&owed));
        owed.asked(RequestId::Number(2), 10);
        let answer = owed.answer(Some(RequestId::Number(2)), MOST_BYTES);
        assert!(!has_room(&owed));
        drop(answer);
        assert!(has_room(&owed));
        assert_eq!(lock(&owed.shared.owed).bytes, 0);
    }

    #[test]
    fn requests_count_by_number_too_and_an_id_used_twice_once() {
        let owed = Owed::default();
        for id in 0..MOST_REQUESTS {
            assert!(has_room(&owed));
            owed.asked(RequestId::Number(i64::try_from(id).unwrap()), 1);
        }
        assert!(!has_room(&owed));
        owed.asked(RequestId::Number(0), 5);
        assert_eq!(lock(&owed.shared.owed).bytes, MOST_REQUESTS + 4);
    }
}
