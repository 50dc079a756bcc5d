//! Writing a whole file: at once or not at all.
//!
//! The content goes to a [`Temp`] beside the file and is made to last there; then one rename gives it
//! the name. A reader sees the old content or the new one, a full disk leaves the old one, and a link
//! planted under the name is replaced, not followed. The target of a link that stays inside is what is
//! replaced; the link survives.

use std::sync::PoisonError;

use cap_std::fs::Dir;

use crate::at::{self, Access};
use crate::attributes;
use crate::error::{Fault, Result, Step, settle};
use crate::jail::Jail;
use crate::path::Name;
use crate::read;
use crate::sha256::Sha256;
use crate::target::{Existing, Intent, Target, target};
use crate::temp::Temp;
use crate::trail::Trail;

/// A write that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The file's size now.
    pub bytes: u64,
    /// The file was not there before.
    pub created: bool,
    /// The version of the content now.
    pub sha256: Sha256,
}

impl Jail {
    /// Makes a file with the content `bytes`, mode 0644, and the directories above it, mode 0755. Of two
    /// callers one makes it.
    ///
    /// ```
    /// use workspace_jail::Error;
    ///
    /// # let root = tempfile::tempdir()?;
    /// # let jail = workspace_jail::Jail::open(root.path(), Default::default())?;
    /// let made = jail.create("new/notes.md", b"first")?;
    /// assert!(made.created && made.bytes == 5);
    /// assert!(matches!(jail.create("new/notes.md", b"x"), Err(Error::AlreadyExists { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Jail::check_write`] without `TooLarge`, and `NoSpace`. After an error nothing has
    /// changed, directories included; but for an `Io` from a disk that fails in the last step, when the
    /// file is there and may not last.
    ///
    /// # Security
    ///
    /// `path` and the tree may be an attacker's: what is made is a new regular file below the root, at a
    /// name that is not protected.
    pub fn create(&self, path: &str, bytes: &[u8]) -> Result<Written> {
        settle(path, || {
            let target = target(self, path, Intent::Create, None)?;
            self.unless_removed(publish(target, self, bytes, None))
        })
    }

    /// Puts `bytes` in the place of a file's content, or makes the file as [`Jail::create`] does.
    ///
    /// Mode (less set-user-id and set-group-id), owner where the system allows, and extended attributes
    /// with the ACL are kept. A file with further hard links gets one of its own under this name.
    ///
    /// With `expected` the content to be replaced must be that one, up to the moment of the rename as far
    /// as writers of this jail go: for a writer from elsewhere the window is a rename's.
    ///
    /// ```
    /// use workspace_jail::Error;
    ///
    /// # let root = tempfile::tempdir()?;
    /// # let jail = workspace_jail::Jail::open(root.path(), Default::default())?;
    /// let first = jail.create("notes.md", b"first")?;
    /// let second = jail.replace("notes.md", b"second", Some(first.sha256))?;
    /// assert!(!second.created);
    /// // Somebody who still knows the first version is told.
    /// let late = jail.replace("notes.md", b"third", Some(first.sha256));
    /// assert!(matches!(late, Err(Error::Stale { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Jail::check_write`] without `TooLarge` and `AlreadyExists`; `Stale` if the content is
    /// not `expected` or the file is gone; `NoSpace`. After an error nothing has changed, as for
    /// [`Jail::create`].
    ///
    /// # Security
    ///
    /// As [`Jail::create`]. No file is written in place, so nothing outside changes through a hard link.
    pub fn replace(&self, path: &str, bytes: &[u8], expected: Option<Sha256>) -> Result<Written> {
        settle(path, || {
            let target = target(self, path, Intent::Replace, None)?;
            match self.unless_removed(publish(target, self, bytes, expected)) {
                // Another writer made the file meanwhile: now there is one to replace.
                Err(Fault::AlreadyExists) => Err(Fault::Changed),
                published => published,
            }
        })
    }
}

/// Makes the directories, then the file. Directories made for a file that was not are removed.
fn publish(
    target: Target<'_>,
    jail: &Jail,
    bytes: &[u8],
    expected: Option<Sha256>,
) -> Step<Written> {
    let Target { mut trail, dirs, name, existing } = target;
    if expected.is_some() && existing.is_none() {
        return Err(Fault::Stale);
    }
    let made = make_dirs(&mut trail, dirs)?;
    let written = put(jail, trail.dir(), &name, existing.as_ref(), bytes, expected);
    if written.is_err() {
        unmake_dirs(&mut trail, made);
    }
    written
}

fn put(
    jail: &Jail,
    dir: &Dir,
    name: &Name,
    existing: Option<&Existing>,
    bytes: &[u8],
    expected: Option<Sha256>,
) -> Step<Written> {
    let mut temp = Temp::make(dir)?;
    temp.fill(bytes)?;
    match existing {
        Some(Existing { file, stat }) => attributes::carry(file, stat, temp.file())?,
        None => attributes::fresh(temp.file())?,
    }
    temp.sync()?;
    // Opened before, so that after the rename only the disk itself can fail.
    let entries = at::DirSync::prepare(dir)?;
    {
        let _publishing = jail.publishing().lock().unwrap_or_else(PoisonError::into_inner);
        if existing.is_some() {
            still_there(dir, name, expected)?;
            temp.publish_over(name)?;
        } else {
            temp.publish_new(name)?;
        }
    }
    entries.sync()?;
    Ok(Written {
        bytes: bytes.len() as u64,
        created: existing.is_none(),
        sha256: Sha256::of(bytes),
    })
}

/// Looks once more at what is about to be replaced: a regular file, and the expected one.
fn still_there(dir: &Dir, name: &Name, expected: Option<Sha256>) -> Step<()> {
    let gone = |fault| match fault {
        Fault::NotFound => Fault::Changed,
        other => other,
    };
    let held = at::hold(dir, name).map_err(|errno| gone(errno.into()))?;
    at::must_be_regular(&held.stat)?;
    if let Some(expected) = expected {
        let (file, stat) = at::open_regular(dir, name, Access::Read).map_err(gone)?;
        if read::digest(&file, read::size_of(&stat))? != expected {
            return Err(Fault::Stale);
        }
    }
    Ok(())
}

/// Makes and enters `dirs` below the trail so that they last, and says how many. On failure none is
/// left.
pub(crate) fn make_dirs(trail: &mut Trail<'_>, dirs: Vec<Name>) -> Step<usize> {
    let mut made = 0;
    for name in dirs {
        match at::make_dir(trail.dir(), &name) {
            Ok(dir) => {
                let synced = at::sync_dir(trail.dir());
                trail.down(name, dir);
                made += 1;
                if let Err(error) = synced {
                    unmake_dirs(trail, made);
                    return Err(error);
                }
            }
            Err(fault) => {
                unmake_dirs(trail, made);
                return Err(match fault {
                    // Another writer was quicker, or quicker to clean up.
                    Fault::AlreadyExists | Fault::NotFound => Fault::Changed,
                    other => other,
                });
            }
        }
    }
    Ok(made)
}

/// Removes the last `made` directories of the trail, unless somebody has put something there.
pub(crate) fn unmake_dirs(trail: &mut Trail<'_>, made: usize) {
    for _ in 0..made {
        let Some(name) = trail.last().cloned() else { return };
        if trail.up() != 1 || at::remove_dir(trail.dir(), &name).is_err() {
            return;
        }
    }
}
