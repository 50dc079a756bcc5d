//! The exact bytes of outputs that were not shown whole, so that no omission is a loss.
//!
//! A recording takes every byte of a command as it arrives. Small ones stay in memory; larger ones go to
//! a file of the state directory, capped: beyond the cap the first and the last half are kept, and whoever
//! reads the output back is told what is missing. Only outputs that an answer refers to are kept.
//! Invariants: an id exists only once its bytes are on disk; an id of one workspace means nothing in
//! another; old outputs go as whole entries.

mod recording;
mod stored;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};

pub use self::recording::Recording;
pub use self::stored::{Line, Stored};

/// The most bytes that all stored outputs of one workspace may take: 4 GiB.
const QUOTA_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// The most outputs kept of one workspace.
const QUOTA_ENTRIES: usize = 500;
/// Older outputs are dropped.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);

/// What is known of a stored output beside its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    total_bytes: u64,
    total_lines: u64,
    /// Bytes kept of the beginning.
    head_bytes: u64,
    /// Bytes kept of the end, in a ring that begins at `tail_start`.
    tail_bytes: u64,
    tail_start: u64,
    /// Number of the line in which the tail begins.
    tail_line: u64,
}

impl Manifest {
    fn dropped_bytes(&self) -> u64 {
        self.total_bytes - self.head_bytes - self.tail_bytes
    }
}

/// The stored outputs of one workspace.
#[derive(Debug)]
pub struct OutputStore {
    dir: Option<Dir>,
    max_bytes: u64,
}

impl OutputStore {
    /// A store in `dir`, which belongs to one workspace; without one nothing is kept beyond memory.
    pub fn new(dir: Option<Dir>, max_bytes: u64) -> Self {
        Self { dir, max_bytes }
    }

    /// Whether an omission can be made good from here.
    pub fn is_available(&self) -> bool {
        self.dir.is_some()
    }

    /// Begins to record one output.
    ///
    /// # Errors
    ///
    /// When the system gives no random bytes for the id, or the store's directory cannot be used.
    pub fn begin(&self) -> io::Result<Recording> {
        let mut random = [0; 8];
        fill_random(&mut random)?;
        let id = format!("{:012x}", u64::from_le_bytes(random) >> 16);
        let dir = self.dir.as_ref().map(Dir::try_clone).transpose()?;
        Ok(Recording::new(dir, id, self.max_bytes))
    }

    /// Opens the output `id`; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When the stored files are there but cannot be read.
    ///
    /// # Security
    ///
    /// `id` comes from a model. It is used as a name only when it has the form of one of ours.
    pub fn open(&self, id: &str) -> io::Result<Option<Stored>> {
        let is_ours = id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        match &self.dir {
            Some(dir) if is_ours => Stored::open(dir, id),
            _ => Ok(None),
        }
    }

    /// The ids and kept bytes of at most `limit` outputs, the newest first.
    ///
    /// # Errors
    ///
    /// When the store's directory cannot be read.
    pub fn newest(&self, limit: usize) -> io::Result<Vec<(String, u64)>> {
        let Some(dir) = &self.dir else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
                continue;
            };
            // What was swept meanwhile is not there any more.
            let Ok(meta) = entry.metadata() else { continue };
            found.push((meta.modified()?.into_std(), id.to_owned()));
        }
        found.sort_by(|one, other| other.cmp(one));
        found.truncate(limit);
        let sized = found.into_iter().filter_map(|(_, id)| {
            let stored = self.open(&id).ok().flatten()?;
            Some((id, stored.kept_bytes()))
        });
        Ok(sized.collect())
    }

    /// Drops the outputs that are too old or over the quota, oldest first and each as a whole.
    pub fn sweep(&self) {
        let Some(dir) = &self.dir else { return };
        if let Err(error) = sweep(dir, SystemTime::now()) {
            tracing::warn!(%error, "stored outputs not swept");
        }
    }
}

/// The files of one output.
#[derive(Default)]
struct Files {
    modified: Option<SystemTime>,
    bytes: u64,
    names: Vec<OsString>,
}

