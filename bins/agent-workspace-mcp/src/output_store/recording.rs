//! Takes an output as it arrives: memory first, then a file for the head and a ring for the tail.

use std::io::{self, Seek as _, SeekFrom, Write as _};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};

use super::{Manifest, Stored};

/// An output up to this size stays in memory until something refers to it: 1 MiB.
const IN_MEMORY: usize = 1024 * 1024;

/// One output on its way in; dropped without [`Recording::keep`], it leaves nothing behind.
#[derive(Debug)]
pub struct Recording {
    dir: Option<Dir>,
    id: String,
    /// Bytes kept of each end.
    half: u64,
    total: u64,
    newlines: u64,
    ends_in_newline: bool,
    buffer: Vec<u8>,
    files: Option<Files>,
    kept: bool,
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
            id,
            half: (max_bytes / 2).max(1),
            total: 0,
            newlines: 0,
            ends_in_newline: true,
            buffer: Vec::new(),
            files: None,
            kept: false,
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
        if self.files.is_none() && self.buffer.len() + bytes.len() <= IN_MEMORY {
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
        let manifest = self.manifest()?;
        let Some(dir) = &self.dir else { return Err(nowhere()) };
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
        let manifest = self.manifest()?;
        let Some(dir) = &self.dir else { return Err(nowhere()) };
        Stored::with(dir, &self.id, manifest)
    }

    /// Puts what there is into files, and describes it.
    fn manifest(&mut self) -> io::Result<Manifest> {
        self.spill()?;
        let Some(files) = &mut self.files else { return Err(nowhere()) };
        let tail_bytes = files.tail_len.min(self.half);
        let tail_start = if files.tail_len > self.half { files.tail_len % self.half } else { 0 };
        let total_lines = self.newlines + u64::from(!self.ends_in_newline);
        files.tail.seek(SeekFrom::Start(0))?;
        Ok(Manifest {
            total_bytes: self.total,
            total_lines,
            head_bytes: files.head_len,
            tail_bytes,
            tail_start,
            tail_line: self.newlines - count_newlines(&mut files.tail)?,
        })
    }

    /// Leaves a stored output where it is, and tells its id.
    pub fn keep(mut self) -> String {
        self.kept = true;
        std::mem::take(&mut self.id)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.kept || self.files.is_none() {
            return;
        }
        let Some(dir) = &self.dir else { return };
        for ending in ["head", "tail", "json"] {
            match dir.remove_file(format!("{}.{ending}", self.id)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, "an output that nothing refers to stays until the next sweep");
                }
                _ => {}
            }
        }
    }
}

fn nowhere() -> io::Error {
    io::Error::other("there is no place to keep outputs")
}

fn count_newlines(file: &mut File) -> io::Result<u64> {
    let mut buffer = vec![0; 64 * 1024];
    let mut count = 0;
    loop {
        let read = io::Read::read(file, &mut buffer)?;
        let Some(piece) = buffer.get(..read).filter(|piece| !piece.is_empty()) else {
            return Ok(count);
        };
        count += memchr::memchr_iter(b'\n', piece).count() as u64;
    }
}
