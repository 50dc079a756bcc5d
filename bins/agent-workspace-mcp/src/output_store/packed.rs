//! One output as it lies on disk: compressed in pieces, each of which can be read without those before it.
//!
//! The pieces follow each other in the file; their sizes and the lines they hold stand in the manifest. So a page
//! costs the pieces it lies in, wherever it lies. What is equal is kept once: the file is named by the digest of what
//! it holds, and each output that holds the same has a hard link to it. A file system without hard links costs the
//! sharing, nothing else.

use std::io::{self, Read, Seek as _, SeekFrom, Write as _};

use cap_std::fs::{Dir, File, MetadataExt as _, OpenOptions, OpenOptionsExt as _};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

/// Raw bytes of one piece: 1 MiB.
const PIECE: usize = 1024 * 1024;
/// The fastest of the levels that shrink text to a fifth.
const LEVEL: i32 = 1;
/// Ending of an output's own name for its file.
pub(super) const OWN: &str = "zst";
/// Ending of the name that is the digest.
pub(super) const OBJECT: &str = "obj";
/// Held while links are made and counted.
pub(super) const LOCK: &str = "store.lock";

/// One piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Piece {
    /// Bytes in the file.
    packed: u64,
    /// Bytes of the output.
    raw: u64,
    /// Newlines among them.
    newlines: u64,
}

/// Where an output lies, for its manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Packed {
    /// Digest of the content, of how it is cut and of the compressor.
    pub(super) digest: String,
    pieces: Vec<Piece>,
}

/// Compresses `head` and `tail` into the file of output `id`. No piece holds bytes of both.
pub(super) fn pack<'r>(
    dir: &Dir,
    id: &str,
    head: &'r mut dyn Read,
    tail: &'r mut dyn Read,
) -> io::Result<Packed> {
    let own = format!("{id}.{OWN}");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = dir.open_with(&own, &options)?;
    let mut hasher = sha2::Sha256::new();
    hasher.update(zstd::zstd_safe::version_number().to_le_bytes());
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    let mut pieces = Vec::new();
    let mut buffer = Vec::with_capacity(PIECE);
    for part in [head, tail] {
        loop {
            buffer.clear();
            Read::take(&mut *part, PIECE as u64).read_to_end(&mut buffer)?;
            if buffer.is_empty() {
                break;
            }
            hasher.update((buffer.len() as u64).to_le_bytes());
            hasher.update(&buffer);
            let packed = compressor.compress(&buffer)?;
            file.write_all(&packed)?;
            pieces.push(Piece {
                packed: packed.len() as u64,
                raw: buffer.len() as u64,
                newlines: memchr::memchr_iter(b'\n', &buffer).count() as u64,
            });
        }
    }
    let digest = workspace_jail::Sha256::from(<[u8; 32]>::from(hasher.finalize())).to_string();
    share(dir, &own, &digest)?;
    Ok(Packed { digest, pieces })
}

/// Makes `own` and what is equal to it one file.
fn share(dir: &Dir, own: &str, digest: &str) -> io::Result<()> {
    let object = format!("{digest}.{OBJECT}");
    let _lock = locked(dir)?;
    match dir.hard_link(own, dir, &object) {
        // The first of its kind, or no file system for links.
        Ok(()) => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Ok(()),
        Err(_) => {}
    }
    let beside = format!("{own}.new");
    if dir.hard_link(&object, dir, &beside).is_ok() {
        dir.rename(&beside, dir, own)?;
    }
    Ok(())
}

/// Removes what output `id` has on disk, and the shared file when it was the last that had it.
pub(super) fn remove(dir: &Dir, id: &str, digest: &str) -> io::Result<()> {
    let _lock = locked(dir)?;
    // The manifest first: without it the output is gone, and never half there.
    for ending in ["json", OWN] {
        ignoring_missing(dir.remove_file(format!("{id}.{ending}")))?;
    }
    let object = format!("{digest}.{OBJECT}");
    match dir.symlink_metadata(&object) {
        Ok(meta) if meta.nlink() == 1 => ignoring_missing(dir.remove_file(&object)),
        Ok(_) => Ok(()),
        Err(error) => ignoring_missing(Err(error)),
    }
}

/// Waits for the lock on links; it is let go with what is returned.
pub(super) fn locked(dir: &Dir) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let lock = dir.open_with(LOCK, &options)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

pub(super) fn ignoring_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Packed {
    /// Opens the bytes `from..to`, beginning at the last piece that begins before line `line` ends; with the number
    /// of newlines before what is read. `line` counts from the beginning of that range.
    pub(super) fn open(&self, file: File, from: u64, to: u64, line: u64) -> Unpacked<'_> {
        let mut unpacked =
            Unpacked { file, pieces: &[], at: 0, current: io::Cursor::default(), skipped: 0 };
        let (mut packed, mut raw, mut newlines) = (0, 0, 0);
        for (index, piece) in self.pieces.iter().enumerate() {
            let is_first = raw == from;
            // A piece may begin within a line: only one that a newline lies before begins early enough.
            if is_first || (raw > from && raw < to && newlines < line) {
                unpacked.pieces = self.pieces.get(index..).unwrap_or_default();
                unpacked.at = packed;
                unpacked.skipped = newlines;
            }
            packed += piece.packed;
            raw += piece.raw;
            if raw > from {
                newlines += piece.newlines;
            }
            if raw >= to {
                let last = index + 1;
                let first = self.pieces.len() - unpacked.pieces.len();
                unpacked.pieces = self.pieces.get(first..last).unwrap_or_default();
                break;
            }
        }
        if from == to {
            unpacked.pieces = &[];
        }
        unpacked
    }
}

/// Reads pieces one after the other; no more than one is in memory.
#[derive(Debug)]
pub(super) struct Unpacked<'a> {
    file: File,
    pieces: &'a [Piece],
    at: u64,
    current: io::Cursor<Vec<u8>>,
    /// Newlines before the first piece that is read.
    pub(super) skipped: u64,
}

impl Unpacked<'_> {
    fn next_piece(&mut self) -> io::Result<bool> {
        let Some((piece, rest)) = self.pieces.split_first() else { return Ok(false) };
        self.pieces = rest;
        self.file.seek(SeekFrom::Start(self.at))?;
        self.at += piece.packed;
        let mut packed = Vec::new();
        (&self.file).take(piece.packed).read_to_end(&mut packed)?;
        let most = usize::try_from(piece.raw).unwrap_or(PIECE).min(PIECE);
        self.current = io::Cursor::new(zstd::bulk::decompress(&packed, most)?);
        Ok(true)
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.current.read(buffer)?;
            if read > 0 || buffer.is_empty() || !self.next_piece()? {
                return Ok(read);
            }
        }
    }
}
