//! Disposable sandboxes: places for code that share nothing with the workspace.
//!
//! A native one is a private directory with the confinement of commands around it, made in milliseconds without a
//! daemon; one from an image is a hardened container of a Docker or Podman engine. Invariants: an id names one
//! place until it is stopped; all of them end with the server; what a killed server left is removed by the next
//! one.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use tempfile::TempDir;
use workspace_jail::{Jail, Options, Protect};

use crate::config::{Config, Network};
use crate::locked::lock;
use crate::reply::{ErrorKind, Failure};
use crate::shell::{self, Shell};

/// Places that may be open at once.
const MOST_OPEN: usize = 16;
/// Beginning of a native place's name.
const PREFIX: &str = "agent-disposable-";

/// The open places of one server.
#[derive(Debug, Default)]
pub struct Disposables {
    open: Mutex<BTreeMap<String, Arc<Place>>>,
}

/// One place.
#[derive(Debug)]
pub enum Place {
    /// Confined like the workspace's commands, in a directory of its own.
    Native(Box<Native>),
    /// In a container.
    #[cfg(feature = "container")]
    Container(Box<crate::contained::Contained>),
}

/// A private directory and what runs commands in it.
#[derive(Debug)]
pub struct Native {
    /// Its files.
    pub jail: Jail,
    /// Runs its commands.
    pub shell: Shell,
    /// Says that its server lives.
    _lock: OwnedFd,
    /// Last, so that nothing runs in it any more when it is removed.
    _dir: TempDir,
}

impl Place {
    /// What it is made of, as programs read it.
    pub fn backend(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            #[cfg(feature = "container")]
            Self::Container(_) => "container",
        }
    }
}

impl Native {
    /// Makes one with the operator's settings and this network.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`] when there is no place for its files, [`ErrorKind::SandboxUnavailable`] below the
    /// operator's floor.
    pub fn new(config: &Config, near: &Jail, network: Network) -> Result<Self, Failure> {
        let made = Self::make(config, near, network).map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "no disposable sandbox");
            Failure::new(ErrorKind::Internal, "a disposable sandbox could not be made here")
        })?;
        match made.shell.refused() {
            None => Ok(made),
            Some(failure) => Err(failure),
        }
    }

    fn make(config: &Config, near: &Jail, network: Network) -> anyhow::Result<Self> {
        let parent = shell::scratch_parent(near.dir());
        let dir = TempDir::with_prefix_in(PREFIX, parent).context("no temporary directory")?;
        let options = Options::new().protect(Protect::Off);
        let jail = Jail::open(dir.path(), options).context("the new directory")?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let lock = rustix::fs::openat(jail.dir(), ".", flags, Mode::empty())
            .context("the new directory")?;
        flock(&lock, FlockOperation::NonBlockingLockShared).context("the new directory's lock")?;
        let mut config = config.clone();
        dir.path().clone_into(&mut config.workspace);
        config.network = network;
        let shell = Shell::new(&config, &jail)?;
        Ok(Self { jail, shell, _lock: lock, _dir: dir })
    }
}

impl Disposables {
    /// Adds a place and tells its id.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Busy`] when too many are open; the place is gone then.
    pub fn add(&self, place: Place) -> Result<(String, Arc<Place>), Failure> {
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
        let place = Arc::new(place);
        open.insert(id.clone(), Arc::clone(&place));
        Ok((id, place))
    }

    /// The place of that id, or the only one that is open; `None` when none is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownId`] for an id that is not open, [`ErrorKind::InvalidArgs`] when several are open and
    /// none was named.
    pub fn get(&self, id: Option<&str>) -> Result<Option<(String, Arc<Place>)>, Failure> {
        let open = lock(&self.open);
        if let Some(id) = id {
            let found = open.get(id).map(|place| (id.to_owned(), Arc::clone(place)));
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
        Ok(open.first_key_value().map(|(id, place)| (id.clone(), Arc::clone(place))))
    }

    /// Takes a place out of the open ones.
    pub fn remove(&self, id: &str) -> Option<Arc<Place>> {
        lock(&self.open).remove(id)
    }

    /// Ends all of them. To be called within a runtime where there are containers.
    pub fn end_all(&self) {
        for (id, place) in std::mem::take(&mut *lock(&self.open)) {
            #[cfg(feature = "container")]
            if let Place::Container(contained) = &*place
                && let Err(error) = contained.remove()
            {
                tracing::warn!(id, %error, "a container is left to its lifetime");
            }
            drop((id, place));
        }
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
