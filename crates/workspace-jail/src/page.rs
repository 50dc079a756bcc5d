//! A page of lines of a text file of any size.
//!
//! Lines end at `\n` alone and keep it. Memory is the page and a buffer; the bytes read are those up to
//! the page's end (for a negative offset: from the page to the file's end), and the rest of the file only
//! as long as that is at most [`COUNTED`], to tell how many lines there are.

use std::borrow::Cow;
use std::fs::File;

use crate::error::{Fault, Result, Step, settle};
use crate::jail::Jail;
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
    /// How many lines the file has. `None` where counting would have read more than 64 MiB further.
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
    /// An offset past the end gives a page without lines, an empty file too.
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
            let size = size_of(&stat);
            text::sniff_file(&file)?;
            match u64::try_from(request.offset) {
                Ok(offset) => from_start(&file, size, offset, request),
                Err(_) => from_end(&file, size, request.offset.unsigned_abs(), request),
            }
        })
    }
}

fn from_start(file: &File, size: u64, offset: u64, request: &PageRequest) -> Step<Page> {
    let mut hasher = (size <= COUNTED).then(Hasher::new);
    let mut scan = Scan::new(offset, request);
    let mut seen = 0;
    let came_to = each_chunk(file, 0, size, |chunk| {
        seen += chunk.len() as u64;
        if let Some(hasher) = &mut hasher {
            hasher.update(chunk);
        }
        scan.take(chunk);
        scan.goes_on(size - seen)
    })?;
    scan.too_large()?;
    let total_lines = (came_to == size).then(|| scan.lines());
    let next = offset + scan.page_lines();
    let more = total_lines.map_or(scan.beyond || came_to < size, |total| next < total);
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

fn from_end(file: &File, size: u64, back: u64, request: &PageRequest) -> Step<Page> {
    let start = line_start_from_end(file, size, back)?;
    let mut scan = Scan::new(0, request);
    let came_to = each_chunk(file, start, size, |chunk| {
        scan.take(chunk);
        !scan.beyond && scan.page_size <= request.max_bytes.saturating_add(COUNTED)
    })?;
    scan.too_large()?;
    let (total_lines, sha256) = match count(file, size)? {
        Some((total, sha256)) => (Some(total), Some(sha256)),
        None => (None, None),
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

/// Picks the lines of a page out of a stream of chunks.
struct Scan {
    wanted: std::ops::Range<u64>,
    max_bytes: u64,
    /// Lines that have ended so far.
    ended: u64,
    /// Bytes of a line that has not ended have been seen.
    open: bool,
    /// Bytes after the page have been seen.
    beyond: bool,
    page: Vec<u8>,
    /// Bytes of the page, kept or not.
    page_size: u64,
}

impl Scan {
    fn new(first: u64, request: &PageRequest) -> Self {
        let wanted = first..first.saturating_add(request.limit);
        let max_bytes = request.max_bytes;
        Self { wanted, max_bytes, ended: 0, open: false, beyond: false, page: vec![], page_size: 0 }
    }

    fn take(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            if self.ended >= self.wanted.end {
                self.beyond = true;
                self.ended += memchr::memchr_iter(b'\n', chunk).count() as u64;
                self.open = chunk.last() != Some(&b'\n');
                return;
            }
            let end = memchr::memchr(b'\n', chunk).map_or(chunk.len(), |at| at + 1);
            let (line, rest) = chunk.split_at(end);
            if self.ended >= self.wanted.start {
                self.page_size += line.len() as u64;
                if self.page_size <= self.max_bytes {
                    self.page.extend_from_slice(line);
                }
            }
            self.open = line.last() != Some(&b'\n');
            self.ended += u64::from(!self.open);
            chunk = rest;
        }
    }

    /// Whether reading on is worth it, with `left` bytes left.
    fn goes_on(&self, left: u64) -> bool {
        if self.page_size > self.max_bytes {
            return !self.beyond && self.page_size - self.max_bytes <= COUNTED;
        }
        // The first byte after the page tells that lines follow; the rest only how many.
        self.ended < self.wanted.end || left <= COUNTED
    }

    fn too_large(&self) -> Step<()> {
        if self.page_size > self.max_bytes {
            return Err(Fault::TooLarge { size: self.page_size, max: self.max_bytes });
        }
        Ok(())
    }

    /// Lines seen, the one that has not ended included.
    fn lines(&self) -> u64 {
        self.ended + u64::from(self.open)
    }

    fn page_lines(&self) -> u64 {
        self.lines().min(self.wanted.end).saturating_sub(self.wanted.start)
    }
}
