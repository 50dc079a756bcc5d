//! Finding files by name.

use std::path::PathBuf;

use rustix::fs::FileType;

use crate::error::{Error, Result};
use crate::glob::Glob;
use crate::jail::Jail;
use crate::smallest::Smallest;
use crate::trail::Trail;
use crate::walk::{Flow, Walk};

/// How to search; everything has a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct FindOptions {
    /// Also search what `.gitignore` files and [`NOISE`](crate::NOISE) leave out.
    pub include_ignored: bool,
    /// Paths at most.
    pub limit: usize,
}

impl Default for FindOptions {
    /// Ignored files left out, 50 paths.
    fn default() -> Self {
        Self { include_ignored: false, limit: 50 }
    }
}

impl FindOptions {
    /// Replaces the largest number of paths told.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Also searches what is left out by default.
    #[must_use]
    pub fn include_ignored(mut self, include_ignored: bool) -> Self {
        self.include_ignored = include_ignored;
        self
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The first paths in byte order, relative to the root. For people: [`Escaped`](crate::Escaped).
    pub paths: Vec<PathBuf>,
    /// How many paths matched in all.
    pub total: u64,
    /// Directories that could not be read or whose path is longer than a verb takes, and `.gitignore`
    /// files that were passed over for their size: 256 KiB count at one place, 4 MiB in one search.
    pub unreadable: u64,
}

impl Jail {
    /// Finds files, links and special files whose path matches `pattern`, leaving out those that an
    /// exclude matches (itself or a directory above it).
    ///
    /// Patterns are those of `.gitignore`: without a slash they name an entry at any depth, with one a
    /// path from the root; `**` spans directories, `{a,b}` alternatives; letter case counts. Links are
    /// never followed.
    ///
    /// Memory is proportional to the limit and to the subdirectories waiting, not to the files found.
    ///
    /// ```
    /// use workspace_jail::FindOptions;
    ///
    /// # let root = tempfile::tempdir()?;
    /// # let jail = workspace_jail::Jail::open(root.path(), Default::default())?;
    /// for path in ["a.rs", "deep/b.rs", "deep/test_b.rs", "target/c.rs"] {
    ///     jail.create(path, b"")?;
    /// }
    /// jail.create(".gitignore", b"target/\n")?;
    /// let found = jail.find("*.rs", &["test_*"], FindOptions::default().limit(1))?;
    /// assert_eq!((found.paths, found.total), (vec!["a.rs".into()], 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidPattern`: `pattern` does not parse, is absolute, starts with `~` or has a `..` step. An
    /// exclude of that kind excludes nothing.
    ///
    /// # Security
    ///
    /// Patterns are compared with paths below the root, never opened.
    pub fn find(&self, pattern: &str, excludes: &[&str], options: FindOptions) -> Result<Found> {
        let glob = Glob::new(pattern)
            .map_err(|reason| Error::InvalidPattern { pattern: pattern.to_owned(), reason })?;
        let excludes: Vec<Glob> =
            excludes.iter().filter_map(|exclude| Glob::new(exclude).ok()).collect();
        let mut kept = Smallest::new(options.limit);
        let walk = Walk::new(self, options.include_ignored);
        let unreadable = walk.run(Trail::new(self.root()), &mut |visit| {
            if excludes.iter().any(|exclude| exclude.matches(visit.path)) {
                return Flow::Past;
            }
            if visit.kind != FileType::Directory && glob.matches(visit.path) {
                kept.push(visit.path.as_os_str().to_owned());
            }
            Flow::On
        });
        let total = kept.pushed();
        let paths = kept.into_sorted().into_iter().map(PathBuf::from).collect();
        Ok(Found { paths, total, unreadable })
    }
}
