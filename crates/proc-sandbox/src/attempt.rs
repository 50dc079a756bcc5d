//! What a probe tries, before the steps and after them.
//!
//! An attempt is made by the helper itself, in the process that was just confined, so the answer is the
//! kernel's and needs no program on the machine. Most are made twice: the first shows that nothing else had
//! refused it already. Every one is harmless where it succeeds.

use std::ffi::OsString;
use std::io;
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
    ChangeModeOutside(Bytes),
    ReadEnvironment(i32),
    Signal(i32),
    Limit(i32),
    Trace,
    Socket(Family),
    UserNamespace,
    NewSession,
    NewPrivileges,
    Capabilities,
    Limits(Vec<Limit>),
}

/// A path as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bytes(Vec<u8>);

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl Bytes {
    fn path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.0.clone()))
    }
}

/// Families of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Family {
    Internet,
    Unix,
    Netlink,
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
        self.after.is_some_and(|errno| matches!(errno, libc::EACCES | libc::EPERM | libc::EROFS))
    }
}

impl Try {
    /// Makes the attempt where it can be taken back.
    pub(crate) fn before(self) -> Attempt {
        let before = match &self {
            Self::UserNamespace | Self::NewSession | Self::CreateOutside(_) => None,
            _ => Some(number(self.make())),
        };
        Attempt { what: self, before, after: None }
    }

    fn make(&self) -> io::Result<()> {
        match self {
            Self::ReadOutside(path) => open(path, OFlags::RDONLY),
            Self::WriteOutside(path) => open(path, OFlags::WRONLY),
            Self::CreateOutside(path) => open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL),
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
            Self::Socket(family) => {
                let (family, kind) = match family {
                    Family::Internet => (AddressFamily::INET, SocketType::DGRAM),
                    Family::Unix => (AddressFamily::UNIX, SocketType::STREAM),
                    Family::Netlink => (AddressFamily::NETLINK, SocketType::RAW),
                };
                rustix::net::socket(family, kind, None)?;
                Ok(())
            }
            Self::UserNamespace => crate::sys::attempt_user_namespace(),
            Self::NewSession => match crate::sys::attempt_new_session()? {
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
