//! A page of lines of a text file of any size.
//!
//! Lines end at `\n` alone and keep it. Memory is the page and a buffer. Up to [`COUNTED`] bytes a file is
//! read whole, to tell its version and how many lines there are. Of a larger one the bytes up to the
//! page's end are read the first time (for a negative offset: from the page to the file's end), and those
//! near the page once a [`LineIndex`] knows where it is.

mod scan;

use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;

use rustix::fs::Stat;

use self::scan::Scan;
use crate::error::{Result, Step, settle};
use crate::jail::Jail;
use crate::line_index::LineIndex;
use crate::read::{CHUNK, each_chunk, fill_at, open, size_of};
use crate::sha256::{Hasher, Sha256};
use crate::text;

/// Bytes read at most only to count lines.
const COUNTED: u64 = 64 * 1024 * 1024;

/// Which lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct PageRequest {
    /// The first line, from 0; a negative one counts from the end, −1 being the last line.
    pub offset: i64,
    /// Lines at most.
    pub limit: u64,
    /// Bytes at most; a page that has more is an error, since a line is never cut.
    pub max_bytes: u64,
}

impl Default for PageRequest {
    /// The first 100 lines, at most 1 MiB.
    fn default() -> Self {
        Self { offset: 0, limit: 100, max_bytes: 1024 * 1024 }
    }
}

impl PageRequest {
    /// Asks for `limit` lines from `offset` on, at most 1 MiB.
    pub fn new(offset: i64, limit: u64) -> Self {
        Self { offset, limit, ..Self::default() }
    }

    /// Replaces the largest number of bytes a page may have.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }
}

/// Some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The lines exactly as they stand in the file, terminators included, nothing added.
    pub bytes: Vec<u8>,
    /// The number of the first line, from 0. `None` for a negative offset into a file whose lines were
    /// not counted.
    pub first_line: Option<u64>,
    /// How many lines these are.
    pub lines: u64,
    /// How many lines the file has. `None` where counting would have read more than 64 MiB further and no
    /// page before has come to the end of the file.
    pub total_lines: Option<u64>,
    /// The offset to go on with, if lines follow; negative where `first_line` is not known.
    pub next_offset: Option<i64>,
    /// The version of the whole file, if all of it was read (it is, up to 64 MiB).
    pub sha256: Option<Sha256>,
    /// Bytes in the whole file.
    pub size: u64,
}

impl Page {
    /// The lines as text. It is [`Cow::Owned`] if and only if bytes that are not UTF-8 were replaced by
    /// U+FFFD.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

impl Jail {
    /// Reads a page of a text file of any size.
    ///
    /// An offset past the end gives a page without lines, an empty file too. In a file over 64 MiB the jail
    /// keeps in mind where lines are: the second page at a place costs the page, wherever it is.
    ///
    /// ```
    /// use workspace_jail::PageRequest;
    ///
    /// # let root = tempfile::tempdir()?;
    /// # let jail = workspace_jail::Jail::open(root.path(), Default::default())?;
    /// jail.create("log", b"one\ntwo\nthree\n")?;
    /// let page = jail.read_page("log", &PageRequest::new(1, 1))?;
    /// assert_eq!((page.text().as_ref(), page.total_lines), ("two\n", Some(3)));
    /// let last = jail.read_page("log", &PageRequest::new(-1, 10))?;
    /// assert_eq!(last.text(), "three\n");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidPath`, `NameTooLong`, `OutsideWorkspace`, `SymlinkLoop`, `NotFound`, `NotADirectory`,
    /// `IsDirectory`, `NotARegularFile`, `HardlinkRefused`, `PermissionDenied`, `BinaryFile`,
    /// `TooLarge` if the page (not the file) has more than `max_bytes`, `NotUtf8` for a byte-order mark
    /// of UTF-16 or UTF-32, `Busy`, `Io`.
    ///
    /// # Security
    ///
    /// As [`Jail::read`]. A file that grows meanwhile is read up to the size it had at the start.
    pub fn read_page(&self, path: &str, request: &PageRequest) -> Result<Page> {
        settle(path, || {
            let (file, stat) = open(self, path)?;
            text::sniff_file(&file)?;
            let mut reading = Reading::new(self, &file, &stat);
            let page = match u64::try_from(request.offset) {
                Ok(offset) => reading.forward(offset, request),
                Err(_) => reading.backward(request.offset.unsigned_abs(), request),
            }?;
            reading.learn(self)?;
            Ok(page)
        })
    }
}

/// A file that a page is read of, and what is known about its lines.
struct Reading<'f> {
    file: &'f File,
    stat: &'f Stat,
    size: u64,
    known: Arc<LineIndex>,
    learnt: bool,
}

