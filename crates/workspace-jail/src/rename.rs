//! Giving a file or a link another name.

use std::sync::PoisonError;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::at;
use crate::error::{Fault, Result, Step, settle};
use crate::jail::Jail;
use crate::path::Name;
use crate::replace::{make_dirs, unmake_dirs};
use crate::resolve::{End, LastLink, Resolved, resolve};
use crate::target::{Intent, Target, check_policy, check_write_bit, target};
use crate::trail::Trail;

impl Jail {
    /// Moves the file or link at `from` to the name `to`, which nothing may have; makes the directories
    /// above it. A link is moved, not followed.
    ///
    /// Directories are refused: one that holds a protected name would carry it along.
    ///
    /// ```
    /// use workspace_jail::Error;
    ///
    /// # let root = tempfile::tempdir()?;
    /// # let jail = workspace_jail::Jail::open(root.path(), Default::default())?;
    /// jail.create("draft.md", b"text")?;
    /// jail.create("kept.md", b"")?;
    /// jail.rename("draft.md", "done/final.md")?;
    /// let taken = jail.rename("done/final.md", "kept.md");
    /// assert!(matches!(taken, Err(Error::AlreadyExists { path }) if path == "kept.md"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// For either path `InvalidPath`, `NameTooLong`, `OutsideWorkspace`, `SymlinkLoop`, `NotFound`,
    /// `NotADirectory`, `ProtectedPath`, `ReadOnly`, `IsDirectory`, `PermissionDenied`; for `from`
    /// `NotARegularFile`; for `to` `AlreadyExists`; `NoSpace`, `Busy`, `Io` (also across mounts). The
    /// error carries the path it is about.
    ///
    /// # Security
    ///
    /// Both names are entries of directories below the root, held by descriptor.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let moved = settle(from, || {
            let (trail, name) = movable(self, from)?;
            match self.move_to(&trail, &name, to) {
                Err(Fault::Changed) => Err(Fault::Changed),
                moved => Ok(moved),
            }
        })?;
        moved.map_err(|fault| fault.at(to))
    }

    fn move_to(&self, from: &Trail<'_>, from_name: &Name, to: &str) -> Step<()> {
        let Target { mut trail, dirs, name, .. } = target(self, to, Intent::Create, None)?;
        let made = make_dirs(&mut trail, dirs)?;
        let moved = {
            let _publishing = self.publishing().lock().unwrap_or_else(PoisonError::into_inner);
            at::rename_new(from.dir(), from_name, trail.dir(), &name)
        };
        match moved {
            Ok(()) => {
                at::sync_dir(trail.dir())?;
                at::sync_dir(from.dir())
            }
            Err(errno) => {
                unmake_dirs(&mut trail, made);
                Err(match errno {
                    // One of the two went away.
                    Errno::NOENT => Fault::Changed,
                    other => other.into(),
                })
            }
        }
    }

    /// Removes the file or link at `path`. A link is removed, not followed; directories are refused.
    ///
    /// # Errors
    ///
    /// `InvalidPath`, `NameTooLong`, `OutsideWorkspace`, `SymlinkLoop`, `NotFound`, `NotADirectory`,
    /// `ProtectedPath`, `ReadOnly`, `IsDirectory`, `NotARegularFile`, `PermissionDenied` (also for a
    /// file without a write bit), `Busy`, `Io`.
    ///
    /// # Security
    ///
    /// What goes is an entry of a directory below the root, never what it points at.
    pub fn remove(&self, path: &str) -> Result<()> {
        settle(path, || {
            let (trail, name) = movable(self, path)?;
            let _publishing = self.publishing().lock().unwrap_or_else(PoisonError::into_inner);
            at::unlink(trail.dir(), &name)?;
            at::sync_dir(trail.dir())
        })
    }
}

/// Finds a file or link that may be taken from its place.
fn movable<'j>(jail: &'j Jail, path: &str) -> Step<(Trail<'j>, Name)> {
    let resolved = resolve(jail, path, LastLink::Keep)?;
    check_policy(jail, &resolved)?;
    let Resolved { trail, end, .. } = resolved;
    match end {
        End::Directory => Err(Fault::IsDirectory),
        End::Missing { .. } => Err(Fault::NotFound),
        End::Entry(name, held) => {
            if held.kind() != FileType::Symlink {
                at::must_be_regular(&held.stat)?;
                check_write_bit(&held.stat)?;
            }
            Ok((trail, name))
        }
    }
}
