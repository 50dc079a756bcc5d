//! What a probe tries, before the steps and after them.
//!
//! An attempt is made by the helper itself, in the process that was just confined, so the answer is the
//! kernel's and needs no program on the machine. Most are made twice: the first shows that nothing else had
//! refused it already. Every one is harmless where it succeeds.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::layer::rlimits::{self, Limit};

/// One thing to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Try {
    ReadOutside(Bytes),
    WriteOutside(Bytes),
    CreateOutside(Bytes),
    TruncateOutside(Bytes),
    ChangeModeOutside(Bytes),
    ReadEnvironment(i32),
    Signal(i32),
    Limit(i32),
    Trace,
    /// Sending to an address of the internet, one that nobody has: see RFC 5737.
    Internet,
    /// Connecting to an abstract Unix socket that the caller listens on.
    UnixSocket(Bytes),
    UserNamespace,
    /// Leaving what keeps a command's processes together.
    Leave,
    /// A file system for temporary files without a limit.
    Temporary {
        limit: u64,
    },
    /// Making a file where everything is protected.
    CreateProtected(Bytes),
    NewPrivileges,
    Capabilities,
    Limits(Vec<Limit>),
}

/// Stands for the process that makes the attempt beforehand, which stays outside where there are namespaces: for a
/// caller whose own number is one of those that are given out again inside.
pub(crate) const OURSELVES: i32 = 0;

/// A path as it travels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bytes(Vec<u8>);

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl Bytes {
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.0.clone()))
    }
}

/// What came of it: 0 where it succeeded, else the error's number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) what: Try,
    /// `None` for what cannot be tried without doing it.
    pub(crate) before: Option<i32>,
    pub(crate) after: Option<i32>,
}

impl Attempt {
    /// Refused once confined: not failed for another reason, such as a file that exists already.
    pub(crate) fn was_refused(&self) -> bool {
        let Some(errno) = self.after else { return false };
        let refused = matches!(errno, libc::EACCES | libc::EPERM | libc::EROFS);
        let hidden = match &self.what {
            Try::ReadOutside(_)
            | Try::WriteOutside(_)
            | Try::CreateOutside(_)
            | Try::TruncateOutside(_)
            | Try::ChangeModeOutside(_)
            | Try::ReadEnvironment(_) => errno == libc::ENOENT,
            Try::Signal(_) => errno == libc::ESRCH,
            Try::Internet => errno == libc::ENETUNREACH,
            Try::UnixSocket(_) => errno == libc::ECONNREFUSED,
            _ => false,
        };
        // What is not there without the sandbox either proves nothing; but for a network, which may be missing
        // outside as well.
        let proven = self.before.is_none_or(|before| before != errno);
        refused || (hidden && (proven || self.what == Try::Internet))
    }
}

impl Try {
    /// Makes the attempt where it can be taken back.
    pub(crate) fn before(mut self) -> Attempt {
        if let Self::ReadEnvironment(pid) | Self::Signal(pid) = &mut self
            && *pid == OURSELVES
        {
            *pid = rustix::process::getpid().as_raw_nonzero().get();
        }
        let before = match &self {
            Self::UserNamespace
            | Self::Leave
            | Self::CreateOutside(_)
            | Self::CreateProtected(_) => None,
            _ => Some(number(self.make())),
        };
        Attempt { what: self, before, after: None }
    }

    fn make(&self) -> io::Result<()> {
        match self {
            Self::ReadOutside(path) => open(path, OFlags::RDONLY),
            Self::WriteOutside(path) => open(path, OFlags::WRONLY),
            Self::CreateOutside(path) => open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL),
            Self::TruncateOutside(path) => crate::sys::truncate(&path.path()),
            Self::ChangeModeOutside(path) => {
                Ok(rustix::fs::chmod(path.path(), Mode::RUSR | Mode::WUSR)?)
            }
            Self::ReadEnvironment(pid) => {
                let path = PathBuf::from(format!("/proc/{pid}/environ"));
                open(&Bytes::from(path.as_path()), OFlags::RDONLY)
            }
            Self::Signal(pid) => Ok(rustix::process::test_kill_process(process(*pid)?)?),
            Self::Limit(pid) => {
                let resource = rustix::process::Resource::Core;
                let as_it_is = rustix::process::getrlimit(resource);
                rustix::process::prlimit(Some(process(*pid)?), resource, as_it_is)?;
                Ok(())
            }
            Self::Trace => match crate::sys::attempt_ptrace() {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
                other => other,
            },
            Self::Internet => {
                let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
                // To connect a datagram socket sends nothing; it asks for a way there.
                let nobody = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9);
                Ok(rustix::net::connect(&socket, &nobody)?)
            }
            Self::UnixSocket(name) => {
                let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
                let address = rustix::net::SocketAddrUnix::new_abstract_name(&name.0)?;
                Ok(rustix::net::connect(&socket, &address)?)
            }
            Self::Temporary { limit } => {
                let system = rustix::fs::statvfs("/tmp")?;
                let bytes = system.f_blocks.saturating_mul(system.f_frsize);
                if bytes <= *limit { Err(Errno::PERM.into()) } else { Ok(()) }
            }
            Self::CreateProtected(path) => {
                open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
                // It should not have been made; it is gone again in any case.
                Ok(rustix::fs::unlink(path.path())?)
            }
            Self::UserNamespace => crate::sys::attempt_user_namespace(),
            // The first process of a namespace is what holds the others.
            Self::Leave if rustix::process::getpid().as_raw_nonzero().get() == 1 => {
                Err(Errno::PERM.into())
            }
            Self::Leave => match crate::sys::attempt_new_session()? {
                // The filter answers 0, and no session has that number.
                0 => Err(Errno::PERM.into()),
                _ => Ok(()),
            },
            Self::NewPrivileges => {
                if rustix::thread::no_new_privs()? {
                    Err(Errno::PERM.into())
                } else {
                    Ok(())
                }
            }
            Self::Capabilities => {
                let sets = rustix::thread::capabilities(None)?;
                let any = sets.effective | sets.permitted | sets.inheritable;
                if any.is_empty() { Err(Errno::PERM.into()) } else { Ok(()) }
            }
            Self::Limits(limits) => {
                if rlimits::holds(limits) {
                    Err(Errno::PERM.into())
                } else {
                    Ok(())
                }
            }
        }
    }
}

impl Attempt {
    /// Makes the attempt again, now confined.
    pub(crate) fn again(mut self) -> Self {
        self.after = Some(number(self.what.make()));
        self
    }
}

fn number(result: io::Result<()>) -> i32 {
    // An error of ours, such as a process id of 0, has no number and is still no success.
    result.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |()| 0)
}

fn open(path: &Bytes, flags: OFlags) -> io::Result<()> {
    rustix::fs::open(path.path(), flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    Ok(())
}

fn process(pid: i32) -> io::Result<Pid> {
    let pid = if pid > 0 { Pid::from_raw(pid) } else { None };
    pid.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
