//! What was enforced, layer by layer, as the helper found it by trying.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How much stands between a command and the machine, from nothing to everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Rung {
    /// Nothing that could be called a sandbox.
    None,
    /// Landlock, seccomp, no new privileges, no capabilities, limits: without namespaces.
    Landlock,
    /// A view, a network and processes of its own, by namespaces, with the machine's `/proc`: names and command
    /// lines of other processes can be seen.
    NativeNoproc,
    /// The same with a `/proc` of its own.
    NativeFull,
}

impl std::fmt::Display for Rung {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Landlock => "landlock",
            Self::NativeNoproc => "native-noproc",
            Self::NativeFull => "native-full",
        })
    }
}

impl std::str::FromStr for Rung {
    type Err = UnknownRung;

    fn from_str(name: &str) -> Result<Self, UnknownRung> {
        [Self::None, Self::Landlock, Self::NativeNoproc, Self::NativeFull]
            .into_iter()
            .find(|rung| rung.to_string() == name)
            .ok_or_else(|| UnknownRung(name.to_owned()))
    }
}

/// A name that is no rung.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown rung {0:?}; known are none, landlock, native-noproc and native-full")]
pub struct UnknownRung(pub String);

/// Whether a layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It was put on, and an attempt against it was refused.
    Active,
    /// It cannot be had here, or not in this version.
    Unavailable,
    /// The policy turned it off.
    Off,
}

/// One thing that is or is not kept from commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Layer {
    /// Its name, one of those [`Report`] lists.
    pub name: String,
    /// Whether it holds.
    pub state: State,
    /// How that was found out, or what is missing.
    pub detail: String,
    /// What the operator can do about a missing one.
    pub remedy: Option<String>,
}

/// What a probe found.
///
/// The layers, in order: `fs_readonly_outside`, `fs_hidden_outside`, `fs_metadata_outside`, `net_off`,
/// `unix_socket_isolation`, `signal_isolation`, `ptrace_isolation`, `pid_containment`, `namespaces`, `pidns`,
/// `syscalls`, `no_new_privs`, `capabilities`, `identity`, `memory_limit`, `pids_limit`, `file_limits`,
/// `tmp_quota`, `protected_paths`, `execute`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The rung all of whose parts hold.
    pub rung: Rung,
    /// Every layer this crate knows, present or not.
    pub layers: Vec<Layer>,
}

impl Report {
    /// The layer of that name.
    pub fn layer(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// Whether the layer of that name holds.
    pub fn is_active(&self, name: &str) -> bool {
        self.layer(name).is_some_and(|layer| layer.state == State::Active)
    }
}

/// What the helper did before it became the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Enforced {
    /// The rung the steps amount to.
    pub rung: Rung,
    /// The steps, in order.
    pub steps: Vec<String>,
    /// Processes that the command left running and that were ended with it; `None` where nobody counted: on the
    /// rung `landlock`, and when the command was ended from outside.
    pub leftovers: Option<usize>,
    /// What the command used; `None` where nobody was left to tell, as when it was ended from outside.
    pub usage: Option<Usage>,
    /// Bytes of private memory that one process could hold; `None` where the policy sets no limit.
    pub memory_limit: Option<u64>,
}

impl Enforced {
    /// What the largest process held and what one process could hold, in bytes, where the first is nearly all of the
    /// second: fifteen sixteenths of it.
    ///
    /// Two facts and no verdict. A process that grew up to its limit is told by them. One that asked for far too much at
    /// once was refused while it was small, and is not; and pages of files count with what is held, not with what is
    /// limited.
    pub fn memory_near_limit(&self) -> Option<(u64, u64)> {
        let (held, limit) = (self.usage?.max_rss, self.memory_limit?);
        (held >= limit - limit / 16).then_some((held, limit))
    }
}

/// What a command and its processes used, without the sandbox around them.
///
/// With namespaces that is every process of the command: what was orphaned or left running is counted by the first
/// process of the namespace. On the rung `landlock` it is the command and those that were waited for.
///
/// That a limit of memory was hit is not told: the kernel refuses a process what lies beyond it (`RLIMIT_DATA`), and
/// notes nothing. See [`Enforced::memory_near_limit`] for what can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// Bytes of memory that the largest single process held; not a sum. A few MiB are the helper's, out of which the
    /// command came.
    pub max_rss: u64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Enforced, Rung, Usage};

    #[test]
    fn memory_is_near_its_limit_from_fifteen_sixteenths_on() {
        let near = |max_rss, memory_limit| {
            let usage = Usage { user: Duration::ZERO, system: Duration::ZERO, max_rss };
            let (rung, steps, leftovers) = (Rung::Landlock, Vec::new(), None);
            Enforced { rung, steps, leftovers, usage: Some(usage), memory_limit }
                .memory_near_limit()
        };
        assert_eq!(near(1599, Some(1600)), Some((1599, 1600)));
        assert_eq!(near(1500, Some(1600)), Some((1500, 1600)));
        assert_eq!(near(1499, Some(1600)), None);
        assert_eq!(near(u64::MAX, Some(u64::MAX)), Some((u64::MAX, u64::MAX)));
        assert_eq!(near(u64::MAX, None), None);
    }

    #[test]
    fn rungs_are_ordered_and_their_names_are_read_back() {
        let rungs = [Rung::None, Rung::Landlock, Rung::NativeNoproc, Rung::NativeFull];
        assert!(rungs.is_sorted());
        for rung in rungs {
            assert_eq!(rung.to_string().parse(), Ok(rung));
            let json = serde_json::to_value(rung).unwrap();
            assert_eq!(json, rung.to_string());
        }
        assert!("Landlock".parse::<Rung>().is_err());
    }
}
