//! Reads an output back by raw line number, in bounded memory: a stored one at the cost of the pieces it reads, one that
//! still runs at the cost of the lines before them.

use std::io::{self, BufReader, Read};

use cap_std::fs::{Dir, File};

use super::Manifest;
use super::packed::OWN;
use super::span::Span;

/// More of one line is not read back: 1 MiB, as much as one answer may hold.
const MAX_LINE: usize = 1024 * 1024;

/// An output to read.
#[derive(Debug)]
pub struct Stored {
    manifest: Manifest,
    bytes: Bytes,
}

/// Where the bytes are.
#[derive(Debug)]
enum Bytes {
    /// In files that a command still writes: the beginning, and a ring that begins at the number.
    Growing { head: File, tail: File, tail_start: u64 },
    /// In pieces.
    Packed(File),
}

/// One raw line, its terminator included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Zero-based number in the whole output.
    pub number: u64,
    /// The bytes, cut at the caller's limit.
    pub bytes: Vec<u8>,
}

impl Stored {
    pub(super) fn open(dir: &Dir, id: &str) -> io::Result<Option<Self>> {
        let manifest = match dir.read(format!("{id}.json")) {
            Ok(manifest) => manifest,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let manifest = serde_json::from_slice(&manifest)?;
        let bytes = Bytes::Packed(dir.open(format!("{id}.{OWN}"))?);
        Ok(Some(Self { manifest, bytes }))
    }

    pub(super) fn growing(manifest: Manifest, head: File, tail: File, tail_start: u64) -> Self {
        Self { manifest, bytes: Bytes::Growing { head, tail, tail_start } }
    }

    /// Lines of the whole output, those that were dropped included.
    pub fn total_lines(&self) -> u64 {
        self.manifest.total_lines
    }

    /// Bytes that are kept of it.
    pub fn kept_bytes(&self) -> u64 {
        self.manifest.head_bytes + self.manifest.tail_bytes
    }

    /// Bytes between the two kept ends that the operator's cap dropped.
    pub fn dropped_bytes(&self) -> u64 {
        self.manifest.dropped_bytes()
    }

    /// The lines from `offset` on that are kept: at most `limit`, and at most `max_bytes` in all.
    ///
    /// # Errors
    ///
    /// When the stored files cannot be read.
    pub fn lines(&mut self, offset: u64, limit: u64, max_bytes: u64) -> io::Result<Vec<Line>> {
        let mut found = Vec::new();
        let mut left = max_bytes;
        self.visit(offset, |number, bytes| {
            if number < offset {
                return true;
            }
            if number - offset >= limit || left == 0 {
                return false;
            }
            let shown = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            left -= shown as u64;
            let bytes = bytes.get(..shown).unwrap_or_default().to_vec();
            found.push(Line { number, bytes });
            true
        })?;
        Ok(found)
    }

    /// The lines that `pattern` matches, from `offset` on: at most `limit` and `max_bytes`; and how many match in all.
    ///
    /// # Errors
    ///
    /// When the stored files cannot be read.
    pub fn matching(
        &mut self,
        pattern: &regex::bytes::Regex,
        offset: u64,
        limit: u64,
        max_bytes: u64,
    ) -> io::Result<(Vec<Line>, u64)> {
        let mut found = Vec::new();
        let mut total = 0;
        let mut left = max_bytes;
        self.visit(offset, |number, bytes| {
            if number >= offset && pattern.is_match(bytes) {
                total += 1;
                if total <= limit && left > 0 {
                    let shown = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    left -= shown as u64;
                    found.push(Line {
                        number,
                        bytes: bytes.get(..shown).unwrap_or_default().into(),
                    });
                }
            }
            true
        })?;
        Ok((found, total))
    }

    /// Calls `line` for kept lines in order, from `first` or before, until it answers false.
    fn visit(&mut self, first: u64, mut line: impl FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
        let Manifest { head_bytes, tail_bytes, tail_line, .. } = self.manifest;
        let has_gap = self.manifest.dropped_bytes() > 0;
        match &self.bytes {
            Bytes::Growing { head, tail, tail_start } => {
                let head = Span::new(head, 0, head_bytes);
                let tail = Span::ring(tail, *tail_start, tail_bytes);
                if !has_gap {
                    visit_lines(head.chain(tail), 0, &mut line)?;
                } else if visit_lines(head, 0, &mut line)? {
                    visit_lines(tail, tail_line, &mut line)?;
                }
            }
            Bytes::Packed(file) => {
                let Some(packed) = &self.manifest.packed else { return Ok(()) };
                let whole = head_bytes + tail_bytes;
                if !has_gap {
                    let from = packed.open(file.try_clone()?, 0, whole, first);
                    let number = from.skipped;
                    visit_lines(from, number, &mut line)?;
                    return Ok(());
                }
                if first < tail_line {
                    let from = packed.open(file.try_clone()?, 0, head_bytes, first);
                    let number = from.skipped;
                    if !visit_lines(from, number, &mut line)? {
                        return Ok(());
                    }
                }
                let within = first.saturating_sub(tail_line);
                let from = packed.open(file.try_clone()?, head_bytes, whole, within);
                let number = tail_line + from.skipped;
                visit_lines(from, number, &mut line)?;
            }
        }
        Ok(())
    }
}

/// Calls `line` for each line, at most [`MAX_LINE`] bytes of it; answers whether the caller wants more.
fn visit_lines(
    read: impl Read,
    first: u64,
    line: &mut impl FnMut(u64, &[u8]) -> bool,
) -> io::Result<bool> {
    let mut read = BufReader::with_capacity(64 * 1024, read);
    let mut bytes = Vec::new();
    let mut number = first;
    loop {
        bytes.clear();
        if !read_line(&mut read, &mut bytes)? {
            return Ok(true);
        }
        if !line(number, &bytes) {
            return Ok(false);
        }
        number += 1;
    }
}

/// Reads to the next newline, keeping the first [`MAX_LINE`] bytes; false at the end of the file.
fn read_line(read: &mut impl io::BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    let mut any = false;
    loop {
        let available = read.fill_buf()?;
        if available.is_empty() {
            return Ok(any);
        }
        any = true;
        let newline = memchr::memchr(b'\n', available);
        let taken = newline.map_or(available.len(), |at| at + 1);
        let kept = taken.min(MAX_LINE - line.len());
        line.extend_from_slice(available.get(..kept).unwrap_or_default());
        read.consume(taken);
        if newline.is_some() {
            return Ok(true);
        }
    }
}
