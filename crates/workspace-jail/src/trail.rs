//! The way from the root down to a directory: names, and descriptors for the last of them.
//!
//! Invariants: each directory was opened from the one above it by one plain name without following a
//! link, so the end of a trail is below the root, and its names are the path after links. Going up
//! drops the last name and returns to the directory *this trail* came through; the system's `..` is
//! never used, so a directory that is moved meanwhile leads nowhere. At most [`KEPT_OPEN`] descriptors
//! are held, whatever the depth: going further up walks down again.

use std::ffi::OsStr;

use cap_std::fs::Dir;

use crate::at;
use crate::path::Name;

/// Descriptors a trail holds at most.
const KEPT_OPEN: usize = 32;

#[derive(Debug)]
struct Level {
    name: Name,
    dir: Option<Dir>,
}

/// A directory below the root and the way to it.
#[derive(Debug)]
pub(crate) struct Trail<'j> {
    root: &'j Dir,
    levels: Vec<Level>,
}

impl<'j> Trail<'j> {
    pub(crate) fn new(root: &'j Dir) -> Self {
        Self { root, levels: Vec::new() }
    }

    /// How many directories below the root this is; 0 is the root.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// The names from the root down.
    pub(crate) fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.levels.iter().map(|level| level.name.as_os_str())
    }

    /// The name of the last directory; `None` at the root.
    pub(crate) fn last(&self) -> Option<&Name> {
        self.levels.last().map(|level| &level.name)
    }

    /// The directory itself.
    pub(crate) fn dir(&self) -> &Dir {
        match self.levels.last() {
            None => self.root,
            // `up` leaves the last level open or gives it up.
            Some(level) => level.dir.as_ref().unwrap_or(self.root),
        }
    }

    /// Goes down into `dir`, which was opened by `name` from [`Trail::dir`].
    pub(crate) fn down(&mut self, name: Name, dir: Dir) {
        self.levels.push(Level { name, dir: Some(dir) });
        if let Some(passed) = self.levels.len().checked_sub(KEPT_OPEN + 1) {
            self.levels[passed].dir = None;
        }
    }

    /// Goes up and says by how many levels: 0 at the root, 1 as a rule, more when the way had to be walked
    /// again and the directory above is no longer there.
    pub(crate) fn up(&mut self) -> usize {
        let before = self.levels.len();
        self.levels.pop();
        while self.levels.last().is_some_and(|level| level.dir.is_none()) {
            if let Err(gone) = self.reopen() {
                self.levels.truncate(gone);
            }
        }
        before - self.levels.len()
    }

    /// Walks down again; fails with the index of the first level that cannot be entered.
    fn reopen(&mut self) -> Result<(), usize> {
        let keep_from = self.levels.len().saturating_sub(KEPT_OPEN);
        let mut passing: Option<Dir> = None;
        for index in 0..self.levels.len() {
            let kept = index.checked_sub(1).and_then(|above| self.levels[above].dir.as_ref());
            let above = kept.or(passing.as_ref()).unwrap_or(self.root);
            let dir = at::hold_dir(above, &self.levels[index].name).map_err(|_| index)?;
            if index >= keep_from {
                self.levels[index].dir = Some(dir);
            } else {
                passing = Some(dir);
            }
        }
        Ok(())
    }
}
