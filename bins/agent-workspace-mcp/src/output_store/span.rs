//! A range of a file as a stream that leaves the file's own position alone.

use std::io::{self, Read};

use cap_std::fs::{File, FileExt as _};

/// Reads the bytes `at..end`.
#[derive(Debug)]
pub(super) struct Span<'f> {
    file: &'f File,
    at: u64,
    end: u64,
}

impl<'f> Span<'f> {
    pub(super) fn new(file: &'f File, at: u64, end: u64) -> Self {
        Self { file, at, end }
    }

    /// The bytes of a ring of `length` whose oldest byte is at `start`, the oldest first.
    pub(super) fn ring(file: &'f File, start: u64, length: u64) -> impl Read + 'f {
        Self::new(file, start, length).chain(Self::new(file, 0, start))
    }
}

impl Read for Span<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = left.min(buffer.len());
        let read = self.file.read_at(buffer.get_mut(..room).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
