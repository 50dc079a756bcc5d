//! Files of a container, through its own shell.
//!
//! Not through the engine's archive requests: the place is memory-backed, and Docker's archive of a container holds no
//! tmpfs (<https://docs.docker.com/reference/cli/docker/container/cp/>). Podman's does, and follows links out of the
//! place. Commands see the place on both, as code in it does. Invariants: what a container answers is bounded in bytes, entries and time; a path that steps out of
//! the place is refused, with the words of the workspace's files. Non-goal: to hide a container's own files from its
//! caller, who may run anything there.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use container_sandbox::Command;
use proc_runner::Cancel;
use workspace_jail::{EntryKind, Error};

use super::scripts::{self, MORE, MOST_ACCOUNT, MOST_ENTRIES, WORK};
use super::{AUXILIARY, Contained, LOOK, block_on, lost};
use crate::reply::{ErrorKind, Failure};
use crate::seen::Seen;

/// Bytes of a file that is fetched.
pub const MOST_FETCHED: u64 = 64 << 20;
/// Bytes of text in one argument, and how many arguments of that size a command gets: Linux takes 128 KiB and, with the
/// usual stack, 2 MiB.
const PIECE: usize = 96 * 1024;
const PIECES: usize = 8;
/// How long a file waits for code that is running in the container.
const WAITING: Duration = Duration::from_secs(45);
/// Names of a container's place, beside its own.
const ALIASES: &[&str] = &[WORK, "/workspace"];

/// What a directory of a container holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries {
    /// In the order of the container's shell.
    pub entries: Vec<(EntryKind, OsString)>,
    /// Whether there are more than it would tell.
    pub more: bool,
}

impl Contained {
    /// Lists a directory.
    ///
    /// # Errors
    ///
    /// The refusals of [`Jail::list`](workspace_jail::Jail::list), [`ErrorKind::Busy`] while code runs,
    /// [`ErrorKind::EngineUnavailable`] when the engine fails or the container has ended.
    ///
    /// # Security
    ///
    /// Names are the container's: any bytes but `/` and NUL.
    pub fn list(&self, path: &str, cancel: &Cancel) -> Result<Entries, Failure> {
        let Place { dir, name } = Place::parse(path)?;
        let (code, told) = self.tell(scripts::LIST, [dir, name], MOST_LISTING, cancel)?;
        if code != 0 && code != MORE {
            return Err(refused(code, path));
        }
        let names = told.split(|byte| *byte == 0);
        let entries = names.filter_map(|entry| {
            let (kind, name) = entry.split_first()?;
            let kind = match kind {
                b'D' => EntryKind::Directory,
                b'F' => EntryKind::File,
                b'L' => EntryKind::Link,
                _ => return None,
            };
            let is_name = !name.is_empty() && !name.contains(&b'/');
            is_name.then(|| (kind, OsString::from_vec(name.to_vec())))
        });
        let mut entries: Vec<_> = entries.collect();
        entries.dedup_by(|one, other| one.1 == other.1);
        Ok(Entries { entries, more: code == MORE })
    }

    /// Copies a file's bytes to `sink`.
    ///
    /// # Errors
    ///
    /// The refusals of [`Jail::read`](workspace_jail::Jail::read), [`ErrorKind::TooLarge`] over [`MOST_FETCHED`], and as
    /// [`Contained::list`].
    ///
    /// # Security
    ///
    /// A file that is swapped meanwhile costs time and bytes within the bounds; it is the container's either way.
    pub fn fetch(
        &self,
        path: &str,
        sink: &mut (impl Write + Send),
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        let Place { dir, name } = Place::parse(path)?;
        let most = MOST_FETCHED + 1;
        let (mut size, mut broken) = (0, None);
        let code =
            self.script(scripts::FETCH, [dir, name, most.to_string()], Some(cancel), |piece| {
                size += piece.len() as u64;
                if size < most && broken.is_none() {
                    broken = sink.write_all(piece).err();
                }
            })?;
        if code != 0 {
            return Err(refused(code, path));
        }
        if size >= most {
            return Err(Error::TooLarge { path: path.to_owned(), size, max: MOST_FETCHED }.into());
        }
        match broken {
            None => Ok(()),
            Some(source) => Err(Error::Io { path: path.to_owned(), source }.into()),
        }
    }

