//! The server's own directory: audit log and stored outputs, outside the workspace and held by descriptor.
//!
//! A directory below the workspace is refused: a command or an edit could rewrite the record of what it
//! did. "Below" is decided by walking up from the directory itself, not by comparing paths.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, openat};

/// Why there is no state directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// Neither `--audit-dir`, `XDG_STATE_HOME` nor `HOME` names a place.
    #[error("no place known: set AUDIT_DIR, XDG_STATE_HOME or HOME")]
    NoPlace,
    /// The place lies inside the workspace.
    #[error("{} lies inside the workspace, where a command could rewrite it; set AUDIT_DIR", .0.display())]
    InsideWorkspace(PathBuf),
    /// The place cannot be made, opened or written.
    #[error("{} cannot be used", .path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Where the state directory is when the operator names none, from the environment that `var` reads.
pub fn default_place(var: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name: &str| var(name).filter(|path| path.is_absolute());
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .map(|base| base.join("agent-workspace-mcp"))
}

/// Opens the state directory; what is missing of it is made, mode 0700.
///
/// # Errors
///
/// As [`StateError`] says; nothing is made inside the workspace.
///
/// # Security
///
/// `place` is the operator's. What an attacker may control is the workspace; the check that the directory
/// is not below it holds for links and bind mounts too, since it compares device and inode on the way up.
pub fn open(place: &Path, workspace: BorrowedFd<'_>) -> Result<Dir, StateError> {
    let failed = |source| StateError::Io { path: place.to_owned(), source };
    let inside = |dir: &Dir| is_below(dir.as_fd(), workspace).map_err(|e| failed(e.into()));

    // The nearest ancestor that exists decides before anything is made.
    let existing = place.ancestors().find_map(|path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Dir::open_ambient_dir(path, ambient_authority()).ok()
    });
    if let Some(existing) = existing
        && inside(&existing)?
    {
        return Err(StateError::InsideWorkspace(place.to_owned()));
    }
    // Only what is made here gets a mode: a directory of the operator's keeps its own.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(place).map_err(failed)?;
    let dir = Dir::open_ambient_dir(place, ambient_authority()).map_err(failed)?;
    if inside(&dir)? {
        return Err(StateError::InsideWorkspace(place.to_owned()));
    }
    Ok(dir)
}

/// Makes and opens a directory of the state directory, mode 0700.
///
/// # Errors
///
/// What the system said.
pub fn subdirectory(state: &Dir, name: &str) -> std::io::Result<Dir> {
    use cap_std::fs::DirBuilderExt as _;
    let mut builder = cap_std::fs::DirBuilder::new();
    builder.mode(0o700);
    match state.create_dir_with(name, &builder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => state.open_dir(name),
    }
}

/// Whether `dir` is `root` or lies below it.
pub(crate) fn is_below(dir: BorrowedFd<'_>, root: BorrowedFd<'_>) -> rustix::io::Result<bool> {
    let identity =
        |fd: BorrowedFd<'_>| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    let root = identity(root)?;
    let mut here: OwnedFd = openat(dir, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    loop {
        let this = identity(here.as_fd())?;
        if this == root {
            return Ok(true);
        }
        let above = openat(&here, "..", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        if identity(above.as_fd())? == this {
            return Ok(false);
        }
        here = above;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(path: &Path) -> Dir {
        Dir::open_ambient_dir(path, ambient_authority()).unwrap()
    }

    #[test]
    fn a_place_inside_the_workspace_is_refused_and_not_made() {
        let fixture = testkit::Fixture::new("//- a.txt\nx\n");
        let root = dir(&fixture.root());
        for place in ["state", "deep/er/state", "."] {
            let error = open(&fixture.root().join(place), root.as_fd()).unwrap_err();
            assert!(matches!(error, StateError::InsideWorkspace(_)), "{error}");
        }
        assert!(!fixture.exists("state") && !fixture.exists("deep"));
    }

    #[test]
    fn a_link_that_leads_into_the_workspace_is_seen_through() {
        let fixture = testkit::Fixture::new("//- sub/a.txt\nx\n");
        let link = fixture.outside().join("link");
        std::os::unix::fs::symlink(fixture.root().join("sub"), &link).unwrap();
        let root = dir(&fixture.root());
        assert!(matches!(open(&link, root.as_fd()), Err(StateError::InsideWorkspace(_))));
        let sibling = fixture.base().join("ws-state");
        assert!(open(&sibling, root.as_fd()).is_ok());
    }

    #[test]
    fn the_default_place_wants_absolute_directories() {
        let place = |pairs: &'static [(&str, &str)]| {
            default_place(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
            })
        };
        assert_eq!(place(&[("HOME", "/h")]), Some("/h/.local/state/agent-workspace-mcp".into()));
        assert_eq!(
            place(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]),
            Some("/s/agent-workspace-mcp".into())
        );
        assert_eq!(place(&[("HOME", "relative")]), None);
    }
}
