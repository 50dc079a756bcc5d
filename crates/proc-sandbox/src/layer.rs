//! The steps from a process of ours to a confined command, as data.
//!
//! A plan is a list of steps, which the caller makes from a policy and the helper takes one after the other.
//! A further rung is further steps; neither the way they travel nor the helper's loop changes.

pub(crate) mod landlock;
pub(crate) mod namespaces;
pub(crate) mod privileges;
pub(crate) mod process;
pub(crate) mod rlimits;
pub(crate) mod seccomp;

use std::io;

use serde::{Deserialize, Serialize};

use crate::attempt::Bytes;
use crate::wire::{Call, Handles, Slot};
use rlimits::Limit;
use seccomp::Program;

/// One thing the helper does to itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    ResetSignals,
    LeaveTerminal,
    UsualMask,
    CloseDescriptors,
    FirstToGo,
    EnterDirectory,
    /// Enters a prepared place; what follows is done there.
    Enter,
    /// Splits off the first process of a namespace of processes; see [`guardian`](crate::guardian).
    Split,
    FreshProc,
    Protect {
        workspace: Bytes,
    },
    EnterDirectoryInside,
    Limits(Vec<Limit>),
    NoCoreFile(Vec<Limit>),
    EmptyBoundingSet,
    BecomeUser {
        user: u32,
        group: u32,
    },
    NoNewPrivileges,
    DropCapabilities,
    Landlock,
    Seccomp(Program),
}

impl Step {
    /// Takes the step, for good: none of them can be taken back.
    pub(crate) fn apply(&self, call: &Call, handles: &mut Handles) -> io::Result<()> {
        match self {
            Self::ResetSignals => process::reset_signals(),
            Self::LeaveTerminal => process::leave_terminal(),
            Self::UsualMask => {
                process::usual_mask();
                Ok(())
            }
            Self::CloseDescriptors => process::close_descriptors(),
            Self::FirstToGo => process::first_to_go(),
            Self::EnterDirectory => Ok(rustix::process::fchdir(handles.get(Slot::Directory)?)?),
            Self::Enter => namespaces::enter(handles),
            // The helper's own business, since two processes come back from it.
            Self::Split => Ok(()),
            Self::FreshProc => namespaces::fresh_proc(),
            Self::Protect { workspace } => namespaces::protect(workspace, &call.protected),
            Self::EnterDirectoryInside => {
                let path = call.directory.clone().unwrap_or_default();
                namespaces::enter_directory(&path, handles)
            }
            Self::Limits(limits) => {
                rlimits::apply(limits)?;
                // Those of the moment go with the others.
                rlimits::apply(&call.limits)
            }
            Self::NoCoreFile(limits) => rlimits::apply(limits),
            Self::EmptyBoundingSet => privileges::empty_bounding_set(),
            Self::BecomeUser { user, group } => privileges::become_user(*user, *group),
            Self::NoNewPrivileges => privileges::no_new_privileges(),
            Self::DropCapabilities => privileges::drop_capabilities(),
            Self::Landlock => landlock::apply(handles.get(Slot::Ruleset)?),
            Self::Seccomp(program) => seccomp::apply(program),
        }
    }

    /// What it does, as the second half of "the sandbox could not …".
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::ResetSignals => "reset signals",
            Self::LeaveTerminal => "leave the terminal",
            Self::UsualMask => "set the file mode mask",
            Self::CloseDescriptors => "close descriptors",
            Self::FirstToGo => "prefer commands when memory runs out",
            Self::EnterDirectory | Self::EnterDirectoryInside => "enter the working directory",
            Self::Enter => "enter the prepared place",
            Self::Split => "start a namespace of processes",
            Self::FreshProc => "mount a fresh /proc",
            Self::Protect { .. } => "make protected names read-only",
            Self::Limits(_) => "limit resources",
            Self::NoCoreFile(_) => "forbid core files",
            Self::EmptyBoundingSet => "empty the bounding set",
            Self::BecomeUser { .. } => "become another user",
            Self::NoNewPrivileges => "forbid new privileges",
            Self::DropCapabilities => "drop capabilities",
            Self::Landlock => "restrict files by Landlock",
            Self::Seccomp(_) => "refuse system calls by seccomp",
        }
    }
}
