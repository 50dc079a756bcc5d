//! Searching file contents by regular expression.
//!
//! The engine is linear in the text ([`grep_regex`]), files are read through a buffer, and of what is
//! found only the first lines in path order are kept, each cut to [`MAX_SHOWN`] bytes. All matching
//! lines are counted.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::PathBuf;

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use rustix::fs::FileType;

use crate::at::{self, Access};
use crate::error::{Error, Fault, Result, Step, settle};
use crate::glob::Glob;
use crate::jail::Jail;
use crate::read;
use crate::resolve::{End, LastLink, Resolved, resolve};
use crate::text;
use crate::walk::{Flow, Visit, Walk};

/// Bytes kept of a line, cut around its first match.
const MAX_SHOWN: usize = 400;

/// Longest line that is searched, bytes. It must fit into memory.
const MAX_LINE: usize = 128 * 1024 * 1024;

/// How to search; everything has a default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct GrepOptions {
    /// Only files whose path matches this pattern, see [`Jail::find`].
    pub glob: Option<String>,
    /// Lines told before and after each match.
    pub context: usize,
    /// Letter case does not count.
    pub ignore_case: bool,
    /// Also search what `.gitignore` files and [`NOISE`](crate::NOISE) leave out.
    pub include_ignored: bool,
    /// Matching lines told at most.
    pub limit: usize,
}

impl Default for GrepOptions {
    /// All files that are not ignored, no context, letter case counts, 50 lines.
    fn default() -> Self {
        Self { glob: None, context: 0, ignore_case: false, include_ignored: false, limit: 50 }
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grepped {
    /// The files with the first matching lines, in byte order of their paths.
    pub files: Vec<FileMatches>,
    /// How many lines matched in all.
    pub total: u64,
    /// In how many files.
    pub total_files: u64,
    /// Directories and text files that could not be read to their end, see also
    /// [`Found::unreadable`](crate::Found::unreadable).
    pub unreadable: u64,
}

/// The lines found in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileMatches {
    /// The file, relative to the root. For people: [`Escaped`](crate::Escaped).
    pub path: PathBuf,
    /// Matching lines and their context, in order.
    pub lines: Vec<GrepLine>,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepLine {
    /// Its number, from 1.
    pub number: u64,
    /// Its text without the terminator; what is not UTF-8 is U+FFFD.
    pub text: String,
    /// It matches; `false` for context.
    pub is_match: bool,
    /// `text` is only a part of the line.
    pub is_cut: bool,
}

impl Jail {
    /// Searches the text files at or below `path` for lines that match the regular expression `pattern`.
    ///
    /// The syntax is that of the [`regex`](https://docs.rs/regex) crate; `^` and `$` match at line ends.
    /// Binary files (a NUL byte in the first 8 KiB), links and special files are left out; so are files
    /// with further hard links under [`Hardlinks::Deny`](crate::Hardlinks::Deny).
    ///
    /// # Errors
    ///
    /// `InvalidPattern` for `pattern` or `glob`; for `path` `InvalidPath`, `NameTooLong`,
    /// `OutsideWorkspace`, `SymlinkLoop`, `NotFound`, `NotADirectory`, `NotARegularFile`,
    /// `HardlinkRefused`, `PermissionDenied`, `BinaryFile`, `NotUtf8`, `Busy`, `Io`.
    ///
    /// # Security
    ///
    /// No pattern is expensive by its shape, no line is kept whole, no link is followed.
    pub fn grep(&self, pattern: &str, path: &str, options: &GrepOptions) -> Result<Grepped> {
        let matcher = compile(pattern, options.ignore_case)?;
        let glob = match &options.glob {
            None => None,
            Some(pattern) => Some(
                Glob::new(pattern)
                    .map_err(|reason| Error::InvalidPattern { pattern: pattern.clone(), reason })?,
            ),
        };
        settle(path, || {
            let mut grep = Grep::new(&matcher, options);
            let Resolved { trail, end, .. } = resolve(self, path, LastLink::Follow)?;
            match end {
                End::Missing { .. } => return Err(Fault::NotFound),
                End::Directory => {
                    let walk = Walk::new(self, options.include_ignored);
                    grep.unreadable += walk.run(trail, &mut |visit| {
                        if visit.kind == FileType::RegularFile
                            && glob.as_ref().is_none_or(|glob| glob.matches(visit.path))
                        {
                            match open_text(self, visit) {
                                Ok(file) => grep.search(visit.path.as_os_str(), &file),
                                Err(fault) => grep.unreadable += u64::from(is_failure(&fault)),
                            }
                        }
                        Flow::On
                    });
                }
                End::Entry(name, _) => {
                    let (file, _) = read::open(self, path)?;
                    text::sniff_file(&file)?;
                    let mut shown: PathBuf = trail.names().collect();
                    shown.push(name.as_os_str());
                    grep.search(shown.as_os_str(), &file);
                }
            }
            Ok(grep.finish())
        })
    }
}

fn open_text(jail: &Jail, visit: &Visit<'_>) -> Step<File> {
    let (file, stat) = at::open_regular(visit.dir, visit.name, Access::Read)?;
    read::check_hardlinks(jail, &stat)?;
    text::sniff_file(&file)?;
    Ok(file)
}

/// Whether a text file could not be read, and not only was none.
fn is_failure(fault: &Fault) -> bool {
    matches!(fault, Fault::PermissionDenied | Fault::Busy | Fault::Os(_))
}

fn compile(pattern: &str, ignore_case: bool) -> Result<RegexMatcher> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .crlf(true)
        .case_insensitive(ignore_case)
        .build(pattern)
        .map_err(|error| Error::InvalidPattern {
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        })
}

/// A search in progress.
struct Grep<'m> {
    matcher: &'m RegexMatcher,
    searcher: Searcher,
    limit: usize,
    kept: BTreeMap<OsString, Vec<GrepLine>>,
    /// Matching lines in `kept`.
    kept_matches: usize,
    total: u64,
    total_files: u64,
    unreadable: u64,
}

