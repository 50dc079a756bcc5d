//! The private directory of one sandbox: `HOME` and `TMPDIR` of its commands, and the canary of its probes.
//!
//! Layout: `agent-sandbox-` and 16 hex digits; it holds `home/`, which commands may change, and `outside/canary`,
//! which they must not see. The whole is removed on drop; one whose owner was killed is swept by the next sandbox with the same
//! parent, which tells it by the lock that the kernel let go.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::Error;

const PREFIX: &str = "agent-sandbox-";
/// What commands must not see.
const OUTSIDE: &str = "outside";
const CANARY: &str = "outside/canary";
/// Names tried before giving up; each is taken with probability 2⁻⁶⁴.
const TRIES: usize = 8;

#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    home: OwnedFd,
    outside: OwnedFd,
    canary: OwnedFd,
    /// Holds the lock for as long as it is open. Of the outer directory, which commands cannot open.
    lock: OwnedFd,
}

impl Scratch {
    pub(crate) fn new(parent: &Path, owner: Option<(u32, u32)>) -> Result<Self, Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |errno: rustix::io::Errno| Error::Place { path, source: errno.into() }
        };
        sweep(parent);
        let (path, lock) = make_fresh(parent).map_err(failed(parent))?;
        let home_path = path.join("home");
        let home = open_directory(&home_path).map_err(failed(&home_path))?;
        let canary = path.join(CANARY);
        rustix::fs::mkdirat(&lock, OUTSIDE, Mode::RWXU).map_err(failed(&canary))?;
        let outside = open_directory(&path.join(OUTSIDE)).map_err(failed(&canary))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let file = rustix::fs::openat(&lock, CANARY, flags, mode).map_err(failed(&canary))?;
        let scratch = Self { path, home, outside, canary: file, lock };
        if let Some(owner) = owner {
            scratch.give_to(owner)?;
        }
        Ok(scratch)
    }

    /// Gives what commands may change to another user. The canary too, so that its owner's rights are not what
    /// keeps it closed.
    pub(crate) fn give_to(&self, (user, group): (u32, u32)) -> Result<(), Error> {
        let failed = |errno: rustix::io::Errno| Error::Place {
            path: self.path.clone(),
            source: errno.into(),
        };
        let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
        for handle in [&self.home, &self.outside, &self.canary] {
            rustix::fs::fchown(handle, Some(user), Some(group)).map_err(failed)?;
        }
        let walk_through = Mode::from_raw_mode(0o711);
        rustix::fs::fchmod(&self.lock, walk_through).map_err(failed)
    }

    /// The directory commands may change.
    pub(crate) fn home(&self) -> &OwnedFd {
        &self.home
    }

    pub(crate) fn home_path(&self) -> PathBuf {
        self.path.join("home")
    }

    /// A file commands must not be able to open.
    pub(crate) fn canary(&self) -> PathBuf {
        self.path.join(CANARY)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// A new directory with its lock and an empty `home/`.
fn make_fresh(parent: &Path) -> rustix::io::Result<(PathBuf, OwnedFd)> {
    use std::hash::{BuildHasher as _, RandomState};
    let mut result = Err(Errno::EXIST);
    for _ in 0..TRIES {
        // Keyed from the system's randomness. A guess gains nothing: an existing name is never used.
        let number = RandomState::new().hash_one(std::process::id());
        let path = parent.join(format!("{PREFIX}{number:016x}"));
        result = make_locked(&path).map(|lock| (path, lock));
        // Besides a name that is taken: another sandbox's sweep found it before its lock was held.
        if !matches!(result, Err(Errno::EXIST | Errno::NOENT | Errno::WOULDBLOCK)) {
            break;
        }
    }
    result
}

fn make_locked(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::mkdir(path, Mode::RWXU)?;
    let lock = open_directory(path)?;
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    // Fails if it was removed meanwhile; from here on no sweep takes it.
    rustix::fs::mkdirat(&lock, "home", Mode::RWXU)?;
    Ok(lock)
}

/// Removes what killed owners left. What cannot be removed stays, and harms nobody.
fn sweep(parent: &Path) {
    let Ok(directory) = open_directory(parent) else { return };
    let Ok(entries) = rustix::fs::Dir::read_from(&directory) else { return };
    let us = rustix::process::geteuid().as_raw();
    for entry in entries.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().to_str() else { continue };
        if !name.starts_with(PREFIX) {
            continue;
        }
        let path = parent.join(name);
        let Ok(lock) = open_directory(&path) else { continue };
        // In a directory that everybody may write to, only our own are ours to remove.
        let ours = rustix::fs::fstat(&lock).is_ok_and(|stat| stat.st_uid == us);
        let abandoned = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        if ours && abandoned {
            remove(&path);
        }
    }
}

/// Removes a tree commands could write to; links in it are removed, not followed.
#[expect(clippy::disallowed_methods, reason = "the scratch directory lies outside every workspace")]
fn remove(path: &Path) {
    // The standard library walks by descriptors; what a command made unremovable is left for the operator.
    std::fs::remove_dir_all(path).ok();
}

#[cfg(test)]
mod tests {
    use super::Scratch;

    #[test]
    fn one_is_private_and_goes_with_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(parent.path(), None).unwrap();
        let home = scratch.home_path();
        assert_eq!(home.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        drop(scratch);
        assert_eq!(parent.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn one_that_is_just_being_made_is_made_in_the_end() {
        let parent = tempfile::tempdir().unwrap();
        // Each sweeps while the others are being made.
        let make = || (0..50).map(|_| Scratch::new(parent.path(), None).unwrap()).collect();
        let all: Vec<Vec<Scratch>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(all.iter().flatten().all(|it| it.canary().exists() && it.home_path().exists()));
    }

    #[test]
    fn a_living_one_is_not_swept_and_an_abandoned_one_is() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::new(parent.path(), None).unwrap();
        let abandoned = parent.path().join("agent-sandbox-0123456789abcdef");
        std::fs::DirBuilder::new().recursive(true).create(abandoned.join("home/deep")).unwrap();
        std::os::unix::fs::symlink("/etc", abandoned.join("home/link")).unwrap();
        std::fs::DirBuilder::new().create(abandoned.join("outside")).unwrap();
        rustix::fs::symlink("/nowhere", abandoned.join("outside/canary")).unwrap();
        let unfinished = parent.path().join("agent-sandbox-0123456789abcdee");
        std::fs::DirBuilder::new().create(&unfinished).unwrap();
        let next = Scratch::new(parent.path(), None).unwrap();
        assert!(!abandoned.exists() && !unfinished.exists());
        assert!(living.home_path().exists());
        assert!(next.home_path().exists());
    }
}
