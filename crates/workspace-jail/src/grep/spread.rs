//! Searching the files of a tree on all processors.
//!
//! One thread walks. It hands files on in batches, each with its directory held by descriptor, so that
//! what another thread opens is an entry of the directory that was walked, whatever is renamed
//! meanwhile. When the others have enough to do it searches a batch itself, so nobody waits and the
//! queue stays short: descriptors and memory are bounded by constants, whatever the tree holds. A small tree
//! starts no thread, and a system that gives none is searched by the walk alone.

use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

use cap_std::fs::Dir;
use rustix::fs::FileType;

use super::search::Search;
use crate::jail::Jail;
use crate::path::Name;
use crate::trail::Trail;
use crate::walk::{Flow, Visit, Walk};

/// Threads at most, the one that walks included.
const MAX_THREADS: usize = 8;

/// Batches waiting at most.
const QUEUED: usize = 4;

/// Files and directories of a batch at most.
const BATCH_FILES: usize = 64;
const BATCH_DIRS: usize = 8;

/// Some files of one directory.
struct Group {
    dir: Dir,
    files: Vec<(Name, OsString)>,
}

/// Files to be searched by one thread.
#[derive(Default)]
struct Batch {
    groups: Vec<Group>,
    files: usize,
}

impl Batch {
    /// Takes a file in, unless no descriptor is to be had for its directory.
    fn add(&mut self, visit: &Visit<'_>) -> bool {
        let path = visit.path.as_os_str().to_owned();
        let file = (visit.name.clone(), path);
        match self.groups.last_mut() {
            Some(group) if group.is_at(visit) => group.files.push(file),
            _ => match visit.dir.try_clone() {
                Ok(dir) => self.groups.push(Group { dir, files: vec![file] }),
                Err(_) => return false,
            },
        }
        self.files += 1;
        true
    }

    fn is_full(&self) -> bool {
        self.files >= BATCH_FILES || self.groups.len() >= BATCH_DIRS
    }

    fn search(&self, jail: &Jail, search: &mut Search<'_>) {
        for Group { dir, files } in &self.groups {
            for (name, path) in files {
                search.entry(jail, dir, name, path);
            }
        }
    }
}

impl Group {
    /// Whether an entry stands in the same directory: a walk enters each path once.
    fn is_at(&self, visit: &Visit<'_>) -> bool {
        self.files.last().is_some_and(|(_, path)| Path::new(path).parent() == visit.path.parent())
    }
}

/// Walks from `start` and searches every regular file that `is_wanted`.
pub(super) fn over<'j, 'l>(
    jail: &'j Jail,
    walk: Walk<'j>,
    start: Trail<'j>,
    is_wanted: &dyn Fn(&Path) -> bool,
    search: Search<'l>,
) -> Search<'l> {
    let (sender, receiver) = mpsc::sync_channel(QUEUED);
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        let mut crew = Crew::new(jail, scope, &receiver, sender, search);
        let mut batch = Batch::default();
        let unreadable = walk.run(start, &mut |visit| {
            if visit.kind == FileType::RegularFile && is_wanted(visit.path) {
                if !batch.add(visit) {
                    crew.own.entry(jail, visit.dir, visit.name, visit.path.as_os_str());
                }
                if batch.is_full() {
                    crew.search(std::mem::take(&mut batch));
                }
            }
            Flow::On
        });
        batch.search(jail, &mut crew.own);
        crew.own.add_unreadable(unreadable);
        crew.finish()
    })
}

/// The thread that walks, and its helpers.
struct Crew<'scope, 'env, 'l> {
    jail: &'env Jail,
    scope: &'scope Scope<'scope, 'env>,
    queue: &'env Mutex<Receiver<Batch>>,
    sender: SyncSender<Batch>,
    own: Search<'l>,
    helpers: Vec<ScopedJoinHandle<'scope, Search<'l>>>,
    /// How many helpers there may be.
    most: usize,
}

impl<'scope, 'env, 'l: 'scope> Crew<'scope, 'env, 'l> {
    fn new(
        jail: &'env Jail,
        scope: &'scope Scope<'scope, 'env>,
        queue: &'env Mutex<Receiver<Batch>>,
        sender: SyncSender<Batch>,
        own: Search<'l>,
    ) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let most = processors.min(MAX_THREADS) - 1;
        Self { jail, scope, queue, sender, own, helpers: Vec::new(), most }
    }

    /// Hands a batch to the helpers, or searches it here if they are busy.
    fn search(&mut self, batch: Batch) {
        if self.helpers.len() < self.most {
            self.hire();
        }
        match self.sender.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) => {
                batch.search(self.jail, &mut self.own);
            }
        }
    }

    fn hire(&mut self) {
        let (jail, queue, mut search) = (self.jail, self.queue, self.own.another());
        let started = thread::Builder::new().spawn_scoped(self.scope, move || {
            work(jail, queue, &mut search);
            search
        });
        match started {
            Ok(helper) => self.helpers.push(helper),
            // The system gives no further thread.
            Err(_) => self.most = self.helpers.len(),
        }
    }

    /// Empties the queue and adds up what everyone found.
    fn finish(self) -> Search<'l> {
        let Self { jail, queue, sender, mut own, helpers, .. } = self;
        // Without a sender an empty queue is the end of it.
        drop(sender);
        work(jail, queue, &mut own);
        for helper in helpers {
            match helper.join() {
                Ok(found) => own.absorb(found),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        own
    }
}

/// Searches what comes through the queue until nothing more can come.
fn work(jail: &Jail, queue: &Mutex<Receiver<Batch>>, search: &mut Search<'_>) {
    loop {
        // The lock is held while waiting, and not while searching.
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = next else { return };
        batch.search(jail, search);
    }
}