fn sweep(dir: &Dir, now: SystemTime) -> io::Result<()> {
    let mut outputs: BTreeMap<OsString, Files> = BTreeMap::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // Another server of the same workspace swept it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let name = entry.file_name();
        let id = Path::new(&name).file_stem().unwrap_or(&name).to_owned();
        let files = outputs.entry(id).or_default();
        files.modified = files.modified.max(Some(meta.modified()?.into_std()));
        files.bytes += meta.len();
        files.names.push(name);
    }
    let mut bytes: u64 = outputs.values().map(|files| files.bytes).sum();
    let mut count = outputs.len();
    let mut oldest_first: Vec<Files> = outputs.into_values().collect();
    oldest_first.sort_by_key(|files| files.modified);
    for files in oldest_first {
        let age = files.modified.and_then(|modified| now.duration_since(modified).ok());
        let is_old = age.is_some_and(|age| age > MAX_AGE);
        if !is_old && bytes <= QUOTA_BYTES && count <= QUOTA_ENTRIES {
            break;
        }
        // The manifest first: without it the output is gone, and never half there.
        let (manifest, rest): (Vec<_>, Vec<_>) = files
            .names
            .iter()
            .partition(|name| Path::new(name).extension() == Some("json".as_ref()));
        for name in manifest.into_iter().chain(rest) {
            match dir.remove_file(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        bytes -= files.bytes;
        count -= 1;
    }
    Ok(())
}

/// Fills a buffer from the system's randomness.
pub(crate) fn fill_random(buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;

    fn store(max_bytes: u64) -> (tempfile::TempDir, OutputStore) {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        (place, OutputStore::new(Some(dir), max_bytes))
    }

    fn record(store: &OutputStore, pieces: &[&[u8]]) -> String {
        let mut recording = store.begin().unwrap();
        for piece in pieces {
            recording.push(piece).unwrap();
        }
        recording.store().unwrap();
        recording.keep()
    }

    fn text(stored: &mut Stored, offset: u64, limit: u64) -> Vec<(u64, String)> {
        stored
            .lines(offset, limit, u64::MAX)
            .unwrap()
            .into_iter()
            .map(|line| (line.number, String::from_utf8(line.bytes).unwrap()))
            .collect()
    }

    #[test]
    fn every_byte_comes_back_from_memory_and_from_file() {
        let (_place, store) = store(1 << 30);
        for repeat in [1, 200_000] {
            let body = "one\ntwo\r\nlast".repeat(repeat);
            let id = record(&store, &body.as_bytes().chunks(7000).collect::<Vec<_>>());
            let mut stored = store.open(&id).unwrap().unwrap();
            assert_eq!(stored.total_lines(), body.split_inclusive('\n').count() as u64);
            let all: Vec<u8> = stored
                .lines(0, u64::MAX, u64::MAX)
                .unwrap()
                .into_iter()
                .flat_map(|line| line.bytes)
                .collect();
            assert!(all == body.as_bytes(), "{repeat}");
        }
    }

    #[test]
    fn a_page_is_exact() {
        let (_place, store) = store(1 << 30);
        let id = record(&store, &[b"a\nb\nc\nd\n"]);
        let mut stored = store.open(&id).unwrap().unwrap();
        assert_eq!(text(&mut stored, 1, 2), [(1, "b\n".into()), (2, "c\n".into())]);
        assert_eq!(text(&mut stored, 4, 2), []);
    }

    #[test]
    fn beyond_the_cap_both_ends_stay_and_the_gap_is_told() {
        let (_place, store) = store(40);
        let lines: Vec<_> = (0..100).map(|number| format!("{number:03}\n")).collect();
        let body = lines.concat();
        let id = record(&store, &[&body.as_bytes()[..33], &body.as_bytes()[33..]]);
        let mut stored = store.open(&id).unwrap().unwrap();
        assert_eq!((stored.total_lines(), stored.dropped_bytes()), (100, 360));
        let lines = text(&mut stored, 0, u64::MAX);
        assert_eq!(lines.first(), Some(&(0, "000\n".into())));
        assert_eq!(lines.get(4), Some(&(4, "004\n".into())));
        assert_eq!(lines.get(5), Some(&(95, "095\n".into())));
        assert_eq!(lines.last(), Some(&(99, "099\n".into())));
    }

    #[test]
    fn an_id_that_is_not_ours_names_no_file() {
        let (place, store) = store(1000);
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("aaaaaaaaaaaa.head")).unwrap();
        for id in ["", "..", "../../etc/pw", "aaaaaaaaaaaa", "AAAA/AAAA/AA"] {
            assert!(matches!(store.open(id), Ok(None) | Err(_)), "{id}");
        }
    }

    #[test]
    fn what_is_not_kept_leaves_nothing() {
        let (place, store) = store(1 << 30);
        let mut recording = store.begin().unwrap();
        recording.push(&vec![b'x'; 3 << 20]).unwrap();
        recording.store().unwrap();
        drop(recording);
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        assert_eq!(dir.entries().unwrap().count(), 0);
    }

    #[test]
    fn old_entries_are_swept() {
        let (place, store) = store(1000);
        let id = record(&store, &[b"x\n"]);
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        sweep(&dir, SystemTime::now()).unwrap();
        assert!(store.open(&id).unwrap().is_some());
        sweep(&dir, SystemTime::now() + MAX_AGE + Duration::from_mins(1)).unwrap();
        assert!(store.open(&id).unwrap().is_none());
    }

    #[test]
    fn beyond_the_quota_the_oldest_go_and_each_as_a_whole() {
        let (place, store) = store(1000);
        let ids: Vec<_> = (0..QUOTA_ENTRIES + 2).map(|_| record(&store, &[b"x\n"])).collect();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        // The first two are made older than the others, by enough for any clock of files.
        for id in ids.iter().take(2) {
            for ending in ["head", "tail", "json"] {
                let file = dir.open(format!("{id}.{ending}")).unwrap().into_std();
                file.set_modified(SystemTime::now() - Duration::from_mins(1)).unwrap();
            }
        }
        store.sweep();
        let left: Vec<_> = dir.entries().unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left.len(), QUOTA_ENTRIES * 3);
        assert!(ids.iter().take(2).all(|id| store.open(id).unwrap().is_none()));
        assert!(ids.iter().skip(2).all(|id| store.open(id).unwrap().is_some()));
    }
}
