//! The exact bytes of outputs that were not shown whole, so that no omission is a loss.
//!
//! A recording takes every byte of a command as it arrives. Small ones stay in memory; larger ones go to
//! a file of the state directory, capped: beyond the cap the first and the last half are kept, and whoever
//! reads the output back is told what is missing. Only outputs that an answer refers to are kept, compressed, and what
//! is equal once. Invariants: an id exists only once its bytes are on disk; an id of one workspace means nothing in
//! another; old outputs go as whole entries.

mod packed;
mod recording;
mod span;
mod stored;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use cap_std::fs::{Dir, MetadataExt as _};
use serde::{Deserialize, Serialize};

use self::packed::Packed;
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
    /// Bytes kept of the end.
    tail_bytes: u64,
    /// Number of the line in which the tail begins.
    tail_line: u64,
    /// How they lie on disk; nothing while they are collected.
    packed: Option<Packed>,
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
    /// Bytes that no other output has a share in.
    bytes: u64,
    /// The file that may be shared.
    shared: Option<u64>,
    names: Vec<OsString>,
}

/// A file that equal outputs share.
struct Object {
    name: OsString,
    bytes: u64,
    /// Names it has, its own among them.
    links: u64,
}

fn sweep(dir: &Dir, now: SystemTime) -> io::Result<()> {
    let _lock = packed::locked(dir)?;
    let mut outputs: BTreeMap<OsString, Files> = BTreeMap::new();
    let mut objects: BTreeMap<u64, Object> = BTreeMap::new();
    for entry in dir.entries()? {
        let entry = entry?;
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // Another server of the same workspace swept it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let name = entry.file_name();
        let ending = Path::new(&name).extension().and_then(|ending| ending.to_str());
        let (bytes, links) = (meta.len(), meta.nlink());
        match ending {
            Some(packed::OBJECT) => {
                objects.insert(meta.ino(), Object { name, bytes, links });
                continue;
            }
            Some(_) if name == packed::LOCK => continue,
            _ => {}
        }
        let id = Path::new(&name).file_stem().unwrap_or(&name).to_owned();
        let files = outputs.entry(id).or_default();
        files.modified = files.modified.max(Some(meta.modified()?.into_std()));
        if ending == Some(packed::OWN) && links > 1 {
            files.shared = Some(meta.ino());
        } else {
            files.bytes += bytes;
        }
        files.names.push(name);
    }
    let own: u64 = outputs.values().map(|files| files.bytes).sum();
    let mut bytes = own + objects.values().map(|object| object.bytes).sum::<u64>();
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
            packed::ignoring_missing(dir.remove_file(name))?;
        }
        bytes -= files.bytes;
        count -= 1;
        if let Some(object) = files.shared.and_then(|inode| objects.get_mut(&inode)) {
            object.links -= 1;
            if object.links == 1 {
                bytes -= object.bytes;
            }
        }
    }
    for object in objects.values().filter(|object| object.links == 1) {
        packed::ignoring_missing(dir.remove_file(&object.name))?;
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

    fn names(place: &tempfile::TempDir) -> Vec<String> {
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let name = |entry: io::Result<cap_std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> =
            dir.entries().unwrap().map(|entry| name(entry).into_string().unwrap()).collect();
        names.sort();
        names
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
    fn what_is_equal_lies_on_disk_once_and_compressed() {
        let (place, store) = store(1 << 30);
        let body = "the same line again and again\n".repeat(10_000);
        let ids = [0, 1].map(|_| record(&store, &[body.as_bytes()]));
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let files = ids.each_ref().map(|id| dir.metadata(format!("{id}.zst")).unwrap());
        assert_eq!((files[0].ino(), files[0].nlink()), (files[1].ino(), 3));
        assert!(files[0].len() * 50 < body.len() as u64, "{}", files[0].len());
        let mut recording = store.begin().unwrap();
        recording.push(body.as_bytes()).unwrap();
        recording.store().unwrap();
        drop(recording);
        for id in ids {
            assert_eq!(store.open(&id).unwrap().unwrap().kept_bytes(), body.len() as u64);
        }
    }

    #[test]
    fn every_page_of_an_output_of_many_pieces_is_exact() {
        let (_place, store) = store(5 << 20);
        let line = |number: u64| {
            // One line in a thousand is longer than a piece, so that pieces begin within lines.
            let length = if number % 1000 == 999 { 1_200_000 } else { 700 };
            format!("{number}:{}\n", "x".repeat(length))
        };
        let lines: Vec<_> = (0..12_000).map(line).collect();
        let body = lines.concat();
        let id = record(&store, &body.as_bytes().chunks(70_000).collect::<Vec<_>>());
        let mut stored = store.open(&id).unwrap().unwrap();
        assert!(stored.dropped_bytes() > 0);
        assert_eq!(stored.total_lines(), 12_000);
        let number = |line: &Line| -> u64 {
            let text = String::from_utf8_lossy(&line.bytes);
            text.split(':').next().unwrap().parse().unwrap()
        };
        let all = stored.lines(0, u64::MAX, u64::MAX).unwrap();
        let gap = all.windows(2).position(|pair| pair[1].number != pair[0].number + 1).unwrap();
        for (index, line) in all.iter().enumerate() {
            // The line that the gap begins in has lost its end, the one it ends in its number.
            if index != gap + 1 {
                assert_eq!(number(line), line.number);
            }
        }
        for offset in (0..12_000).step_by(131) {
            let page = stored.lines(offset, 3, u64::MAX).unwrap();
            let expected: Vec<_> =
                all.iter().filter(|line| (offset..offset + 3).contains(&line.number)).collect();
            assert!(page.iter().eq(expected), "page at {offset}");
        }
        assert_eq!(text(&mut stored, 11_998, 9).len(), 2);
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
        assert_eq!(names(&place), [packed::LOCK]);
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
        let ids: Vec<_> = (0..QUOTA_ENTRIES + 2)
            .map(|number| record(&store, &[format!("{}\n", number / 2).as_bytes()]))
            .collect();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        // The first two are made older than the others, by enough for any clock of files.
        for id in ids.iter().take(2) {
            for ending in ["zst", "json"] {
                let file = dir.open(format!("{id}.{ending}")).unwrap().into_std();
                file.set_modified(SystemTime::now() - Duration::from_mins(1)).unwrap();
            }
        }
        store.sweep();
        // A manifest and a name each, and what every two of them share; the two that went shared theirs.
        assert_eq!(names(&place).len(), QUOTA_ENTRIES * 2 + QUOTA_ENTRIES / 2 + 1);
        assert!(ids.iter().take(2).all(|id| store.open(id).unwrap().is_none()));
        assert!(ids.iter().skip(2).all(|id| store.open(id).unwrap().is_some()));
    }
}
