//! Searching one file after the other, and what is kept of what was found.
//!
//! Invariants: of the matching lines the first [`GrepOptions::limit`] in path order are kept, and all are
//! counted; two searches of different files add up to the one of all
//! of them ([`Search::absorb`]). A file is read up to the size it had when it was opened.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cap_std::fs::Dir;
use grep_matcher::LineTerminator;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use super::lines::Lines;
use super::{FileMatches, GrepLine, GrepOptions, Grepped};
use crate::at::{self, Access};
use crate::error::{Fault, Step};
use crate::jail::Jail;
use crate::path::Name;
use crate::read;
use crate::text;

/// Bytes of a file that are read at once: most files whole.
const START: usize = 64 * 1024;

/// Longest line that each thread has room for, bytes.
const SHORT_LINE: usize = 1024 * 1024;

/// Longest line that is searched, bytes. It must fit into memory: one thread at a time makes room.
const MAX_LINE: usize = 128 * 1024 * 1024;

/// A search in progress.
pub(super) struct Search<'l> {
    matcher: RegexMatcher,
    searcher: Searcher,
    context: usize,
    limit: usize,
    long_lines: &'l Mutex<()>,
    start: Vec<u8>,
    kept: BTreeMap<OsString, Vec<GrepLine>>,
    /// Matching lines in `kept`.
    kept_matches: usize,
    total: u64,
    total_files: u64,
    unreadable: u64,
}

impl<'l> Search<'l> {
    /// `long_lines` is one lock for all searches that run at the same time.
    pub(super) fn new(
        matcher: &RegexMatcher,
        options: &GrepOptions,
        long_lines: &'l Mutex<()>,
    ) -> Self {
        Self::empty(matcher.clone(), options.context, options.limit, long_lines)
    }

    /// Another search for the same, for another thread.
    pub(super) fn another(&self) -> Self {
        Self::empty(self.matcher.clone(), self.context, self.limit, self.long_lines)
    }

    fn empty(
        matcher: RegexMatcher,
        context: usize,
        limit: usize,
        long_lines: &'l Mutex<()>,
    ) -> Self {
        Self {
            matcher,
            searcher: searcher(context, SHORT_LINE),
            context,
            limit,
            long_lines,
            start: vec![0; START],
            kept: BTreeMap::new(),
            kept_matches: 0,
            total: 0,
            total_files: 0,
            unreadable: 0,
        }
    }

    /// Searches an entry that a walk has met; what is no text file is left out.
    pub(super) fn entry(&mut self, jail: &Jail, dir: &Dir, name: &Name, path: &OsStr) {
        let searched = at::open_regular(dir, name, Access::Read).and_then(|(file, stat)| {
            read::check_hardlinks(jail, &stat)?;
            self.file(path, &file, read::size_of(&stat))
        });
        if let Err(fault) = searched {
            self.add_unreadable(is_failure(&fault).into());
        }
    }

    /// Searches the first `size` bytes of a file; fails if its start cannot be read or is no text.
    pub(super) fn file(&mut self, path: &OsStr, file: &File, size: u64) -> Step<()> {
        let room = usize::try_from(size).unwrap_or(START).min(START);
        let filled = read::fill_at(file, &mut self.start[..room], 0)?;
        let start = &self.start[..filled];
        text::sniff(start)?;
        // A mark is no part of the first line: `^` stands behind it.
        let marked = if start.starts_with(text::MARK) { text::MARK.len() } else { 0 };
        let rest = || Prefix { file, position: marked as u64, end: size };
        let room = self.room_for(path);
        let mut lines = Lines::new(&self.matcher, room);
        let searched = if size <= START as u64 {
            self.searcher.search_slice(&self.matcher, &start[marked..], &mut lines)
        } else {
            self.searcher.search_reader(&self.matcher, rest(), &mut lines).or_else(|_| {
                // As a rule a line for which there was no room.
                let _one = self.long_lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines = Lines::new(&self.matcher, room);
                searcher(self.context, MAX_LINE).search_reader(&self.matcher, rest(), &mut lines)
            })
        };
        let Lines { kept, matches, .. } = lines;
        self.unreadable += u64::from(searched.is_err());
        self.total += matches;
        self.total_files += u64::from(matches > 0);
        if matches > 0 && room > 0 {
            self.keep(path.to_owned(), kept);
        }
        Ok(())
    }

    /// Counts directories and files that could not be read.
    pub(super) fn add_unreadable(&mut self, unreadable: u64) {
        self.unreadable += unreadable;
    }

    /// Adds what another search for the same found in other files.
    pub(super) fn absorb(&mut self, other: Self) {
        self.total += other.total;
        self.total_files += other.total_files;
        self.unreadable += other.unreadable;
        for (path, lines) in other.kept {
            if self.room_for(&path) > 0 {
                self.keep(path, lines);
            }
        }
    }

    /// How many matching lines of `path` may be among the first: those before it are full already?
    fn room_for(&self, path: &OsStr) -> usize {
        match self.kept.last_key_value() {
            Some((last, _)) if self.kept_matches >= self.limit && path > last.as_os_str() => 0,
            _ => self.limit,
        }
    }

    /// Keeps the lines of a file, and drops the last files as long as the others fill the limit.
    fn keep(&mut self, path: OsString, lines: Vec<GrepLine>) {
        self.kept_matches += matches_in(&lines);
        self.kept.insert(path, lines);
        while let Some(entry) = self.kept.last_entry() {
            let here = matches_in(entry.get());
            if self.kept_matches - here < self.limit {
                break;
            }
            entry.remove();
            self.kept_matches -= here;
        }
    }

    pub(super) fn finish(self) -> Grepped {
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

fn searcher(context: usize, longest_line: usize) -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::none())
        .bom_sniffing(false)
        .heap_limit(Some(longest_line))
        .build()
}

/// Whether a text file could not be read, and not only was none.
fn is_failure(fault: &Fault) -> bool {
    matches!(fault, Fault::PermissionDenied | Fault::Busy | Fault::Os(_))
}

fn matches_in(lines: &[GrepLine]) -> usize {
    lines.iter().filter(|line| line.is_match).count()
}

/// The first bytes of a file, whatever is appended meanwhile.
struct Prefix<'f> {
    file: &'f File,
    position: u64,
    end: u64,
}

impl Read for Prefix<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..room], self.position)?;
        self.position += read as u64;
        Ok(read)
    }
}
