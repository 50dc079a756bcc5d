//! The protected names that are there, for whoever watches what commands do.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rustix::fs::FileType;

use crate::jail::Jail;
use crate::noise::is_noise;
use crate::protect::Protect;
use crate::trail::Trail;
use crate::walk::{Flow, Walk};

/// Entries looked at, if nobody says otherwise.
const MAX_ENTRIES: usize = 100_000;

/// A directory of git's without a protected name of its own, and with very many others.
const OBJECTS: &str = "objects";

impl Jail {
    /// The files and links below the root whose names [`Protect::Default`] covers, relative, in byte
    /// order, whatever this jail itself protects. Compared before and after a command, with
    /// [`Jail::sha256`] of each, it tells what the command changed of them.
    ///
    /// Bounded: `None` when the tree has more than 100,000 entries outside git's object stores, since an
    /// answer that is silently short would be taken for "nothing there".
    ///
    /// # Security
    ///
    /// Links are not followed: one at a protected name is told, what it leads to is not.
    pub fn protected_names(&self) -> Option<Vec<PathBuf>> {
        self.protected_names_among(MAX_ENTRIES)
    }

    /// The same among at most `most` entries, for whoever looks after every command.
    ///
    /// Directories of [`NOISE`](crate::NOISE), but for `.git`, are passed over in both: packages bring their own
    /// `.vscode` along, and nobody opens it.
    pub fn protected_names_among(&self, most: usize) -> Option<Vec<PathBuf>> {
        let (mut seen, mut found) = (0, BTreeSet::new());
        Walk::new(self, true).run(Trail::new(self.root()), &mut |visit| {
            seen += 1;
            if seen > most {
                return Flow::Stop;
            }
            if visit.kind == FileType::Directory {
                let name = visit.name.as_os_str();
                let of_git = || visit.path.components().any(|part| part.as_os_str() == ".git");
                let passed = (name == OBJECTS && of_git()) || (name != ".git" && is_noise(name));
                return if passed { Flow::Past } else { Flow::On };
            }
            if Protect::Default.matches(visit.path.components()) {
                found.insert(visit.path.as_os_str().to_owned());
            }
            Flow::On
        });
        (seen <= most).then(|| found.into_iter().map(PathBuf::from).collect())
    }
}
