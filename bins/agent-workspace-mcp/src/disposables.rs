//! Disposable sandboxes: places for code that share nothing with the workspace.
//!
//! A native one is a private directory with the confinement of commands around it, made in milliseconds without a
//! daemon; one from an image is a hardened container of a Docker or Podman engine. Invariants: an id names one
//! place until it is stopped; what runs in a place ends before the place goes; all of them end with the server; what
//! a killed server left is removed by the next one.

mod native;
mod visit;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use proc_runner::Cancel;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use workspace_jail::Jail;

use crate::languages::Language;
use crate::locked::lock;
use crate::reply::{ErrorKind, Failure};
use crate::seen::{Changes, Seen};
use crate::shell;

pub use native::{Native, Scratch};
use visit::Open;
pub use visit::Visit;

/// Places that may be open at once.
const MOST_OPEN: usize = 16;
/// Beginning of a native place's name.
const PREFIX: &str = "agent-disposable-";

/// The open places of one server.
#[derive(Debug, Default)]
pub struct Disposables {
    open: Mutex<BTreeMap<String, Open>>,
}

/// One place, with what is known about it.
#[derive(Debug)]
pub struct Place {
    /// What it is made of.
    pub backend: Backend,
    /// Languages, by name, that can be run there.
    languages: Mutex<BTreeSet<&'static str>>,
    /// Its files when code last ended there.
    seen: Mutex<Seen>,
    /// Numbers of the calls whose code runs there.
    running: Mutex<BTreeSet<usize>>,
}

/// The number of a call whose code runs in a place: no other has it at the same time.
#[derive(Debug)]
pub struct Number<'p> {
    place: &'p Place,
    number: usize,
}

impl Number<'_> {
    /// 1 for a call that is alone.
    pub fn get(&self) -> usize {
        self.number
    }
}

impl Drop for Number<'_> {
    fn drop(&mut self) {
        lock(&self.place.running).remove(&self.number);
    }
}

/// What a place is made of.
#[derive(Debug)]
pub enum Backend {
    /// Confined like the workspace's commands, in a directory of its own.
    Native(Box<Native>),
    /// In a container.
    #[cfg(feature = "container")]
    Container(Box<crate::contained::Contained>),
}

impl Place {
    /// An empty place.
    pub fn new(backend: Backend) -> Self {
        Self {
            backend,
            languages: Mutex::default(),
            seen: Mutex::default(),
            running: Mutex::default(),
        }
    }

    /// What it is made of, as programs read it.
    pub fn backend(&self) -> &'static str {
        match self.backend {
            Backend::Native(_) => "native",
            #[cfg(feature = "container")]
            Backend::Container(_) => "container",
        }
    }

    /// Whether what runs a language was found there before. What was missing is looked for again.
    pub fn knows(&self, language: &Language) -> bool {
        lock(&self.languages).contains(language.name)
    }

    /// Remembers that a language can be run there.
    pub fn learn(&self, language: &Language) {
        lock(&self.languages).insert(language.name);
    }

    /// The lowest number that no call has, until it is dropped.
    pub fn number(&self) -> Number<'_> {
        let mut running = lock(&self.running);
        let most = running.len() + 1;
        let number = (1..most).find(|number| !running.contains(number)).unwrap_or(most);
        running.insert(number);
        Number { place: self, number }
    }

    /// Remembers the files as they are now; what changed since they were last looked at.
    pub fn look(&self, now: Seen) -> Changes {
        let mut seen = lock(&self.seen);
        let changes = now.changes_since(&seen);
        *seen = now;
        changes
    }
}

