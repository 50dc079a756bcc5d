//! What of the workspace is protected in a container: the names that are there, by path and by inode.
//!
//! Invariant: no link lies in the path of a place. An engine resolves it again, by itself; what it mounted is looked at
//! before anything runs there. Names that are missing cannot be held: what would hold one is the commands' own
//! directory, for as long as the container. They are told afterwards, as on the rung `landlock`, and from then on are
//! read-only, since the container is replaced.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use container_sandbox::Share;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

/// An engine takes each as a mount.
const MOST: usize = 200;

/// Protected names that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    /// Path, device and inode.
    read_only: Vec<(String, u64, u64)>,
}

impl Places {
    /// Those of `masks` that are there, on the workspace's own file system, with no link in their path.
    pub(super) fn of(root: BorrowedFd<'_>, masks: &[PathBuf]) -> Self {
        // Without NOFOLLOW, by which a link at the end would be opened itself instead of refused.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        let look = |mask: &PathBuf| {
            let path = mask.to_str().filter(|path| is_expressible(path))?;
            let there = rustix::fs::openat2(root, path, flags, Mode::empty(), resolve).ok()?;
            let stat = rustix::fs::fstat(&there).ok()?;
            Some((path.to_owned(), stat.st_dev, stat.st_ino))
        };
        Self { read_only: masks.iter().filter_map(look).take(MOST).collect() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.read_only.len()
    }

    /// Their paths, relative to the workspace.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.read_only.iter().map(|(path, ..)| path.as_str())
    }

    /// The workspace at its own path, with these read-only. Directories such as `.git` that hold one cannot be renamed,
    /// so that no other one is put in their place; larger ones can, since a rename across a mount fails.
    pub(super) fn share(&self, directory: &str) -> Share {
        let is_hidden = |path: &&Path| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
        };
        let kept: BTreeSet<&str> = self
            .paths()
            .flat_map(|path| Path::new(path).ancestors().skip(1).filter(is_hidden))
            .filter_map(Path::to_str)
            .collect();
        Share::new(directory).keep(kept).read_only(self.paths())
    }
}

pub(super) fn is_expressible(path: &str) -> bool {
    Share::is_expressible(path)
}

/// Where a directory is, as the kernel names it.
pub(super) fn path_of(directory: BorrowedFd<'_>) -> Option<String> {
    let link = format!("/proc/self/fd/{}", directory.as_raw_fd());
    let path = rustix::fs::readlinkat(CWD, link, Vec::new()).ok()?;
    path.into_string().ok().filter(|path| path.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn only_what_is_there_without_a_link_is_a_place() {
        let fixture = testkit::Fixture::new(
            "//- .git/config\n[core]\n//- .git/hooks/x\nx\n//- real/.git/config\nx\n//- a,b/.git/config\nx\n",
        );
        std::os::unix::fs::symlink("real", fixture.root().join("link")).unwrap();
        std::os::unix::fs::symlink(fixture.outside(), fixture.root().join(".vscode")).unwrap();
        let root = cap_std::fs::Dir::open_ambient_dir(fixture.root(), cap_std::ambient_authority());
        let root = root.unwrap();
        let masks = [
            ".git/config",
            ".git/hooks",
            ".mcp.json",
            ".vscode",
            "link/.git/config",
            "real/.git/config",
            "a,b/.git/config",
            "../outside/secret.txt",
        ];
        let masks: Vec<_> = masks.iter().map(PathBuf::from).collect();
        let places = Places::of(root.as_fd(), &masks);
        let expected = [".git/config", ".git/hooks", "real/.git/config"];
        assert_eq!(places.paths().collect::<Vec<_>>(), expected);
        let share = Share::new("/w").keep([".git", "real/.git"]).read_only(expected);
        assert_eq!(places.share("/w"), share);
    }
}