    /// Whether a file could be written.
    ///
    /// # Errors
    ///
    /// The refusals of [`Jail::check_write`](workspace_jail::Jail::check_write) but for the size, and as
    /// [`Contained::list`].
    pub fn check_write(&self, path: &str, create: bool, cancel: &Cancel) -> Result<(), Failure> {
        let Place { dir, name } = Place::parse(path)?;
        let create = if create { "create" } else { "" };
        let code =
            self.script(scripts::CHECK, [dir, name, create.to_owned()], Some(cancel), |_| {})?;
        if code == 0 { Ok(()) } else { Err(refused(code, path)) }
    }

    /// Writes a whole file, missing directories with it; whether it is new, and the place's files afterwards. The bytes
    /// are uploaded beside it first, and then get its name at once.
    ///
    /// # Errors
    ///
    /// As [`Contained::check_write`]; nothing is written then.
    pub fn store(
        &self,
        path: &str,
        content: &str,
        create: bool,
        cancel: &Cancel,
    ) -> Result<(bool, Seen), Failure> {
        let Place { dir, name } = Place::parse(path)?;
        let mut random = [0; 8];
        crate::output_store::fill_random(&mut random)
            .map_err(|error| Failure::new(ErrorKind::Internal, format!("no name: {error}")))?;
        let upload = format!(".upload-{:016x}", u64::from_le_bytes(random));
        let stored = self.upload(&upload, path, content, cancel).and_then(|rest| {
            let create = if create { "create" } else { "" }.to_owned();
            let arguments = [dir, name, create, upload.clone(), content.len().to_string()];
            let arguments = arguments.into_iter().chain(rest);
            let (code, told) = self.tell(scripts::COMMIT, arguments, MOST_ACCOUNT, cancel)?;
            match (code, told.split_first()) {
                (0, Some((done, account))) => Ok((*done == b'C', Seen::parse(account))),
                _ => Err(refused(code, path)),
            }
        });
        if stored.is_err() {
            // Best effort: where the engine failed there is nothing to clean.
            drop(self.script(scripts::GIVE_UP, [upload], None, |_| {}));
        }
        stored
    }

    /// Uploads what one command cannot take; the pieces that are left for the last.
    fn upload(
        &self,
        upload: &str,
        path: &str,
        content: &str,
        cancel: &Cancel,
    ) -> Result<Vec<String>, Failure> {
        let mut rest = content;
        loop {
            let mut pieces = Vec::new();
            while pieces.len() < PIECES && !rest.is_empty() {
                let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE.min(rest.len())));
                rest = after;
                pieces.push(escaped(piece));
            }
            if rest.is_empty() {
                return Ok(pieces);
            }
            let arguments = std::iter::once(upload.to_owned()).chain(pieces);
            let code = self.script(scripts::ADD, arguments, Some(cancel), |_| {})?;
            if code != 0 {
                return Err(refused(code, path));
            }
        }
    }

    /// The place's files as they are.
    ///
    /// # Errors
    ///
    /// As [`Contained::list`].
    pub fn seen(&self, cancel: &Cancel) -> Result<Seen, Failure> {
        let (_, told) = self.tell(scripts::ACCOUNT, [], MOST_ACCOUNT, cancel)?;
        Ok(Seen::parse(&told))
    }

    /// Runs a script; its exit code, and the first `most` bytes of what it says.
    fn tell(
        &self,
        script: &str,
        arguments: impl IntoIterator<Item = String>,
        most: usize,
        cancel: &Cancel,
    ) -> Result<(i64, Vec<u8>), Failure> {
        let mut told = Vec::new();
        let code = self.script(script, arguments, Some(cancel), |piece| {
            let room = most.saturating_sub(told.len()).min(piece.len());
            told.extend_from_slice(&piece[..room]);
        })?;
        Ok((code, told))
    }

    /// Runs a script to its end, or gives it up.
    fn script(
        &self,
        script: &str,
        arguments: impl IntoIterator<Item = String>,
        cancel: Option<&Cancel>,
        take: impl FnMut(&[u8]) + Send,
    ) -> Result<i64, Failure> {
        let words = ["sh", "-c", script, "sh"].map(str::to_owned).into_iter().chain(arguments);
        let command = Command::new(words, AUXILIARY).keep(0, 0);
        let outcome = block_on(async {
            let mut run = std::pin::pin!(self.container.exec_with(&command, take));
            let given_up = tokio::time::Instant::now() + WAITING;
            loop {
                // A future that is given up leaves what it started to the next command, which ends it first.
                tokio::select! {
                    outcome = &mut run => return outcome.map_err(|error| lost(&error)),
                    () = tokio::time::sleep(LOOK) => {}
                }
                if cancel.is_some_and(Cancel::is_cancelled) {
                    return Err(Failure::new(ErrorKind::Cancelled, "[cancelled]"));
                }
                if tokio::time::Instant::now() >= given_up {
                    return Err(Failure::new(
                        ErrorKind::Busy,
                        "code is running in this sandbox; try again when it has ended",
                    ));
                }
            }
        })?;
        outcome.exit_code.ok_or_else(|| {
            let text = if outcome.container_ended {
                "the container has ended; stop this sandbox and open another".to_owned()
            } else {
                format!("the sandbox did not answer within {} s; try again", AUXILIARY.as_secs())
            };
            let kind = if outcome.container_ended {
                ErrorKind::EngineUnavailable
            } else {
                ErrorKind::Busy
            };
            Failure::new(kind, text)
        })
    }
}