impl Disposables {
    /// Adds a place and enters it, for a call that `cancel` ends.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] when too many are open; the place is gone then.
    pub fn add(&self, place: Place, cancel: &Cancel) -> Result<Visit, Failure> {
        let mut open = lock(&self.open);
        if open.len() >= MOST_OPEN {
            return Err(Failure::new(
                ErrorKind::Busy,
                format!("{MOST_OPEN} sandboxes are open; stop one with stop_sandbox first"),
            ));
        }
        let mut random = [0; 4];
        crate::output_store::fill_random(&mut random)
            .map_err(|error| Failure::new(ErrorKind::Internal, format!("no id: {error}")))?;
        let id = format!("sandbox-{:08x}", u32::from_le_bytes(random));
        let added = Open::new(place);
        let visit = added.enter(&id, cancel);
        open.insert(id, added);
        Ok(visit)
    }

    /// Enters the place of that id, or the only one that is open; `None` when none is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownId`] for an id that is not open, [`ErrorKind::InvalidArgs`] when several are open and
    /// none was named.
    pub fn get(&self, id: Option<&str>, cancel: &Cancel) -> Result<Option<Visit>, Failure> {
        let open = lock(&self.open);
        if let Some(id) = id {
            let found = open.get(id).map(|found| found.enter(id, cancel));
            return found.map(Some).ok_or_else(|| {
                Failure::new(
                    ErrorKind::UnknownId,
                    format!("no sandbox '{id}' is open; initialize_sandbox opens one"),
                )
            });
        }
        if open.len() > 1 {
            let ids: Vec<_> = open.keys().map(String::as_str).collect();
            return Err(Failure::invalid_args(format!(
                "several sandboxes are open; name one by sandbox_id: {}",
                ids.join(", ")
            )));
        }
        Ok(open.first_key_value().map(|(id, found)| found.enter(id, cancel)))
    }

    /// Takes a place out of the open ones, and lets it go when the calls that are in it have ended and left.
    pub fn close(&self, visit: Visit) {
        let open = lock(&self.open).remove(&visit.id);
        visit.end_others();
        drop((visit, open));
    }

    /// Ends all of them. To be called within a runtime where there are containers.
    pub fn end_all(&self) {
        for (id, open) in std::mem::take(&mut *lock(&self.open)) {
            #[cfg(feature = "container")]
            if let Backend::Container(contained) = &open.place.backend
                && let Err(error) = contained.remove()
            {
                tracing::warn!(id, %error, "a container is left to its lifetime");
            }
            drop((id, open));
        }
    }
}

/// Removes what killed servers left of native places, and of the homes of commands without a sandbox, beside `near`'s.
pub fn sweep(near: &Jail) {
    let parent = shell::scratch_parent(near.dir());
    let Ok(dir) = Dir::open_ambient_dir(&parent, ambient_authority()) else { return };
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = PathBuf::from(entry.file_name());
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX))
            && let Some(_lock) = abandoned(&dir, &name)
        {
            // What a command made unremovable is left for the operator.
            dir.remove_dir_all(&name).ok();
        }
    }
}

/// The lock of one that is ours and that nobody holds: it goes with the process that took it. To be kept until the
/// directory is gone, so that nobody moves in meanwhile.
fn abandoned(parent: &Dir, name: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::openat(parent, name, flags, Mode::empty()).ok()?;
    let ours = rustix::fs::fstat(&dir)
        .is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
    (ours && flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok()).then_some(dir)
}

#[cfg(test)]
mod tests {
    use workspace_jail::Options;

    use super::*;

    #[test]
    fn one_that_is_just_being_made_is_made_in_the_end() {
        let fixture = testkit::Fixture::new("//- a\n");
        let near = Jail::open(&fixture.root(), Options::new()).unwrap();
        // Each sweeps while the others are being made.
        let make = || -> Vec<Scratch> {
            let one = |_| {
                sweep(&near);
                Scratch::new(near.dir()).unwrap()
            };
            (0..30).map(one).collect()
        };
        let all: Vec<Vec<Scratch>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        sweep(&near);
        for scratch in all.iter().flatten() {
            let file = scratch.dir().unwrap().create("file");
            assert!(file.is_ok(), "{scratch:?}");
        }
    }
}
