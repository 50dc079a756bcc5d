//! Disposable sandboxes: places for code that share nothing with the workspace.
//!
//! A native one is a private directory with the confinement of commands around it, made in milliseconds without a
//! daemon; one from an image is a hardened container of a Docker or Podman engine. Invariants: an id names one
//! place until it is stopped; what runs in a place ends before the place goes; all of them end with the server; what a killed server left is removed by the next
//! one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use proc_runner::Cancel;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use tempfile::TempDir;
use workspace_jail::{Jail, Options, Protect};

use crate::config::{Config, Network};
use crate::locked::lock;
use crate::reply::{ErrorKind, Failure};
use crate::seen::{Changes, Seen};
use crate::shell::{self, Shell};

/// Places that may be open at once.
const MOST_OPEN: usize = 16;
/// How long calls in a place that is closed have to leave it: a command's own grace, and more.
const LEAVING: Duration = Duration::from_secs(10);
/// Beginning of a native place's name.
const PREFIX: &str = "agent-disposable-";

/// The open places of one server.
#[derive(Debug, Default)]
pub struct Disposables {
    open: Mutex<BTreeMap<String, Open>>,
}

/// An open place, and the calls that are in it.
#[derive(Debug, Clone)]
struct Open {
    place: Arc<Place>,
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

/// One place, with what is known about it.
#[derive(Debug)]
pub struct Place {
    /// What it is made of.
    pub backend: Backend,
    /// Programs that were found there.
    programs: Mutex<BTreeSet<&'static str>>,
    /// Its files when code last ended there.
    seen: Mutex<Seen>,
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

/// A private directory and what runs commands in it.
#[derive(Debug)]
pub struct Native {
    /// Runs its commands.
    pub shell: Shell,
    /// Shell words that come before every line: what leads programs to installed packages.
    pub preamble: String,
    /// Last, so that nothing runs in it any more when it is removed.
    scratch: Scratch,
}

/// A private directory, and the jail around it.
#[derive(Debug)]
pub struct Scratch {
    /// Its files.
    pub jail: Jail,
    /// Says that its server lives.
    _lock: OwnedFd,
    dir: TempDir,
}

impl Place {
    /// An empty place.
    pub fn new(backend: Backend) -> Self {
        Self { backend, programs: Mutex::default(), seen: Mutex::default() }
    }

    /// What it is made of, as programs read it.
    pub fn backend(&self) -> &'static str {
        match self.backend {
            Backend::Native(_) => "native",
            #[cfg(feature = "container")]
            Backend::Container(_) => "container",
        }
    }

    /// Whether a program was found there before. What was missing is looked for again.
    pub fn knows(&self, program: &str) -> bool {
        lock(&self.programs).contains(program)
    }

    /// Remembers that a program is there.
    pub fn learn(&self, program: &'static str) {
        lock(&self.programs).insert(program);
    }

    /// Remembers the files as they are now; what changed since they were last looked at.
    pub fn look(&self, now: Seen) -> Changes {
        let mut seen = lock(&self.seen);
        let changes = now.changes_since(&seen);
        *seen = now;
        changes
    }
}

impl Scratch {
    /// Makes an empty one outside the workspace `near`.
    ///
    /// # Errors
    ///
    /// When there is no place for it.
    pub fn new(near: &Jail) -> anyhow::Result<Self> {
        let parent = shell::scratch_parent(near.dir());
        let dir = TempDir::with_prefix_in(PREFIX, parent).context("no temporary directory")?;
        let options = Options::new().protect(Protect::Off);
        let jail = Jail::open(dir.path(), options).context("the new directory")?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(jail.dir(), ".", flags, Mode::empty())
            .context("the new directory")?;
        flock(&lock, FlockOperation::NonBlockingLockShared).context("the new directory's lock")?;
        Ok(Self { jail, _lock: lock, dir })
    }

    /// The directory itself, for the server's own files.
    ///
    /// # Errors
    ///
    /// When there is no descriptor.
    pub fn dir(&self) -> std::io::Result<Dir> {
        Dir::reopen_dir(&self.jail.dir())
    }

    fn shell(&self, config: &Config, network: Network) -> anyhow::Result<Shell> {
        let mut config = config.clone();
        self.dir.path().clone_into(&mut config.workspace);
        config.network = network;
        Shell::new(&config, &self.jail)
    }
}

fn none(error: &anyhow::Error) -> Failure {
    tracing::error!(error = format!("{error:#}"), "no disposable sandbox");
    Failure::new(ErrorKind::Internal, "a disposable sandbox could not be made here")
}

impl Native {
    /// Makes one with the operator's settings and this network.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when there is no place for its files, [`ErrorKind::SandboxUnavailable`] below the
    /// operator's floor.
    pub fn new(config: &Config, near: &Jail, network: Network) -> Result<Self, Failure> {
        let made = Self::make(config, near, network).map_err(|error| none(&error))?;
        match made.shell.refused() {
            None => Ok(made),
            Some(failure) => Err(failure),
        }
    }

    fn make(config: &Config, near: &Jail, network: Network) -> anyhow::Result<Self> {
        let scratch = Scratch::new(near)?;
        let shell = scratch.shell(config, network)?;
        Ok(Self { shell, preamble: String::new(), scratch })
    }

    /// Its files.
    pub fn jail(&self) -> &Jail {
        &self.scratch.jail
    }

    /// Looks at its files, as `place` remembers them.
    pub fn look(&self, place: &Place) -> Changes {
        // A directory that cannot be opened has no files to tell of.
        let seen = self.scratch.dir().map(|dir| Seen::below(&dir)).unwrap_or_default();
        place.look(seen)
    }

    /// A second shell in the same directory, with another network.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when there is none.
    pub fn shell_with(&self, config: &Config, network: Network) -> Result<Shell, Failure> {
        self.scratch.shell(config, network).map_err(|error| none(&error))
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
        let added = Open { place: Arc::new(place), visits: Arc::default() };
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

impl Open {
    fn enter(&self, id: &str, cancel: &Cancel) -> Visit {
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

/// Removes what killed servers left of native places beside `near`'s.
pub fn sweep(near: &Jail) {
    let parent = shell::scratch_parent(near.dir());
    let Ok(dir) = Dir::open_ambient_dir(&parent, ambient_authority()) else { return };
    let Ok(entries) = dir.entries() else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = PathBuf::from(entry.file_name());
        if name.to_str().is_some_and(|name| name.starts_with(PREFIX)) && is_abandoned(&dir, &name) {
            // What a command made unremovable is left for the operator.
            dir.remove_dir_all(&name).ok();
        }
    }
}

/// Whether it is ours and nobody holds its lock, which goes with the process that took it.
fn is_abandoned(parent: &Dir, name: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(dir) = rustix::fs::openat(parent, name, flags, Mode::empty()) else { return false };
    let ours = rustix::fs::fstat(&dir)
        .is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
    ours && flock(dir.as_fd(), FlockOperation::NonBlockingLockExclusive).is_ok()
}
