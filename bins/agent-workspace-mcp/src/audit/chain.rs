//! The chain through the audit log: each line names the digest of the line before it.
//!
//! A line that was altered no longer has the digest that the next one names; one that was removed leaves a gap in the
//! numbers. The last line is held by a file of its own, `audit.head`. Non-goal: someone who may write the whole
//! directory can make a new chain; whoever fears that keeps the head's digest elsewhere.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};
use serde::{Deserialize, Serialize};
use workspace_jail::Sha256;

use super::files;

/// The file that holds the last line's number and digest.
const HEAD: &str = "audit.head";
/// No line is longer.
const MAX_LINE: u64 = 256 * 1024;

/// A line's place in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// The line's number, from 1.
    pub seq: u64,
    /// Digest of the line before it, 64 zeros for the first.
    pub prev: String,
}

/// The digest of a line, without its newline.
pub(super) fn digest(line: &[u8]) -> String {
    Sha256::of(line).to_string()
}

/// The place of the next line, whose file is `current`.
pub(super) fn next(dir: &Dir, current: &mut File) -> io::Result<Link> {
    let last = last_line(current)?;
    let known = last.as_deref().and_then(|line| {
        let link: Link = serde_json::from_slice(line).ok()?;
        Some((link.seq, digest(line)))
    });
    let head = read_head(dir)?;
    // The head is written after its line: a server that was ended in between left it one behind. Where it is ahead,
    // lines are missing, and the next one must show that.
    let (seq, prev) = match (known, head) {
        (Some(known), Some(head)) if head.0 < known.0 => known,
        (_, Some(head)) => head,
        (Some(known), None) => known,
        (None, None) => (0, "0".repeat(64)),
    };
    Ok(Link { seq: seq + 1, prev })
}

/// Notes the last line.
pub(super) fn keep_head(dir: &Dir, seq: u64, digest: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let mut file = dir.open_with(HEAD, &options)?;
    // Always of one length, so that a later one covers an earlier one whole.
    file.write_all(format!("{seq:020} {digest}\n").as_bytes())
}

fn read_head(dir: &Dir) -> io::Result<Option<(u64, String)>> {
    let text = match dir.read_to_string(HEAD) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(None),
        Err(error) => return Err(error),
    };
    let parsed = text.trim_end().split_once(' ').and_then(|(seq, digest)| {
        let _: Sha256 = digest.parse().ok()?;
        Some((seq.parse().ok()?, digest.to_owned()))
    });
    Ok(parsed)
}

/// The last line, whole or not; read from the end in growing pieces.
fn last_line(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut piece = 4096;
    loop {
        let start = length.saturating_sub(piece);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        io::Read::take(&mut *file, length - start).read_to_end(&mut end)?;
        let lines = end.strip_suffix(b"\n").unwrap_or(&end);
        let newline = memchr::memrchr(b'\n', lines);
        if newline.is_some() || start == 0 || piece >= MAX_LINE {
            let line = lines.get(newline.map_or(0, |at| at + 1)..).unwrap_or_default();
            return Ok(Some(line.to_vec()).filter(|line| !line.is_empty()));
        }
        piece *= 8;
    }
}

/// What a check of the whole log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Lines that were looked at.
    pub lines: u64,
    /// Number of the first line that is still kept; those before it went by rotation.
    pub first: Option<u64>,
    /// Number of the last one.
    pub last: Option<u64>,
    /// What is not as it was written, in order.
    pub faults: Vec<Fault>,
}

/// One place where the log is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// The line in it, from 1.
    pub line: u64,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// Follows the chain through all files of the log in `dir`.
