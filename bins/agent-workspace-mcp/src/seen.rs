//! The files of a disposable place at one moment, so that code's answer can name what it made or changed.
//!
//! A file has changed when its number, its size or the time of its last change is another one. That time is the
//! system's own (`ctime`), which no program sets back. Directories of noise are passed over. Invariants: memory is
//! bounded, and so is what is said; of a place with too many files only that is said. Non-goals: files that are
//! gone, and a record of who changed what.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, MetadataExt as _};
use workspace_jail::{Escaped, NOISE};

use crate::languages;

/// Files that are told apart; of a place with more, changes are not known.
pub const MOST_FILES: usize = 5_000;
/// Directory entries that are looked at.
const MOST_ENTRIES: usize = 20_000;
/// Files that an answer names.
const MOST_NAMED: usize = 20;
/// Bytes of their names.
const MOST_BYTES: usize = 2_000;
/// What ends a file's line in a container's account: no path has two slashes there, whatever its names hold.
pub const END: &[u8] = b"//\n";

/// The files of a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    files: BTreeMap<OsString, Mark>,
    /// There are more.
    partial: bool,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    version: String,
    size: u64,
}

/// What code made or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths with sizes, in byte order.
    files: Vec<(OsString, u64)>,
    /// There are too many files to tell.
    unknown: bool,
}

impl Seen {
    /// Looks below a directory, following no link. What vanishes meanwhile is passed over.
    ///
    /// # Security
    ///
    /// Names and links below `root` are a program's; nothing outside of it is opened, and no file at all.
    pub fn below(root: &Dir) -> Self {
        let mut seen = Self::default();
        let mut waiting = vec![PathBuf::from(".")];
        let mut entries = 0;
        while let Some(place) = waiting.pop() {
            let Ok(dir) = root.open_dir(&place) else { continue };
            let Ok(found) = dir.entries() else { continue };
            for entry in found.flatten() {
                entries += 1;
                if entries > MOST_ENTRIES || seen.files.len() > MOST_FILES {
                    seen.partial = true;
                    return seen;
                }
                let name = entry.file_name();
                let (Ok(kind), false) = (entry.file_type(), is_noise(&name)) else { continue };
                let path = if place == Path::new(".") { name.into() } else { place.join(name) };
                if kind.is_dir() {
                    waiting.push(path);
                } else if kind.is_file()
                    && let Ok(stat) = entry.metadata()
                {
                    let version = format!("{}.{}.{}", stat.ino(), stat.ctime(), stat.ctime_nsec());
                    seen.insert(path.into_os_string(), Mark { version, size: stat.len() });
                }
            }
        }
        seen
    }

    /// Reads a container's account: for each file `version size ./path`, ended by [`END`]. What is not of that form
    /// is passed over; a last line without its end, or too many, say that there are more.
    ///
    /// # Security
    ///
    /// `account` is what the container said, and can say what code in it could have printed.
    pub fn parse(account: &[u8]) -> Self {
        let mut seen = Self::default();
        let mut rest = account;
        while seen.files.len() <= MOST_FILES
            && let Some(at) = memchr::memmem::find(rest, END)
        {
            let line = &rest[..at];
            rest = &rest[at + END.len()..];
            let mut parts = line.splitn(3, |byte| *byte == b' ');
            let mut text = || parts.next().and_then(|part| std::str::from_utf8(part).ok());
            let (Some(version), Some(size)) = (text(), text().and_then(|size| size.parse().ok()))
            else {
                continue;
            };
            let version = version.to_owned();
            let Some(path) = parts.next().and_then(|path| path.strip_prefix(b"./")) else {
                continue;
            };
            seen.insert(OsString::from_vec(path.to_vec()), Mark { version, size });
        }
        seen.partial = !rest.is_empty();
        seen
    }

    fn insert(&mut self, path: OsString, mark: Mark) {
        if !languages::is_snippet(&path) {
            self.files.insert(path, mark);
        }
    }

    /// What is new or another since `before`.
    pub fn changes_since(&self, before: &Self) -> Changes {
        if self.partial || before.partial {
            return Changes { files: Vec::new(), unknown: true };
        }
        let changed =
            self.files.iter().filter(|(path, mark)| before.files.get(*path) != Some(mark));
        Changes {
            files: changed.map(|(path, mark)| (path.clone(), mark.size)).collect(),
            unknown: false,
        }
    }
}

impl Changes {
    /// How many files, where that is known.
    pub fn count(&self) -> Option<usize> {
        (!self.unknown).then_some(self.files.len())
    }

