//! What commands see on the rungs with namespaces: a root of its own, as data.
//!
//! The caller decides what is shown and where; the helper builds it once, in [`place`](crate::place), for all
//! commands of a sandbox. Everything is shown at its own path, so that what a command prints means the same to
//! its operator. What is not shown is not there.

use std::ffi::OsStr;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::attempt::Bytes;
use crate::places::{Grant, Place};
use crate::{Error, HostRead, Net, Policy};

/// Bytes of `/dev/shm`.
pub(crate) const SHARED_MEMORY: u64 = 64 << 20;
/// Directories commands may fill, whatever they keep there goes with the sandbox.
pub(crate) const TEMPORARY: &str = "/tmp";
/// Terminals, which commands may open and find none.
const TERMINAL: &str = "/dev/tty";
/// Names that lead to what a process has open already.
const STANDARD: &[(&str, &str)] = &[
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
    ("/var/tmp", "../tmp"),
];
/// What would only mislead where there is no network.
const NAME_SERVERS: &str = "/etc/resolv.conf";
/// Names of users and groups, to which an invented one is added.
const USERS: [&str; 2] = ["/etc/passwd", "/etc/group"];

/// Whom commands are to the machine, where that is not the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// The workspace's owner, shown to commands as this user: its files stay that owner's on disk.
    pub(crate) instead_of: Option<(u32, u32)>,
}

/// A part of the machine, shown at its own path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) path: Bytes,
    pub(crate) grant: Grant,
    /// Without it there is no place at all.
    pub(crate) required: bool,
}

/// What a place is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct View {
    pub(crate) identity: Option<Identity>,
    /// Everything the user may read, not a selection.
    pub(crate) whole: bool,
    /// In the order in which they are shown.
    pub(crate) shown: Vec<Shown>,
    /// Links, by path and target.
    pub(crate) links: Vec<(Bytes, Bytes)>,
    /// Files with a text of ours.
    pub(crate) texts: Vec<(Bytes, String)>,
    pub(crate) workspace: Bytes,
    pub(crate) tmp_bytes: Option<u64>,
    pub(crate) private_network: bool,
    /// Whether somebody outside is to be reached through a socket that listens inside.
    pub(crate) listen: bool,
}

impl View {
    /// What a policy amounts to; `home` is the private directory.
    pub(crate) fn new(
        policy: &Policy,
        places: &[Place],
        home: &Path,
        identity: Option<Identity>,
    ) -> Result<Self, Error> {
        let workspace = real_path(policy.workspace.as_fd())
            .map_err(Error::system("find the workspace's path"))?;
        let private_network = policy.net != Net::On;
        let mut view = Self {
            identity,
            whole: policy.read == HostRead::All,
            shown: Vec::new(),
            links: Vec::new(),
            texts: Vec::new(),
            workspace: Bytes::from(workspace.as_path()),
            tmp_bytes: policy.limits.tmp,
            private_network,
            listen: policy.net == Net::Proxy,
        };
        let terminal = Path::new(TERMINAL);
        if terminal.exists() {
            view.show(terminal, Grant::Device, false);
        }
        let named = |path: &Path| policy.extra_read.iter().any(|known| known == path);
        for place in places.iter().filter(|place| place.grant != Grant::Write) {
            // The root itself is no part of a root of its own.
            if view.whole && place.path == Path::new("/") {
                continue;
            }
            view.add(place, named(&place.path))?;
        }
        if !view.whole {
            let standard = STANDARD.iter().map(|(path, target)| {
                (Bytes::from(Path::new(path)), Bytes::from(Path::new(target)))
            });
            view.links.extend(standard);
            view.introduce();
        }
        view.show(home, Grant::Write, true);
        for path in &policy.extra_write {
            let real = path
                .canonicalize()
                .map_err(|source| Error::Place { path: path.clone(), source })?;
            view.show(&real, Grant::Write, true);
        }
        Ok(view)
    }

    fn show(&mut self, path: &Path, grant: Grant, required: bool) {
        let path = Bytes::from(path);
        self.shown.push(Shown { path, grant, required });
    }

    /// Shows a place at its real path, with the links that lead there.
    fn add(&mut self, place: &Place, required: bool) -> Result<(), Error> {
        let is = |path: &str| place.path == Path::new(path);
        if self.private_network && is(NAME_SERVERS) || is("/proc") || is(TEMPORARY) {
            return Ok(());
        }
        if self.identity.is_some_and(|identity| identity.instead_of.is_some())
            && USERS.into_iter().any(is)
        {
            return Ok(());
        }
        let real = real_path(place.handle.as_fd()).map_err(Error::system("find a place's path"))?;
        if !self.covers(&real) {
            self.show(&real, place.grant, required);
        }
        if real != place.path && !self.whole && !self.covers(&place.path) {
            // As it is written, or the whole way where a directory before it is the link.
            let target = rustix::fs::readlink(&place.path, Vec::new());
            let target = target.map_or(real, |text| OsStr::from_bytes(text.to_bytes()).into());
            self.links.push((Bytes::from(place.path.as_path()), Bytes::from(target.as_path())));
        }
        Ok(())
    }

    /// Whether something shown already holds `path`.
    fn covers(&self, path: &Path) -> bool {
        self.shown.iter().any(|shown| path.starts_with(shown.path.path()))
    }

    /// Gives an invented user a name.
    fn introduce(&mut self) {
        let Some(Identity { user, group, instead_of: Some(_) }) = self.identity else { return };
        let home = "/nonexistent";
        for (path, line) in USERS.into_iter().zip([
            format!("agent:x:{user}:{group}::{home}:/bin/sh\n"),
            format!("agent:x:{group}:\n"),
        ]) {
            let known = read(path).unwrap_or_default();
            self.texts.push((Bytes::from(Path::new(path)), known + &line));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a file of the system's, outside every workspace")]
fn read(path: &str) -> std::io::Result<String> {
    std::fs::read_to_string(path)
}

/// Where an open file lies now, without links.
pub(crate) fn real_path(handle: std::os::fd::BorrowedFd<'_>) -> std::io::Result<PathBuf> {
    use std::os::fd::AsRawFd as _;
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new())?;
    let path = PathBuf::from(OsStr::from_bytes(path.to_bytes()));
    // What was removed has a path that leads nowhere, or to something else.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let there = rustix::fs::open(&path, flags, Mode::empty())?;
    let (there, here) = (rustix::fs::fstat(there)?, rustix::fs::fstat(handle)?);
    if (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino) {
        Ok(path)
    } else {
        Err(std::io::Error::from_raw_os_error(libc::ESTALE))
    }
}
