//! Names, bytes, modes, owners and link targets below a directory, to prove that a call left it alone.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The state of a tree at one moment; two are compared with `==`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<String, Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Directory,
    File(Vec<u8>),
    Link(std::path::PathBuf),
    Special,
}

impl Snapshot {
    /// Reads the tree at `root`; links are recorded, never followed, and special files never opened.
    pub fn of(root: &Path) -> Self {
        let mut entries = BTreeMap::new();
        visit(root, "", &mut entries);
        Self(entries)
    }

    /// The relative paths of all entries, in byte order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

fn visit(path: &Path, name: &str, entries: &mut BTreeMap<String, Entry>) {
    let stop = |error: std::io::Error| -> ! { panic!("{}: {error}", path.display()) };
    let meta = path.symlink_metadata().unwrap_or_else(|error| stop(error));
    let content = if meta.is_dir() {
        for child in std::fs::read_dir(path).unwrap_or_else(|error| stop(error)) {
            let child = child.unwrap_or_else(|error| stop(error));
            let below = child.file_name().to_string_lossy().into_owned();
            let name = if name.is_empty() { below } else { format!("{name}/{below}") };
            visit(&child.path(), &name, entries);
        }
        Content::Directory
    } else if meta.is_symlink() {
        Content::Link(std::fs::read_link(path).unwrap_or_else(|error| stop(error)))
    } else if meta.is_file() {
        Content::File(std::fs::read(path).unwrap_or_else(|error| stop(error)))
    } else {
        Content::Special
    };
    let entry = Entry { mode: meta.mode(), owner: (meta.uid(), meta.gid()), content };
    entries.insert(name.to_owned(), entry);
}
