//! A walk over a tree, by descriptor.
//!
//! Invariants: no link is followed, each directory is entered by name from the one above it, so a
//! directory that is swapped for a link meanwhile is not entered; a directory's entries are handed on as
//! they are read, and only the names of its subdirectories are kept; descriptors are bounded by the
//! [`Trail`]. The order is the file system's.
//!
//! `.gitignore` files count in a repository and outside of one; those above the start count, too.
//! Other ignore files and the user's global one do not: the answer depends on the workspace alone.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::FileType;

use crate::at::{self, Access};
use crate::jail::Jail;
use crate::noise::is_noise;
use crate::path::Name;
use crate::read;
use crate::temp;
use crate::trail::Trail;

/// Longest path that is entered: the verbs take none that is longer.
const MAX_PATH: usize = 4095;

/// Bytes of `.gitignore` files that are in force at one place, and that are read in one walk. A compiled
/// rule takes hundreds of times its text: 30,000 rules in 846 KiB took 340 MiB and 0.9 s.
const MAX_RULES_HERE: u64 = 256 * 1024;
const MAX_RULES_READ: u64 = 4 * 1024 * 1024;

/// What to do after an entry was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Go on; enter it if it is a directory.
    On,
    /// Go on without entering it.
    Past,
    /// End the walk.
    Stop,
}

/// An entry met on the walk.
#[derive(Debug)]
pub(crate) struct Visit<'a> {
    /// The directory it is in.
    pub(crate) dir: &'a Dir,
    pub(crate) name: &'a Name,
    /// Its path relative to the root.
    pub(crate) path: &'a Path,
    pub(crate) kind: FileType,
}

/// A directory entered and not yet done with.
struct Frame {
    /// Its subdirectories that are still to be entered.
    pending: Vec<Name>,
    rules: Rules,
    /// Bytes of a path below it that name the directory itself, its slash included.
    prefix: usize,
}

/// A compiled `.gitignore` and the size of its text.
struct Rules {
    compiled: Gitignore,
    size: u64,
}

/// A walk and its rules.
pub(crate) struct Walk<'j> {
    jail: &'j Jail,
    include_ignored: bool,
    include_temps: bool,
    frames: Vec<Frame>,
    /// The rules of the directories above the start, from the root down.
    above: Vec<(Rules, usize)>,
    rules_read: u64,
    path: Vec<u8>,
    unreadable: u64,
}

