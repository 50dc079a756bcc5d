//! Arbitrary paths, globs and operations on a small tree with links: nothing outside is read or changed.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use workspace_jail::{FindOptions, Jail, Options, PageRequest};

const CANARY: &str = "SECRET-CANARY";
/// A name that no operation makes inside.
const OUTSIDE: &str = "canary-8f3a9c1d";

#[derive(Debug, Arbitrary)]
enum Operation {
    Read(Vec<Part>),
    List(Vec<Part>),
    Create(Vec<Part>),
    Replace(Vec<Part>),
    Rename(Vec<Part>, Vec<Part>),
    Remove(Vec<Part>),
    Find(String),
}

/// Parts of paths that lead somewhere more often than random text does.
#[derive(Debug, Arbitrary)]
enum Part {
    Up,
    Here,
    Sub,
    File,
    LinkOut,
    LinkIn,
    Slash,
    Outside,
    Text(String),
}

struct Place {
    base: tempfile::TempDir,
    jail: Jail,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    let base = tempfile::tempdir().expect("a scratch directory");
    let root = base.path().join("ws");
    std::fs::create_dir_all(root.join("sub")).expect("a tree");
    std::fs::create_dir_all(base.path().join("outside")).expect("a tree");
    std::fs::write(base.path().join("outside").join(OUTSIDE), CANARY).expect("a canary");
    std::fs::write(root.join("sub/file"), "inside\n").expect("a file");
    std::os::unix::fs::symlink("../outside", root.join("out")).expect("a link");
    std::os::unix::fs::symlink("sub", root.join("in")).expect("a link");
    let jail = Jail::open(&root, Options::new()).expect("a jail");
    Place { base, jail }
});

fn path(parts: &[Part]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Up => "..",
            Part::Here => ".",
            Part::Sub => "sub",
            Part::File => "file",
            Part::LinkOut => "out",
            Part::LinkIn => "in",
            Part::Slash => "",
            Part::Outside => "../outside",
            Part::Text(text) => text,
        })
        .collect();
    parts.join("/")
}

fn outside(base: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let mut found: Vec<_> = std::fs::read_dir(base.join("outside"))
        .expect("the outside")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).expect("a file")))
        .collect();
    found.sort();
    found
}

fuzz_target!(|operations: Vec<Operation>| {
    let Place { base, jail } = &*PLACE;
    for operation in operations.iter().take(8) {
        match operation {
            Operation::Read(parts) => {
                if let Ok(page) = jail.read_page(&path(parts), &PageRequest::new(0, 100)) {
                    assert!(!page.text().contains(CANARY));
                }
            }
            Operation::List(parts) => {
                if let Ok(listing) = jail.list(&path(parts), 0, 100) {
                    assert!(listing.entries.iter().all(|entry| entry.name != OUTSIDE));
                }
            }
            Operation::Create(parts) => drop(jail.create(&path(parts), b"new\n")),
            Operation::Replace(parts) => drop(jail.replace(&path(parts), b"replaced\n", None)),
            Operation::Rename(from, to) => drop(jail.rename(&path(from), &path(to))),
            Operation::Remove(parts) => drop(jail.remove(&path(parts))),
            Operation::Find(pattern) => {
                if let Ok(found) = jail.find(pattern, &[], FindOptions::default()) {
                    assert!(found.paths.iter().all(|path| !path.ends_with(OUTSIDE)));
                }
            }
        }
    }
    let there = outside(base.path());
    assert_eq!(there.len(), 1);
    assert_eq!(there[0].1, CANARY.as_bytes());
});
