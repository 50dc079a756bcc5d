//! Takes an output as it arrives: memory first, then a file for the head and a ring for the tail.

use std::io::{self, Seek as _, SeekFrom, Write as _};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};

use super::packed::{self, ignoring_missing};
use super::span::Span;
use super::{Manifest, Stored};

/// An output up to this size stays in memory until something refers to it: 1 MiB.
const IN_MEMORY: usize = 1024 * 1024;

/// One output on its way in; dropped without [`Recording::keep`], it leaves nothing behind.
#[derive(Debug)]
pub struct Recording {
    dir: Option<Dir>,
    id: String,
    /// The id again, which names the files it is collected in also when it was given away.
    collected: String,
    /// Bytes kept of each end.
    half: u64,
    total: u64,
    newlines: u64,
    ends_in_newline: bool,
    buffer: Vec<u8>,
    files: Option<Files>,
    /// Digest of what was stored.
    stored: Option<String>,
}

#[derive(Debug)]
struct Files {
    head: File,
    head_len: u64,
    tail: File,
    /// Bytes that ever went to the tail; its ring position is this modulo `half`.
    tail_len: u64,
}

impl Recording {
    pub(super) fn new(dir: Option<Dir>, id: String, max_bytes: u64) -> Self {
        Self {
            dir,
            collected: id.clone(),
            id,
            half: (max_bytes / 2).max(1),
            total: 0,
            newlines: 0,
            ends_in_newline: true,
            buffer: Vec::new(),
            files: None,
            stored: None,
        }
    }

    /// The id under which the output can be read once it is kept.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// When they cannot be written, a full disk above all.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(last) = bytes.last() else { return Ok(()) };
        self.total += bytes.len() as u64;
        self.newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.ends_in_newline = *last == b'\n';
        if self.dir.is_none() {
            return Ok(());
        }
        let room = IN_MEMORY.min(usize::try_from(self.half * 2).unwrap_or(IN_MEMORY));
        if self.files.is_none() && self.buffer.len() + bytes.len() <= room {
            self.buffer.extend_from_slice(bytes);
            return Ok(());
        }
        self.spill()?;
        self.write(bytes)
    }

    /// Moves what is in memory to files.
    fn spill(&mut self) -> io::Result<()> {
        if self.files.is_some() {
            return Ok(());
        }
        let Some(dir) = &self.dir else { return Ok(()) };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let head = dir.open_with(format!("{}.head", self.id), &options)?;
        let tail = dir.open_with(format!("{}.tail", self.id), &options)?;
        self.files = Some(Files { head, head_len: 0, tail, tail_len: 0 });
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let half = self.half;
        let Some(files) = &mut self.files else { return Ok(()) };
        let room = usize::try_from(half - files.head_len).unwrap_or(usize::MAX).min(bytes.len());
        let (first, mut rest) = bytes.split_at(room);
        files.head.write_all(first)?;
        files.head_len += first.len() as u64;
        while !rest.is_empty() {
            let position = files.tail_len % half;
            files.tail.seek(SeekFrom::Start(position))?;
            let room = usize::try_from(half - position).unwrap_or(usize::MAX).min(rest.len());
            let (piece, after) = rest.split_at(room);
            files.tail.write_all(piece)?;
            files.tail_len += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Whether an answer could leave anything out of it: below a kilobyte there is nothing to gain.
    pub fn is_worth_storing(&self) -> bool {
        self.total > 1024
    }

    /// Puts the whole on disk, so that an answer may refer to it. It goes again unless it is [kept](Self::keep).
    ///
    /// # Errors
    ///
    /// When it cannot be written; then nothing may refer to it, and nothing is left of it.
    pub fn store(&mut self) -> io::Result<()> {
        let mut manifest = self.manifest()?;
        let Some(dir) = &self.dir else { return Err(nowhere()) };
        // From here on there are files to clean up.
        self.stored = Some(String::new());
        let packed = match &self.files {
            None => packed::pack(dir, &self.id, &mut self.buffer.as_slice(), &mut io::empty())?,
            Some(files) => {
                let mut head = Span::new(&files.head, 0, files.head_len);
                let start = files.tail_start(self.half);
                let mut tail = Span::ring(&files.tail, start, manifest.tail_bytes);
                packed::pack(dir, &self.id, &mut head, &mut tail)?
            }
        };
        self.stored = Some(packed.digest.clone());
        manifest.packed = Some(packed);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = dir.open_with(format!("{}.json", self.id), &options)?;
        file.write_all(&serde_json::to_vec(&manifest)?)
    }

    /// The output so far, to be read while no more is pushed.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or read back.
    pub fn so_far(&mut self) -> io::Result<Stored> {
        self.spill()?;
        let manifest = self.manifest()?;
        let Some(files) = &self.files else { return Err(nowhere()) };
        let (head, tail) = (files.head.try_clone()?, files.tail.try_clone()?);
        Ok(Stored::growing(manifest, head, tail, files.tail_start(self.half)))
    }

    /// Describes what there is.
    fn manifest(&self) -> io::Result<Manifest> {
        let (head_bytes, tail_bytes, in_tail) = match &self.files {
            None => (self.buffer.len() as u64, 0, 0),
            Some(files) => {
                let tail_bytes = files.tail_len.min(self.half);
                let newlines = count_newlines(Span::new(&files.tail, 0, tail_bytes))?;
                (files.head_len, tail_bytes, newlines)
            }
        };
        Ok(Manifest {
            total_bytes: self.total,
            total_lines: self.newlines + u64::from(!self.ends_in_newline),
            head_bytes,
            tail_bytes,
            tail_line: self.newlines - in_tail,
            packed: None,
        })
    }

    /// Leaves a stored output where it is, and tells its id.
    pub fn keep(mut self) -> String {
        self.stored = None;
        std::mem::take(&mut self.id)
    }

    /// Removes the files in which the output was collected.
    fn remove_collected(&self, dir: &Dir) -> io::Result<()> {
        if self.files.is_some() {
            for ending in ["head", "tail"] {
                ignoring_missing(dir.remove_file(format!("{}.{ending}", self.collected)))?;
            }
        }
        Ok(())
    }
}

impl Files {
    /// Where in the file the ring of `half` bytes begins.
    fn tail_start(&self, half: u64) -> u64 {
        if self.tail_len > half { self.tail_len % half } else { 0 }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Some(dir) = &self.dir else { return };
        let removed = self.remove_collected(dir).and_then(|()| match &self.stored {
            Some(digest) => packed::remove(dir, &self.id, digest),
            None => Ok(()),
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "an output that nothing refers to stays until the next sweep");
        }
    }
}

fn nowhere() -> io::Error {
    io::Error::other("there is no place to keep outputs")
}

fn count_newlines(mut read: impl io::Read) -> io::Result<u64> {
    let mut buffer = vec![0; 64 * 1024];
    let mut count = 0;
    loop {
        let read = read.read(&mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else {
            return Ok(count);
        };
        count += memchr::memchr_iter(b'\n', piece).count() as u64;
    }
}