    /// The line of an answer, if there is something to say.
    pub fn note(&self, sandbox_id: &str) -> Option<String> {
        if self.unknown {
            return Some(format!(
                "[over {MOST_FILES} files are in the sandbox; list_directory(sandbox_id=\"{sandbox_id}\") shows them]"
            ));
        }
        if self.files.is_empty() {
            return None;
        }
        let mut told = String::new();
        let mut named = 0;
        for (path, size) in self.files.iter().take(MOST_NAMED) {
            let name = Escaped::new(path).to_string();
            if named > 0 && told.len() + name.len() > MOST_BYTES {
                break;
            }
            let comma = if named == 0 { "" } else { ", " };
            // Writing to a string cannot fail.
            let _written = write!(told, "{comma}{name} ({size} bytes)");
            named += 1;
        }
        let more = match self.files.len() - named {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!(
            "[files made or changed: {told}{more}; read_file(sandbox_id=\"{sandbox_id}\") reads them]"
        ))
    }
}

fn is_noise(name: &OsStr) -> bool {
    NOISE.iter().any(|noise| name == *noise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(files: &[(&str, &str, u64)]) -> Vec<u8> {
        let line =
            |(path, version, size): &(&str, &str, u64)| format!("{version} {size} ./{path}//\n");
        files.iter().map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn what_is_new_or_another_is_named_with_its_size_and_the_rest_is_not() {
        let before =
            Seen::parse(&account(&[("same", "1.1", 5), ("grown", "2.1", 5), ("gone", "3.1", 1)]));
        let now = account(&[
            ("same", "1.1", 5),
            ("grown", "2.2", 9),
            ("d/new\nname", "4.1", 0),
            ("snippet.py", "5", 7),
        ]);
        let changes = Seen::parse(&now).changes_since(&before);
        assert_eq!(changes.count(), Some(2));
        insta::assert_snapshot!(changes.note("sandbox-1").unwrap(), @r#"[files made or changed: d/new\nname (0 bytes), grown (9 bytes); read_file(sandbox_id="sandbox-1") reads them]"#);
        assert_eq!(before.changes_since(&before).note("sandbox-1"), None);
    }

    #[test]
    fn an_account_cannot_be_forged_by_a_name_and_nonsense_is_passed_over() {
        let forged = account(&[("a\n9.9 9 ./forged", "1.1", 5)]);
        let seen = Seen::parse(&forged);
        assert_eq!(seen.files.keys().collect::<Vec<_>>(), ["a\n9.9 9 ./forged"]);
        for nonsense in ["//\n//\n", "1.1 x ./a//\n", "1.1 5 a//\n", "\u{0}//\n"] {
            assert_eq!(Seen::parse(nonsense.as_bytes()), Seen::default(), "{nonsense:?}");
        }
        assert!(Seen::parse(b"1.1 5 ./cut").partial);
    }

    #[test]
    fn a_note_is_short_whatever_the_names() {
        let many: Vec<_> = (0..50).map(|n| (format!("f{n:02}"), "1".to_owned(), 1)).collect();
        let many: Vec<_> = many.iter().map(|(p, v, s)| (p.as_str(), v.as_str(), *s)).collect();
        let note = Seen::parse(&account(&many)).changes_since(&Seen::default()).note("s").unwrap();
        assert!(note.contains("f19 (1 bytes) and 30 more;") && !note.contains("f20"), "{note}");
        let long: Vec<_> = (0..9).map(|n| format!("{n}{}", "x".repeat(900))).collect();
        let long: Vec<_> = long.iter().map(|path| (path.as_str(), "1", 1)).collect();
        let note = Seen::parse(&account(&long)).changes_since(&Seen::default()).note("s").unwrap();
        assert!(note.len() < 2_200 && note.contains(" and 7 more"), "{}", note.len());
        let crowd: Vec<_> = (0..=MOST_FILES + 1).map(|n| format!("{n}")).collect();
        let crowd: Vec<_> = crowd.iter().map(|path| (path.as_str(), "1", 1)).collect();
        let changes = Seen::parse(&account(&crowd)).changes_since(&Seen::default());
        assert_eq!(changes.count(), None);
        assert!(changes.note("s").unwrap().contains("over 5000 files"));
    }

    #[test]
    fn a_directory_is_looked_through_without_following_links_or_noise() {
        let fixture =
            testkit::Fixture::new("//- a/b.txt\nx\n//- node_modules/n.js\nx\n//- snippet.py\n1\n");
        std::os::unix::fs::symlink("..", fixture.root().join("a/up")).unwrap();
        std::os::unix::fs::symlink(fixture.outside(), fixture.root().join("out")).unwrap();
        let root = Dir::open_ambient_dir(fixture.root(), cap_std::ambient_authority()).unwrap();
        let before = Seen::below(&root);
        assert_eq!(before.files.keys().collect::<Vec<_>>(), ["a/b.txt"]);
        root.write("a/b.txt", "y\n").unwrap();
        assert_eq!(Seen::below(&root).changes_since(&before).count(), Some(1));
    }
}
