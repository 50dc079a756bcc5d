//! Which files commands may open, and whom they may signal: Landlock.
//!
//! The ruleset is made once for a sandbox, in the caller, from descriptors; the helper only restricts itself by
//! it. So a command costs no look at paths, and a place swapped for another later is not granted.
//!
//! Older versions know less. Before the second, files cannot be moved or linked between directories at all. Before the
//! third, files can be truncated without a right to write, by path or by opening them, also those outside: there the
//! filter refuses these calls; see [`seccomp`](super::seccomp). Before the sixth, signals reach all processes of the
//! user. What else they lack (network, device requests) the filter or the places granted keep closed anyway.
//!
//! What Landlock does not know: `chmod(2)`, `chown(2)`, timestamps, extended attributes and the existence of
//! files outside stay as the user's rights allow. It can grant and not take away: a credential below a granted
//! place is readable, which is why [`places`](crate::places) names subfolders.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
};

use crate::Net;
use crate::places::{Grant, Place};

/// The version that knows moving and linking between directories.
pub(crate) const WITH_MOVES: i64 = 2;
/// The version that knows truncation.
pub(crate) const WITH_TRUNCATION: i64 = 3;
/// The newest version that is used.
const NEWEST: ABI = ABI::V6;
/// The version that knows signals and abstract Unix sockets.
pub(crate) const WITH_SCOPES: i64 = 6;

/// What the kernel offers, up to a ceiling: its version, or why there is none with the remedy.
pub(crate) fn available(ceiling: Option<u32>) -> Result<i64, (String, &'static str)> {
    match crate::sys::landlock_abi() {
        Ok(_) if ceiling == Some(0) => {
            Err(("no Landlock: the policy forbids it".to_owned(), "raise the policy's ceiling"))
        }
        Ok(version) => Ok(ceiling.map_or(version, |ceiling| version.min(ceiling.into()))),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Err((
            format!("Landlock is turned off: {error}"),
            "add landlock to the kernel's lsm= list",
        )),
        Err(error) => Err((
            format!("no Landlock: {error}"),
            "run a kernel of version 5.13 or newer built with CONFIG_SECURITY_LANDLOCK, and a container profile that \
             allows its system calls",
        )),
    }
}

/// Makes the ruleset that grants `places` and nothing else, of a version that is available.
pub(crate) fn ruleset(places: &[Place], net: Net, version: i64) -> io::Result<OwnedFd> {
    let version = i32::try_from(version).map_or(NEWEST, |version| ABI::from(version).min(NEWEST));
    make(places, CompatLevel::HardRequirement, version, net != Net::On)
}

/// Makes a ruleset for a place whose view and network are closed already: as much as the kernel knows.
pub(crate) fn second_wall(places: &[Place]) -> io::Result<OwnedFd> {
    make(places, CompatLevel::BestEffort, NEWEST, false)
}

fn make(
    places: &[Place],
    level: CompatLevel,
    version: ABI,
    deny_network: bool,
) -> io::Result<OwnedFd> {
    let ruleset = build(places, level, version, deny_network).map_err(io::Error::other)?;
    // Without a descriptor nothing would be restricted; a kernel that cannot do so was refused above.
    Option::<OwnedFd>::from(ruleset).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

fn build(
    places: &[Place],
    level: CompatLevel,
    version: ABI,
    deny_network: bool,
) -> Result<RulesetCreated, RulesetError> {
    // Version 5 is the last with a right to files that this crate grants or withholds knowingly.
    let abi = version.min(ABI::V5);
    let mut attributes = Ruleset::default()
        .set_compatibility(level)
        .handle_access(AccessFs::from_all(abi.min(ABI::V3)))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?;
    if version >= ABI::V6 {
        attributes = attributes.scope(Scope::from_all(ABI::V6))?;
    }
    if deny_network && version >= ABI::V4 {
        attributes = attributes.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    let mut ruleset = attributes.create()?;
    for place in places {
        let rights = rights(place.grant, abi);
        let rights = if place.is_directory { rights } else { rights & AccessFs::from_file(abi) };
        ruleset = ruleset.add_rule(PathBeneath::new(place.handle.as_fd(), rights))?;
    }
    Ok(ruleset)
}

fn rights(grant: Grant, abi: ABI) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let rights = match grant {
        Grant::Read => read,
        // Device nodes are worth nothing without a capability commands do not have.
        Grant::Write => AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock),
        Grant::Device => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev,
    };
    rights & AccessFs::from_all(abi)
}

/// Restricts the calling thread and what it starts.
pub(crate) fn apply(ruleset: BorrowedFd<'_>) -> io::Result<()> {
    crate::sys::landlock_restrict_self(ruleset)
}
