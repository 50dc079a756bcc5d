//! Reads a stored output back by raw line number, at the cost of reading the lines before them, in bounded memory.

use std::io::{self, BufReader, Read, Seek as _, SeekFrom};

use cap_std::fs::{Dir, File};

use super::Manifest;

/// More of one line is not read back: 1 MiB, as much as one answer may hold.
const MAX_LINE: usize = 1024 * 1024;

/// A stored output.
#[derive(Debug)]
pub struct Stored {
    manifest: Manifest,
    head: File,
    tail: File,
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
        Self::with(dir, id, serde_json::from_slice(&manifest)?).map(Some)
    }

    pub(super) fn with(dir: &Dir, id: &str, manifest: Manifest) -> io::Result<Self> {
        let head = dir.open(format!("{id}.head"))?;
        let tail = dir.open(format!("{id}.tail"))?;
        Ok(Self { manifest, head, tail })
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
        self.visit(|number, bytes| {
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
        self.visit(|number, bytes| {
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

    /// Calls `line` for each kept line in order until it answers false.
    fn visit(&mut self, mut line: impl FnMut(u64, &[u8]) -> bool) -> io::Result<()> {
        let Manifest { head_bytes, tail_bytes, tail_start, tail_line, .. } = self.manifest;
        self.head.seek(SeekFrom::Start(0))?;
        let mut again = self.tail.try_clone()?;
        self.tail.seek(SeekFrom::Start(tail_start))?;
        let first = (&self.tail).take(tail_bytes - tail_start);
        let head = (&self.head).take(head_bytes);
        let second = FromStart { file: &mut again, started: false }.take(tail_start);
        let tail = first.chain(second);
        if self.manifest.dropped_bytes() == 0 {
            visit_lines(head.chain(tail), 0, &mut line)?;
        } else if visit_lines(head, 0, &mut line)? {
            visit_lines(tail, tail_line, &mut line)?;
        }
        Ok(())
    }
}

/// The same open file, sought to its start when its turn comes: both parts of the ring share one offset.
struct FromStart<'a> {
    file: &'a mut File,
    started: bool,
}

impl Read for FromStart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.started {
            self.file.seek(SeekFrom::Start(0))?;
            self.started = true;
        }
        self.file.read(buffer)
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