impl<'j> Walk<'j> {
    pub(crate) fn new(jail: &'j Jail, include_ignored: bool) -> Self {
        let (frames, above, path) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            jail,
            include_ignored,
            include_temps: false,
            frames,
            above,
            rules_read: 0,
            path,
            unreadable: 0,
        }
    }

    /// Also visits files on their way to their names, see [`temp`].
    pub(crate) fn include_temps(mut self) -> Self {
        self.include_temps = true;
        self
    }

    /// Visits everything below `start` that the rules leave, and says how many directories could not be
    /// read.
    pub(crate) fn run(
        mut self,
        mut start: Trail<'j>,
        visit: &mut dyn FnMut(&Visit<'_>) -> Flow,
    ) -> u64 {
        self.look_above(&start);
        if self.enter(&start, visit) == Flow::Stop {
            return self.unreadable;
        }
        while let Some(frame) = self.frames.last_mut() {
            let prefix = frame.prefix;
            let Some(name) = frame.pending.pop() else {
                self.frames.pop();
                if !self.frames.is_empty() {
                    let gone = start.up();
                    self.frames.truncate((self.frames.len() + 1).saturating_sub(gone));
                }
                continue;
            };
            self.path.truncate(prefix);
            self.path.extend_from_slice(name.as_os_str().as_bytes());
            self.path.push(b'/');
            if self.path.len() > MAX_PATH {
                self.unreadable += 1;
                continue;
            }
            match at::hold_dir(start.dir(), &name) {
                Ok(dir) => start.down(name, dir),
                // Gone, or no longer a directory: nothing to see there.
                Err(_) => continue,
            }
            if self.enter(&start, visit) == Flow::Stop {
                break;
            }
        }
        self.unreadable
    }

    /// Reads the rules of the directories above the start.
    fn look_above(&mut self, start: &Trail<'_>) {
        let mut trail = Trail::new(self.jail.root());
        for name in start.names() {
            let Some(name) = Name::new(name.as_bytes()) else { return };
            let rules = self.rules_of(trail.dir());
            self.above.push((rules, self.path.len()));
            self.path.extend_from_slice(name.as_os_str().as_bytes());
            self.path.push(b'/');
            match at::hold_dir(trail.dir(), &name) {
                Ok(dir) => trail.down(name, dir),
                Err(_) => return,
            }
        }
    }

    /// Reads the directory at the end of the trail, whose path with its slash is `self.path`.
    fn enter(&mut self, trail: &Trail<'_>, visit: &mut dyn FnMut(&Visit<'_>) -> Flow) -> Flow {
        let dir = trail.dir();
        let prefix = self.path.len();
        let rules = self.rules_of(dir);
        self.frames.push(Frame { pending: Vec::new(), rules, prefix });
        let Ok(entries) = at::read_dir(dir) else {
            self.unreadable += 1;
            return Flow::On;
        };
        let mut pending = Vec::new();
        for entry in entries {
            let Ok(entry) = entry else {
                self.unreadable += 1;
                break;
            };
            let Some(name) = Name::new(entry.file_name().to_bytes()) else { continue };
            let kind = match entry.file_type() {
                FileType::Unknown => match at::kind_of(dir, &name) {
                    Ok(kind) => kind,
                    Err(_) => continue,
                },
                known => known,
            };
            self.path.truncate(prefix);
            self.path.extend_from_slice(name.as_os_str().as_bytes());
            if self.leaves_out(&name, kind) {
                continue;
            }
            let path = Path::new(OsStr::from_bytes(&self.path));
            match visit(&Visit { dir, name: &name, path, kind }) {
                Flow::On if kind == FileType::Directory => pending.push(name),
                Flow::On | Flow::Past => {}
                Flow::Stop => return Flow::Stop,
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.pending = pending;
        }
        Flow::On
    }

    fn leaves_out(&self, name: &Name, kind: FileType) -> bool {
        let is_temp =
            || kind == FileType::RegularFile && temp::is_temp(name.as_os_str().as_bytes());
        if !self.include_temps && is_temp() {
            return true;
        }
        if self.include_ignored {
            return false;
        }
        if is_noise(name.as_os_str()) {
            return true;
        }
        let is_dir = kind == FileType::Directory;
        let inner = self.frames.iter().rev().map(|frame| (&frame.rules, frame.prefix));
        let outer = self.above.iter().rev().map(|(rules, prefix)| (rules, *prefix));
        // The innermost file that says anything decides; within a file its last line that matches.
        for (rules, prefix) in inner.chain(outer) {
            match rules.compiled.matched(OsStr::from_bytes(&self.path[prefix..]), is_dir) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }

    /// The rules in a directory's `.gitignore`. As for git, a link is none.
    fn rules_of(&mut self, dir: &Dir) -> Rules {
        let none = Rules { compiled: Gitignore::empty(), size: 0 };
        if self.include_ignored {
            return none;
        }
        let Some(text) = gitignore(dir) else { return none };
        let size = text.len() as u64;
        let here: u64 = self.frames.iter().map(|frame| &frame.rules).map(|rules| rules.size).sum();
        let above: u64 = self.above.iter().map(|(rules, _)| rules.size).sum();
        if here + above + size > MAX_RULES_HERE || self.rules_read + size > MAX_RULES_READ {
            self.unreadable += 1;
            return none;
        }
        self.rules_read += size;
        Rules { compiled: compile(&text), size }
    }
}

/// The text of a directory's `.gitignore`; of one that is too large only so much that it shows.
fn gitignore(dir: &Dir) -> Option<String> {
    let name = Name::new(b".gitignore")?;
    let (file, stat) = at::open_regular(dir, &name, Access::Read).ok()?;
    let size = read::size_of(&stat).min(MAX_RULES_HERE + 1);
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    let filled = read::fill_at(&file, &mut bytes, 0).ok()?;
    Some(String::from_utf8_lossy(&bytes[..filled]).into_owned())
}

fn compile(text: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new(".");
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line that is no pattern excludes nothing.
        builder.add_line(None, line).ok();
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