/// Bytes of a listing: as many entries of the longest names.
const MOST_LISTING: usize = MOST_ENTRIES * 260;

fn refused(code: i64, path: &str) -> Failure {
    scripts::refusal(code, path).map_or_else(
        || {
            Failure::new(
                ErrorKind::Internal,
                format!(
                    "The sandbox's own programs failed (exit code {code}); files of a sandbox need an image with sh, head, \
                     find, stat and the like"
                ),
            )
        },
        Failure::from,
    )
}

/// Text as `printf %b` gives it back.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('\0', r"\0000")
}

/// Where a file is meant to be, before any link is looked at.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// `.`, or `./` and names.
    dir: String,
    /// A name, or `.` where the path means a directory.
    name: String,
}

impl Place {
    fn parse(path: &str) -> Result<Self, Error> {
        if path.is_empty() || path.contains('\0') {
            let reason = if path.is_empty() { "it is empty" } else { "it holds a NUL" };
            return Err(Error::InvalidPath { path: path.to_owned(), reason });
        }
        let outside = || Error::OutsideWorkspace { path: path.to_owned() };
        if path.len() > 4095 || path.split('/').any(|name| name.len() > 255) {
            return Err(Error::NameTooLong { path: path.to_owned() });
        }
        let relative = if path.starts_with('/') {
            let below = |alias: &&str| {
                path.strip_prefix(alias).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            ALIASES.iter().find_map(below).ok_or_else(outside)?
        } else {
            path
        };
        let mut depth = 0_usize;
        let mut names = Vec::new();
        for name in relative.split('/').filter(|name| !matches!(*name, "" | ".")) {
            depth = match name {
                ".." => depth.checked_sub(1).ok_or_else(outside)?,
                _ => depth + 1,
            };
            names.push(name);
        }
        let means_directory = relative.ends_with('/') || relative.ends_with("/.");
        let name = match names.last() {
            Some(name) if *name != ".." && !means_directory => names.pop(),
            _ => None,
        };
        let dir = std::iter::once(".").chain(names).collect::<Vec<_>>().join("/");
        Ok(Self { dir, name: name.unwrap_or(".").to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let got = match Place::parse(path) {
            Ok(Place { dir, name }) => format!("{dir} {name}"),
            Err(error) => Failure::from(error).kind().as_str().to_owned(),
        };
        assert_eq!(got, expected, "{path:?}");
    }

    #[test]
    fn paths_are_below_the_place_or_refused() {
        check("a", ". a");
        check("-a/b c", "./-a b c");
        check("./a//b/../c", "./a/b/.. c");
        check("/work/a", ". a");
        check("/workspace", ". .");
        check("a/", "./a .");
        check("a/..", "./a/.. .");
        check("..", "outside_workspace");
        check("../work/a", "outside_workspace");
        check("a/../../work/a", "outside_workspace");
        check("/worker/a", "outside_workspace");
        check("/etc/passwd", "outside_workspace");
        check("", "invalid_path");
        check("a\0b", "invalid_path");
        check(&"x".repeat(256), "name_too_long");
    }

    #[test]
    fn text_survives_the_way_through_printf() {
        assert_eq!(escaped("a\\n\0 7é"), "a\\\\n\\0000 7é");
    }
}
