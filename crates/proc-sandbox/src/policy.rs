//! What a command may touch: the operator's choice, as one value.
//!
//! A policy names places and limits; it does nothing. [`Sandbox::new`](crate::Sandbox::new) opens what it names.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Rung;

/// What of the machine, beside the workspace, commands may read and execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HostRead {
    /// Programs, libraries, the harmless part of `/etc`, and toolchains in the operator's home where they are
    /// found. Credentials that lie beside them are left out by granting subfolders.
    #[default]
    Toolchains,
    /// Everything the user may read, credentials included: no layer of this version can take a part away.
    All,
}

/// Whether commands reach a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Net {
    /// None. With namespaces there is a loopback network that commands of the sandbox share with each other; on
    /// the rung `landlock` no sockets at all, Unix sockets included, but for `socketpair(2)`.
    #[default]
    Off,
    /// As `Off`, with one socket listening on the loopback network whose other end is the caller's: see
    /// [`Sandbox::listener`](crate::Sandbox::listener). On the rung `landlock` the same as `Off`.
    Proxy,
    /// The host's network, unfiltered. Unix sockets of the machine stay closed: a container engine's socket is the
    /// host.
    On,
}

/// Where the helper comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Helper {
    /// The running program itself, whose `main` calls [`helper::dispatch`](crate::helper::dispatch) first.
    #[default]
    Embedded,
    /// A program that does so, such as this crate's `proc-sandbox-helper`.
    Program(PathBuf),
}

/// Limits the kernel holds a command to; `None` leaves the inherited one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// Processes and threads of one command; 256 by default. On the rung `landlock` they are counted for the whole
    /// user, so the limit set is this number above what the user had running; root is not limited at all.
    pub pids: Option<u64>,
    /// Bytes of private writable memory of one process; 2 GiB by default.
    pub memory: Option<u64>,
    /// Bytes of one file; 10 GiB by default.
    pub file_size: Option<u64>,
    /// Open descriptors of one process; 1024 by default.
    pub open_files: Option<u64>,
    /// Processor time of one process; not limited by default.
    pub cpu: Option<Duration>,
    /// Bytes of `/tmp`, where there is a private one; 512 MiB by default.
    pub tmp: Option<u64>,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            pids: Some(256),
            memory: Some(2 << 30),
            file_size: Some(10 << 30),
            open_files: Some(1024),
            cpu: None,
            tmp: Some(512 << 20),
        }
    }
}

/// What a command may touch.
#[derive(Debug)]
#[non_exhaustive]
pub struct Policy {
    /// The directory commands may change, as it was opened.
    pub workspace: OwnedFd,
    /// What of the machine they may read.
    pub read: HostRead,
    /// The operator's home, where toolchains are looked for; none by default.
    pub home: Option<PathBuf>,
    /// Further places to read and execute.
    pub extra_read: Vec<PathBuf>,
    /// Further places to change.
    pub extra_write: Vec<PathBuf>,
    /// Whether commands reach a network.
    pub net: Net,
    /// Limits of resources.
    pub limits: ResourceLimits,
    /// Where the private directory of this sandbox is made; the system's temporary directory by default.
    pub scratch_parent: PathBuf,
    /// Where the helper comes from.
    pub helper: Helper,
    /// The rung below which nothing is run; [`Rung::Landlock`] by default.
    pub require: Rung,
    /// The rung above which nothing is tried; [`Rung::NativeFull`] by default.
    pub ceiling: Rung,
    /// The newest version of Landlock used on the rung `landlock`, so that a machine behaves like an older one; what
    /// the kernel offers by default.
    pub landlock_ceiling: Option<u32>,
}

impl Policy {
    /// The strictest policy over the directory behind `workspace`.
    ///
    /// # Security
    ///
    /// Everything below that directory may be read, changed and executed by commands, also what is mounted
    /// there or linked into it by hard links.
    pub fn new(workspace: OwnedFd) -> Self {
        Self {
            workspace,
            read: HostRead::default(),
            home: None,
            extra_read: Vec::new(),
            extra_write: Vec::new(),
            net: Net::default(),
            limits: ResourceLimits::default(),
            scratch_parent: std::env::temp_dir(),
            helper: Helper::default(),
            require: Rung::Landlock,
            ceiling: Rung::NativeFull,
            landlock_ceiling: None,
        }
    }

    /// Sets [`Policy::read`].
    #[must_use]
    pub fn read(mut self, read: HostRead) -> Self {
        self.read = read;
        self
    }

    /// Sets [`Policy::home`].
    #[must_use]
    pub fn home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Adds places to read and execute.
    #[must_use]
    pub fn extra_read<P: Into<PathBuf>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        self.extra_read.extend(places.into_iter().map(Into::into));
        self
    }

    /// Adds places to change.
    #[must_use]
    pub fn extra_write<P: Into<PathBuf>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        self.extra_write.extend(places.into_iter().map(Into::into));
        self
    }

    /// Sets [`Policy::net`].
    #[must_use]
    pub fn net(mut self, net: Net) -> Self {
        self.net = net;
        self
    }

    /// Sets [`Policy::limits`].
    #[must_use]
    pub fn limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets [`Policy::scratch_parent`].
    #[must_use]
    pub fn scratch_parent(mut self, parent: impl Into<PathBuf>) -> Self {
        self.scratch_parent = parent.into();
        self
    }

    /// Sets [`Policy::helper`].
    #[must_use]
    pub fn helper(mut self, helper: Helper) -> Self {
        self.helper = helper;
        self
    }

    /// Sets [`Policy::ceiling`].
    #[must_use]
    pub fn ceiling(mut self, rung: Rung) -> Self {
        self.ceiling = rung;
        self
    }

    /// Sets [`Policy::landlock_ceiling`].
    #[must_use]
    pub fn landlock_ceiling(mut self, version: u32) -> Self {
        self.landlock_ceiling = Some(version);
        self
    }

    /// Sets [`Policy::require`].
    #[must_use]
    pub fn require(mut self, rung: Rung) -> Self {
        self.require = rung;
        self
    }
}
