//! Arbitrary paths, globs, rules and operations on a small tree with links: nothing outside is read, named
//! or changed, and what a search names is inside. Each input has a tree of its own, so that it can be run again.
#![no_main]

use std::path::Path;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use workspace_jail::{FindOptions, GrepOptions, Jail, Options, PageRequest};

const CANARY: &str = "SECRET-CANARY";
/// A name that no operation makes inside.
const OUTSIDE: &str = "canary-8f3a9c1d";

#[derive(Debug, Arbitrary)]
enum Operation {
    Read(Vec<Part>, i64),
    List(Vec<Part>, u64),
    Create(Vec<Part>),
    Replace(Vec<Part>),
    Rename(Vec<Part>, Vec<Part>),
    Remove(Vec<Part>),
    Canonical(Vec<Part>),
    Similar(Vec<Part>),
    /// Puts rules in force for the searches that follow.
    Rules(Vec<Part>, Vec<GlobPart>),
    Find(Vec<GlobPart>, Vec<GlobPart>, bool),
    Grep(String, Vec<Part>, Vec<GlobPart>),
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
    LinkAbsolute,
    Slash,
    Outside,
    Text(String),
}

/// Parts of patterns, put one behind the other.
#[derive(Debug, Arbitrary)]
enum GlobPart {
    Any,
    Deep,
    One,
    Open,
    Comma,
    Close,
    Class,
    Slash,
    Up,
    Not,
    Escape,
    NewLine,
    Sub,
    File,
    Outside,
    Text(String),
}

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
            Part::LinkAbsolute => "absolute",
            Part::Slash => "",
            Part::Outside => "../outside",
            Part::Text(text) => text,
        })
        .collect();
    parts.join("/")
}

fn glob(parts: &[GlobPart]) -> String {
    parts
        .iter()
        .map(|part| match part {
            GlobPart::Any => "*",
            GlobPart::Deep => "**",
            GlobPart::One => "?",
            GlobPart::Open => "{",
            GlobPart::Comma => ",",
            GlobPart::Close => "}",
            GlobPart::Class => "[a-z]",
            GlobPart::Slash => "/",
            GlobPart::Up => "..",
            GlobPart::Not => "!",
            GlobPart::Escape => "\\",
            GlobPart::NewLine => "\n",
            GlobPart::Sub => "sub",
            GlobPart::File => "file",
            GlobPart::Outside => "outside",
            GlobPart::Text(text) => text,
        })
        .collect()
}

/// A tree with links out of it, beside what they lead to.
fn place() -> (tempfile::TempDir, Jail) {
    let base = tempfile::tempdir().expect("a scratch directory");
    let (root, outside) = (base.path().join("ws"), base.path().join("outside"));
    std::fs::create_dir_all(root.join("sub/sub")).expect("a tree");
    std::fs::create_dir_all(&outside).expect("a tree");
    std::fs::write(outside.join(OUTSIDE), CANARY).expect("a canary");
    std::fs::write(root.join("sub/file"), "inside\n").expect("a file");
    std::fs::write(root.join("sub/sub/file"), "inside\n").expect("a file");
    std::os::unix::fs::symlink("../outside", root.join("out")).expect("a link");
    std::os::unix::fs::symlink(&outside, root.join("sub/absolute")).expect("a link");
    std::os::unix::fs::symlink("sub", root.join("in")).expect("a link");
    let jail = Jail::open(&root, Options::new()).expect("a jail");
    (base, jail)
}

fn run(root: &Path, jail: &Jail, operation: &Operation) {
    match operation {
        Operation::Read(parts, offset) => {
            if let Ok(page) = jail.read_page(&path(parts), &PageRequest::new(*offset, 100)) {
                assert!(!page.text().contains(CANARY));
            }
        }
        Operation::List(parts, offset) => {
            if let Ok(listing) = jail.list(&path(parts), *offset, 100) {
                assert!(listing.entries.iter().all(|entry| entry.name != OUTSIDE));
            }
        }
        Operation::Create(parts) => drop(jail.create(&path(parts), b"new\n")),
        Operation::Replace(parts) => drop(jail.replace(&path(parts), b"replaced\n", None)),
        Operation::Rename(from, to) => drop(jail.rename(&path(from), &path(to))),
        Operation::Remove(parts) => drop(jail.remove(&path(parts))),
        Operation::Canonical(parts) => {
            if let Ok(canonical) = jail.canonical(&path(parts)) {
                let there = std::fs::canonicalize(root.join(&canonical)).expect("it is there");
                assert_eq!(there, std::fs::canonicalize(root).expect("a root").join(canonical));
            }
        }
        Operation::Similar(parts) => {
            assert!(jail.similar_names(&path(parts)).iter().all(|name| !name.contains(OUTSIDE)));
        }
        Operation::Rules(parts, rules) => {
            drop(jail.replace(&(path(parts) + "/.gitignore"), glob(rules).as_bytes(), None));
        }
        Operation::Find(pattern, exclude, include_ignored) => {
            let options = FindOptions::default().include_ignored(*include_ignored);
            if let Ok(found) = jail.find(&glob(pattern), &[&glob(exclude)], options) {
                assert!(found.total >= found.paths.len() as u64);
                for path in found.paths {
                    assert!(!path.ends_with(OUTSIDE));
                    root.join(&path).symlink_metadata().expect("what is found is there");
                }
            }
        }
        Operation::Grep(pattern, parts, only) => {
            let mut options = GrepOptions::default();
            options.glob = (!only.is_empty()).then(|| glob(only));
            if let Ok(found) = jail.grep(pattern, &path(parts), &options) {
                let mut lines = found.files.iter().flat_map(|file| &file.lines);
                assert!(lines.all(|line| !line.text.contains(CANARY)));
            }
        }
    }
}

fuzz_target!(|operations: Vec<Operation>| {
    let (base, jail) = place();
    for operation in operations.iter().take(8) {
        run(&base.path().join("ws"), &jail, operation);
    }
    let outside = base.path().join("outside");
    let there: Vec<_> = std::fs::read_dir(&outside).expect("the outside").collect();
    assert_eq!(there.len(), 1);
    assert_eq!(std::fs::read(outside.join(OUTSIDE)).expect("a canary"), CANARY.as_bytes());
});
