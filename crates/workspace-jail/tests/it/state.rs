//! What a tree looks like, extended attributes included, to prove that a call left it alone.
//!
//! Times and numbers of hard links are left out: a name inside the workspace that goes its own way takes
//! a link from the file outside.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use testkit::{Fixture, Missing, require};

/// Names, bytes, modes, owners, link targets and extended attributes below a directory, itself included.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    content: Vec<u8>,
    attributes: BTreeMap<OsString, Vec<u8>>,
}

impl State {
    /// Looks at `place`; links are not followed, special files not opened.
    pub(crate) fn of(place: &Path) -> Self {
        let mut found = BTreeMap::new();
        let mut pending = vec![place.to_owned()];
        while let Some(path) = pending.pop() {
            let meta = path.symlink_metadata().unwrap();
            let mut content = Vec::new();
            if meta.is_dir() {
                let entries = std::fs::read_dir(&path).unwrap();
                pending.extend(entries.map(|entry| entry.unwrap().path()));
            } else if meta.is_symlink() {
                content = std::fs::read_link(&path).unwrap().into_os_string().into_vec();
            } else if meta.is_file() {
                content = std::fs::read(&path).unwrap();
            }
            let (mode, owner) = (meta.mode(), (meta.uid(), meta.gid()));
            let attributes = attributes(&path);
            let name = path.strip_prefix(place).unwrap().to_owned();
            found.insert(name, Entry { mode, owner, content, attributes });
        }
        Self(found)
    }

    /// The relative paths of all entries.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    pub(crate) fn has(&self, name: &Path) -> bool {
        self.0.contains_key(name)
    }
}

fn attributes(path: &Path) -> BTreeMap<OsString, Vec<u8>> {
    let mut list = vec![0; 64 * 1024];
    // A file system without attributes has none to compare.
    let filled = rustix::fs::llistxattr(path, &mut list[..]).unwrap_or(0);
    let names = list[..filled].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let mut value = vec![0; 64 * 1024];
            let size = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            value.truncate(size);
            (std::ffi::OsStr::from_bytes(name).to_owned(), value)
        })
        .collect()
}

#[test]
fn an_attribute_that_changes_is_seen() {
    let fixture = Fixture::new("//- f\none\n");
    let set = |value: &[u8]| {
        let path = fixture.root().join("f");
        rustix::fs::lsetxattr(path, "user.k", value, rustix::fs::XattrFlags::empty())
            .map_err(|errno| Missing(format!("extended attributes: {errno}")))
    };
    let before = State::of(&fixture.root());
    assert_eq!(before, State::of(&fixture.root()));
    if require("an_attribute_that_changes_is_seen", set(b"one")).is_none() {
        return;
    }
    let with = State::of(&fixture.root());
    assert_ne!(before, with);
    set(b"two").unwrap();
    assert_ne!(with, State::of(&fixture.root()));
}
