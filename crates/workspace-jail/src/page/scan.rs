//! Picking the lines of a page out of a stream of chunks.
//!
//! Invariant: what is kept is at most the largest page asked for, however much passes by.

use super::{COUNTED, PageRequest};
use crate::error::{Fault, Step};

/// Picks the lines of a page out of a stream of chunks.
pub(super) struct Scan {
    wanted: std::ops::Range<u64>,
    max_bytes: u64,
    /// Lines that have ended so far.
    pub(super) ended: u64,
    /// Bytes of a line that has not ended have been seen.
    open: bool,
    /// Bytes after the page have been seen.
    pub(super) beyond: bool,
    pub(super) page: Vec<u8>,
    /// Bytes of the page, kept or not.
    pub(super) page_size: u64,
}

impl Scan {
    /// For the page from line `first` on, in chunks that begin after the end of `ended` lines.
    pub(super) fn new(first: u64, ended: u64, request: &PageRequest) -> Self {
        let wanted = first..first.saturating_add(request.limit);
        let max_bytes = request.max_bytes;
        Self { wanted, max_bytes, ended, open: false, beyond: false, page: vec![], page_size: 0 }
    }

    pub(super) fn take(&mut self, mut chunk: &[u8]) {
        if self.ended < self.wanted.start {
            let ends = memchr::memchr_iter(b'\n', chunk).count() as u64;
            if self.ended + ends < self.wanted.start {
                // All of it stands before the page.
                self.ended += ends;
                self.open = chunk.last() != Some(&b'\n');
                return;
            }
        }
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
    pub(super) fn goes_on(&self, left: u64) -> bool {
        if self.page_size > self.max_bytes {
            return !self.beyond && self.page_size - self.max_bytes <= COUNTED;
        }
        // The first byte after the page tells that lines follow; the rest only how many.
        self.ended < self.wanted.end || left <= COUNTED
    }

    pub(super) fn too_large(&self) -> Step<()> {
        if self.page_size > self.max_bytes {
            return Err(Fault::TooLarge { size: self.page_size, max: self.max_bytes });
        }
        Ok(())
    }

    /// Lines seen, the one that has not ended included.
    pub(super) fn lines(&self) -> u64 {
        self.ended + u64::from(self.open)
    }

    pub(super) fn page_lines(&self) -> u64 {
        self.lines().min(self.wanted.end).saturating_sub(self.wanted.start)
    }
}