impl<'f> Reading<'f> {
    fn new(jail: &Jail, file: &'f File, stat: &'f Stat) -> Self {
        let size = size_of(stat);
        // A smaller file is read whole for its version, and needs none.
        let known = if size > COUNTED { jail.line_indexes().get(stat) } else { Arc::default() };
        Self { file, stat, size, known, learnt: false }
    }

    /// The page that begins at line `offset`.
    fn forward(&mut self, offset: u64, request: &PageRequest) -> Step<Page> {
        let size = self.size;
        let mut index = LineIndex::clone(&self.known);
        let (start, ended) = index.before(offset);
        let mut hasher = (size <= COUNTED).then(Hasher::new);
        let mut scan = Scan::new(offset, ended, request);
        let mut seen = start;
        let came_to = each_chunk(self.file, start, size, |chunk| {
            seen += chunk.len() as u64;
            if let Some(hasher) = &mut hasher {
                hasher.update(chunk);
            }
            scan.take(chunk);
            index.note(seen, scan.ended);
            // With the total known there is nothing to count.
            scan.goes_on(if index.total().is_some() { u64::MAX } else { size - seen })
        })?;
        scan.too_large()?;
        if came_to == size {
            index.note_total(scan.lines());
        }
        let total_lines = index.total();
        let next = offset.saturating_add(scan.page_lines());
        let more = total_lines.map_or(scan.beyond || came_to < size, |total| next < total);
        if size > COUNTED && index != *self.known {
            (self.known, self.learnt) = (Arc::new(index), true);
        }
        Ok(Page {
            lines: scan.page_lines(),
            bytes: scan.page,
            first_line: Some(offset),
            total_lines,
            next_offset: more.then(|| i64::try_from(next).unwrap_or(i64::MAX)),
            sha256: hasher.filter(|_| came_to == size).map(Hasher::finish),
            size,
        })
    }

    /// The page that begins `back` lines before the end.
    fn backward(&self, back: u64, request: &PageRequest) -> Step<Page> {
        let (file, size) = (self.file, self.size);
        let start = line_start_from_end(file, size, back)?;
        let mut scan = Scan::new(0, 0, request);
        let came_to = each_chunk(file, start, size, |chunk| {
            scan.take(chunk);
            !scan.beyond && scan.page_size <= request.max_bytes.saturating_add(COUNTED)
        })?;
        scan.too_large()?;
        let (total_lines, sha256) = match count(file, size)? {
            Some((total, sha256)) => (Some(total), Some(sha256)),
            None => (self.known.total(), None),
        };
        let lines = scan.page_lines();
        let first_line = match total_lines {
            Some(total) => Some(total.saturating_sub(back)),
            None => (start == 0).then_some(0),
        };
        let more = scan.beyond || came_to < size;
        let next = match first_line {
            Some(first) => i64::try_from(first + lines).unwrap_or(i64::MAX),
            None => request.offset.saturating_add(i64::try_from(lines).unwrap_or(i64::MAX)),
        };
        Ok(Page {
            lines,
            bytes: scan.page,
            first_line,
            total_lines,
            next_offset: more.then_some(next),
            sha256,
            size,
        })
    }

    /// Keeps what was learnt of the file, if it has not changed meanwhile.
    fn learn(self, jail: &Jail) -> Step<()> {
        if self.learnt {
            jail.line_indexes().put(self.stat, &rustix::fs::fstat(self.file)?, self.known);
        }
        Ok(())
    }
}

/// Where the last `back` lines begin; 0 if there are not so many.
fn line_start_from_end(file: &File, size: u64, back: u64) -> Step<u64> {
    let mut buffer = vec![0; CHUNK];
    // The terminator of the last line ends it and begins nothing.
    let mut end = size.saturating_sub(1);
    let mut found = 0;
    while end > 0 {
        let start = end.saturating_sub(CHUNK as u64);
        let room = usize::try_from(end - start).unwrap_or(CHUNK);
        let filled = fill_at(file, &mut buffer[..room], start)?;
        for position in memchr::memrchr_iter(b'\n', &buffer[..filled]) {
            found += 1;
            if found == back {
                return Ok(start + position as u64 + 1);
            }
        }
        end = start;
    }
    Ok(0)
}

/// Number of lines and version of a file that may be read whole to learn them.
fn count(file: &File, size: u64) -> Step<Option<(u64, Sha256)>> {
    if size > COUNTED {
        return Ok(None);
    }
    let mut hasher = Hasher::new();
    let (mut ends, mut last) = (0, b'\n');
    each_chunk(file, 0, size, |chunk| {
        hasher.update(chunk);
        ends += memchr::memchr_iter(b'\n', chunk).count() as u64;
        last = chunk.last().copied().unwrap_or(last);
        true
    })?;
    Ok(Some((ends + u64::from(last != b'\n'), hasher.finish())))
}
