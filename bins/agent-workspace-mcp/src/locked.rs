//! Mutexes whose state is whole whatever happened while they were held.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock, also after a panic of whoever held it: for states that no panic leaves half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