///
/// # Errors
///
/// When a file cannot be read.
pub fn verify(dir: &Dir) -> io::Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut before: Option<(u64, String)> = None;
    let mut place = (super::FILE.to_owned(), 0);
    for (name, file) in files(dir) {
        let mut lines = BufReader::new(file?);
        for number in 1.. {
            let mut line = Vec::new();
            if lines.by_ref().take(MAX_LINE * 4).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            place = (name.clone(), number);
            verdict.lines += 1;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            let mut fault = |what: String| {
                verdict.faults.push(Fault { file: name.clone(), line: number, what });
            };
            let Ok(found) = serde_json::from_slice::<Link>(line) else {
                fault("is no line of this log, or only a part of one".to_owned());
                continue;
            };
            match &before {
                Some((seq, _)) if found.seq != seq + 1 => {
                    fault(format!(
                        "line {} follows line {seq}: lines are missing or were added",
                        found.seq
                    ));
                }
                Some((seq, digest)) if found.prev != *digest => {
                    fault(format!("line {seq}, before this one, was altered"));
                }
                None if found.seq == 1 && found.prev.bytes().any(|byte| byte != b'0') => {
                    fault("the first line names one before it".to_owned());
                }
                _ => {}
            }
            verdict.first.get_or_insert(found.seq);
            verdict.last = Some(found.seq);
            before = Some((found.seq, digest(line)));
        }
    }
    let (file, line) = place;
    match (before, read_head(dir)?) {
        (None, None) => {}
        (_, None) => {
            let what =
                "audit.head is missing or unreadable: lines may be missing at the end".to_owned();
            verdict.faults.push(Fault { file, line, what });
        }
        (Some((seq, digest)), Some((head, known))) if seq == head && digest != known => {
            verdict.faults.push(Fault {
                file,
                line,
                what: "this last line was altered".to_owned(),
            });
        }
        (last, Some((head, _))) if last.as_ref().is_none_or(|(seq, _)| *seq < head) => {
            let what = format!("line {head} was the last one: lines are missing at the end");
            verdict.faults.push(Fault { file, line, what });
        }
        _ => {}
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;
    use serde_json::json;

    use super::super::{Audit, FILE};
    use super::*;

    fn log(lines: u64) -> (tempfile::TempDir, Dir) {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let audit = Audit::new(Some(dir.try_clone().unwrap()), None);
        for number in 0..lines {
            audit.start(&json!({ "n": number }));
        }
        (place, dir)
    }

    /// The faults after `change` was made to the lines of a log of five.
    fn check(change: impl FnOnce(&mut Vec<String>), expected: &[&str]) {
        let (_place, dir) = log(5);
        let text = dir.read_to_string(FILE).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        let text = lines.join("\n") + if lines.is_empty() { "" } else { "\n" };
        dir.write(FILE, text).unwrap();
        let found: Vec<_> =
            verify(&dir).unwrap().faults.iter().map(|fault| fault.what.clone()).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} / {expected}");
        }
    }

    #[test]
    fn an_untouched_log_is_whole() {
        check(|_| {}, &[]);
        let (_place, dir) = log(0);
        assert_eq!(verify(&dir).unwrap(), Verdict::default());
    }

    #[test]
    fn what_was_altered_removed_or_added_is_found() {
        check(
            |lines| lines[1] = lines[1].replace("\"n\":1", "\"n\":7"),
            &["line 2, before this one, was altered"],
        );
        check(|lines| drop(lines.remove(2)), &["line 4 follows line 2"]);
        check(|lines| drop(lines.remove(4)), &["line 5 was the last one"]);
        check(|lines| lines.truncate(0), &["line 5 was the last one"]);
        check(
            |lines| lines[4] = lines[4].replace("\"n\":4", "\"n\":9"),
            &["this last line was altered"],
        );
        check(
            |lines| lines.swap(1, 2),
            &["line 3 follows line 1", "line 2 follows line 3", "line 4 follows line 2"],
        );
        check(|lines| lines.insert(2, "forged".into()), &["no line of this log"]);
        check(|lines| lines.insert(2, lines[1].clone()), &["line 2 follows line 2"]);
    }

    #[test]
    fn what_is_missing_at_the_end_stays_found_when_the_log_goes_on() {
        let (_place, dir) = log(5);
        let text = dir.read_to_string(FILE).unwrap();
        let kept = text.lines().take(3).collect::<Vec<_>>().join("\n") + "\n";
        dir.write(FILE, kept).unwrap();
        Audit::new(Some(dir.try_clone().unwrap()), None).start(&json!({}));
        let verdict = verify(&dir).unwrap();
        assert_eq!(verdict.faults.len(), 1, "{verdict:?}");
        assert!(verdict.faults[0].what.contains("line 6 follows line 3"), "{verdict:?}");
    }

    #[test]
    fn a_head_that_is_gone_or_one_behind_is_told_apart() {
        let (_place, dir) = log(5);
        let head = dir.read(HEAD).unwrap();
        dir.remove_file(HEAD).unwrap();
        assert_eq!(verify(&dir).unwrap().faults.len(), 1);
        // As a server leaves it that is ended between the line and the head.
        dir.write(HEAD, &head).unwrap();
        let audit = Audit::new(Some(dir.try_clone().unwrap()), None);
        audit.start(&json!({}));
        dir.write(HEAD, head).unwrap();
        assert_eq!(verify(&dir).unwrap().faults, []);
        audit.start(&json!({}));
        assert_eq!(verify(&dir).unwrap().faults, []);
        assert_eq!(verify(&dir).unwrap().last, Some(7));
    }

    #[test]
    fn a_line_that_was_cut_off_does_not_take_the_next_one_with_it() {
        let (_place, dir) = log(2);
        let mut text = dir.read_to_string(FILE).unwrap();
        text.push_str("{\"seq\":3,\"pre");
        dir.write(FILE, text).unwrap();
        Audit::new(Some(dir.try_clone().unwrap()), None).start(&json!({"n": "after"}));
        let verdict = verify(&dir).unwrap();
        assert_eq!(verdict.faults.len(), 1, "{verdict:?}");
        assert!(verdict.faults[0].what.contains("only a part"), "{verdict:?}");
        assert!(dir.read_to_string(FILE).unwrap().ends_with("\"after\"}\n"));
    }

    #[test]
    fn the_chain_goes_through_rotation() {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        let audit = Audit::new(Some(dir.try_clone().unwrap()), None);
        let big = "x".repeat(200 * 1024);
        for _ in 0..100 {
            audit.start(&json!({ "x": big }));
        }
        assert!(dir.exists("audit.1.jsonl"));
        let verdict = verify(&dir).unwrap();
        assert_eq!((verdict.faults, verdict.lines), (vec![], 100));
    }
}