impl<'m> Grep<'m> {
    fn new(matcher: &'m RegexMatcher, options: &GrepOptions) -> Self {
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(options.context)
            .after_context(options.context)
            .binary_detection(BinaryDetection::none())
            .bom_sniffing(false)
            .heap_limit(Some(MAX_LINE))
            .build();
        Self {
            matcher,
            searcher,
            limit: options.limit,
            kept: BTreeMap::new(),
            kept_matches: 0,
            total: 0,
            total_files: 0,
            unreadable: 0,
        }
    }

    fn search(&mut self, path: &OsStr, file: &File) {
        let room = self.room_for(path);
        let mut lines = Lines { matcher: self.matcher, room, kept: Vec::new(), matches: 0 };
        if self.searcher.search_file(self.matcher, file, &mut lines).is_err() {
            self.unreadable += 1;
        }
        if lines.matches == 0 {
            return;
        }
        self.total += lines.matches;
        self.total_files += 1;
        if room > 0 {
            self.kept_matches += matches_in(&lines.kept);
            self.kept.insert(path.to_owned(), lines.kept);
            self.drop_last_files();
        }
    }

    /// How many matching lines of `path` may be among the first: those before it are full already?
    fn room_for(&self, path: &OsStr) -> usize {
        match self.kept.last_key_value() {
            Some((last, _)) if self.kept_matches >= self.limit && path > last.as_os_str() => 0,
            _ => self.limit,
        }
    }

    /// Drops the last files as long as the others fill the limit.
    fn drop_last_files(&mut self) {
        while let Some(entry) = self.kept.last_entry() {
            let here = matches_in(entry.get());
            if self.kept_matches - here < self.limit {
                break;
            }
            entry.remove();
            self.kept_matches -= here;
        }
    }

    fn finish(self) -> Grepped {
        let mut left = self.limit;
        let files = self
            .kept
            .into_iter()
            .map(|(path, mut lines)| {
                // The file that crosses the limit ends with its last match that fits.
                let mut matches = 0;
                let fits = lines.iter().position(|line| {
                    matches += usize::from(line.is_match);
                    matches > left
                });
                if let Some(end) = fits {
                    lines.truncate(end);
                }
                left -= matches_in(&lines);
                FileMatches { path: PathBuf::from(path), lines }
            })
            .collect();
        Grepped {
            files,
            total: self.total,
            total_files: self.total_files,
            unreadable: self.unreadable,
        }
    }
}

fn matches_in(lines: &[GrepLine]) -> usize {
    lines.iter().filter(|line| line.is_match).count()
}

/// Takes the lines of one file.
struct Lines<'m> {
    matcher: &'m RegexMatcher,
    /// Matching lines to keep.
    room: usize,
    kept: Vec<GrepLine>,
    matches: u64,
}

impl Lines<'_> {
    /// Whether the last match was kept, so that what follows it is context.
    fn has_room(&self) -> bool {
        self.matches <= self.room as u64
    }

    /// Whether the next match will be kept, so that what stands before it is context.
    fn next_has_room(&self) -> bool {
        self.matches < self.room as u64
    }

    fn keep(&mut self, number: Option<u64>, bytes: &[u8], is_match: bool) {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let hit = if is_match { self.matcher.find(line).ok().flatten() } else { None };
        let start = hit.map_or(0, |hit| hit.start());
        let (text, is_cut) = cut(line, start);
        self.kept.push(GrepLine { number: number.unwrap_or(0), text, is_match, is_cut });
    }
}

impl Sink for Lines<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> std::io::Result<bool> {
        self.matches += 1;
        if self.has_room() {
            self.keep(found.line_number(), found.bytes(), true);
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> std::io::Result<bool> {
        let kept = match context.kind() {
            SinkContextKind::Before => self.next_has_room(),
            SinkContextKind::After | SinkContextKind::Other => self.has_room(),
        };
        if kept {
            self.keep(context.line_number(), context.bytes(), false);
        }
        Ok(true)
    }
}

/// At most [`MAX_SHOWN`] bytes of a line, with what stands at `hit` among them.
fn cut(line: &[u8], hit: usize) -> (String, bool) {
    if line.len() <= MAX_SHOWN {
        return (String::from_utf8_lossy(line).into_owned(), false);
    }
    let mut start = hit.saturating_sub(MAX_SHOWN / 4).min(line.len() - MAX_SHOWN);
    let mut end = start + MAX_SHOWN;
    // Not through the middle of a character.
    let continues = |at: usize| line.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    for _ in 0..3 {
        start += usize::from(continues(start));
        end -= usize::from(continues(end));
    }
    (String::from_utf8_lossy(&line[start..end]).into_owned(), true)
}
