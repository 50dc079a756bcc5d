//! The same tools without a jail: the path is joined to the root and opened.
//!
//! It shows that the cases can fail: those named here do, every time. The others ask that something keeps
//! working, or send text that a plain open refuses, too. Nothing it touches is
//! more than a fixture's own outside, but for reading `/etc/passwd` and a few bytes of `/dev`.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use crate::cases::{self, Subject};
use crate::tools::{Answer, Args};

/// Bytes read of a file: some have no end.
const READ: u64 = 2 * 1024 * 1024;

/// A call that has not come back by then waits for something that never happens.
const PATIENCE: Duration = Duration::from_millis(3500);

/// How the naive tools write.
#[derive(Debug, Clone, Copy)]
enum Write {
    /// Over the old content.
    InPlace,
    /// To the name with `.tmp` behind it, and then by rename.
    Beside,
}

/// The cases that the tools fail whose resolver is a join.
const BREAK_BY_JOIN: &[&str] = &[
    "jail-glob-symlink-dir",
    "jail-glob-through-link",
    "jail-create-only-link",
    "jail-symlink-abs-read",
    "jail-symlink-rel-read",
    "jail-symlink-dir-read",
    "jail-symlink-dir-list",
    "jail-symlink-dangling-write",
    "jail-symlink-missing-deep-write",
    "jail-symlink-existing-write",
    "jail-symlink-replace",
    "jail-symlink-inside-abs",
    "jail-symlink-trailing-slash",
    "jail-symlink-trailing-slash-mkdir",
    "jail-symlink-parent",
    "jail-symlink-root",
    "jail-symlink-procfd",
    "jail-symlink-proc-cwd",
    "jail-hardlink-write",
    "jail-hardlink-replace",
    "jail-search-symlink-file",
    "jail-search-symlink-dir",
    "jail-dotdot-read",
    "jail-dotdot-deep",
    "jail-dotdot-write-missing-prefix",
    "jail-absolute-outside",
    "jail-prefix-sibling",
    "jail-prefix-sibling-write",
    "jail-abs-dotdot",
    "jail-proc-self-root",
    "jail-dev-stdin",
    "jail-no-oracle",
    "jail-search-path-dotdot",
    "jail-search-glob-dotdot",
    "jail-search-glob-abs",
    "jail-search-many-files",
    "jail-list-control-chars",
    "jail-protected-git-hooks",
    "jail-protected-git-config",
    "jail-protected-case",
    "jail-protected-missing",
    "jail-protected-nested",
    "jail-protected-via-symlink",
    "jail-protected-gitfile",
    "jail-fifo-read",
    "jail-fifo-search",
    "jail-fifo-write",
    "jail-socket-read",
    "jail-device-read",
    "jail-sparse-huge",
    "jail-write-readonly-file",
    "jail-write-enospc",
    "jail-replace-binary",
    "jail-race-dir-swap",
    "jail-race-write-swap",
    "jail-race-file-symlink",
    "jail-root-renamed",
];

/// The cases that a join with a temporary file of a known name fails.
const BREAK_BY_TEMP: &[&str] = &[
    "jail-own-temp-name",
    "jail-own-temp-name-edit",
    "jail-symlink-write-keeps-link",
    "jail-write-mode-kept",
    "jail-write-owner-kept",
    "jail-write-xattr-kept",
    "jail-write-no-temp-after-fail",
    "jail-write-temp-not-guessable",
];

fn check(write: Write, breaks: &[&str]) {
    let all = cases::all();
    let mut held = Vec::new();
    for id in breaks {
        let case = all.iter().find(|case| case.body.id == *id).expect("a case of that name");
        if !cases::is_runnable(&case.body) {
            continue;
        }
        let open = |root: &Path| unjailed(root, write);
        let wrong = cases::run(&case.body, &open, 1).expect("the naive tools are all there");
        if wrong.is_empty() {
            held.push(id);
        }
    }
    assert!(held.is_empty(), "these cases hold for naive tools, so they prove nothing: {held:?}");
}

#[test]
fn cases_fail_for_a_path_that_is_joined_and_opened() {
    check(Write::InPlace, BREAK_BY_JOIN);
}

#[test]
fn cases_fail_for_a_temporary_file_that_is_guessed() {
    check(Write::Beside, BREAK_BY_TEMP);
}

/// Naive tools on `root`, each call on a thread of its own, since some never come back by themselves.
fn unjailed(root: &Path, write: Write) -> Box<Subject> {
    let root = root.to_owned();
    Box::new(move |tool, args| {
        let (sender, receiver) = mpsc::channel();
        let (naive, tool, args) =
            (Naive { root: root.clone(), write }, tool.to_owned(), args.clone());
        let caller = std::thread::spawn(move || sender.send(naive.call(&tool, &args)));
        if let Ok(answer) = receiver.recv_timeout(PATIENCE) {
            caller.join().unwrap().unwrap();
            return answer;
        }
        // It waits for the other end of a FIFO: be that, so that no thread is left.
        let other_ends = open_fifos(&root);
        let answer = receiver.recv_timeout(PATIENCE).expect("nothing else blocks");
        drop(other_ends);
        caller.join().unwrap().unwrap();
        answer
    })
}

fn open_fifos(root: &Path) -> Vec<std::os::fd::OwnedFd> {
    let mut ends = Vec::new();
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let stat = rustix::fs::lstat(&path).unwrap();
        if FileType::from_raw_mode(stat.st_mode) == FileType::Fifo {
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let reader = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            // Whichever end is missing; a writer is gone at once, so that a reader sees the end.
            drop(rustix::fs::openat(CWD, &path, flags, Mode::empty()));
            ends.extend(rustix::fs::openat(CWD, &path, reader, Mode::empty()));
        }
    }
    ends
}

struct Naive {
    root: PathBuf,
    write: Write,
}

impl Naive {
    /// `None`: not a tool of files.
    fn call(&self, tool: &str, args: &Args) -> Option<Answer> {
        let result = match tool {
            "read_file" => self.read_file(args),
            "write_file" => self.write_file(args),
            "list_directory" => self.list_directory(args),
            "search_workspace" => self.search_workspace(args),
            "search_content" => self.search_content(args),
            "search_and_replace" => self.search_and_replace(args),
            _ => return None,
        };
        Some(result.unwrap_or_else(|error| Answer {
            text: error.to_string(),
            error_kind: Some(kind(&error)),
            ..Answer::default()
        }))
    }

    fn read_file(&self, args: &Args) -> io::Result<Answer> {
        let bytes = read(&self.root.join(&args.filepath))?;
        Ok(text(String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn write_file(&self, args: &Args) -> io::Result<Answer> {
        let path = self.root.join(&args.filepath);
        if args.create_only.unwrap_or(true) && path.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        self.put(&path, &args.content)?;
        Ok(text(format!("Successfully wrote {} bytes", args.content.len())))
    }

    fn put(&self, path: &Path, content: &str) -> io::Result<()> {
        match self.write {
            Write::InPlace => std::fs::write(path, content),
            Write::Beside => {
                let mut temp = path.as_os_str().to_owned();
                temp.push(".tmp");
                std::fs::write(&temp, content)?;
                std::fs::rename(&temp, path)
            }
        }
    }

    fn list_directory(&self, args: &Args) -> io::Result<Answer> {
        let entries = std::fs::read_dir(self.root.join(args.path()))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(Answer { text: entries.join("\n"), entries, ..Answer::default() })
    }

    fn search_workspace(&self, args: &Args) -> io::Result<Answer> {
        let glob = glob(&args.pattern)?;
        let mut found = Vec::new();
        // A pattern's literal start is a directory to look in.
        let literal = args.pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
        let start = literal.rsplit_once('/').map_or("", |(start, _)| start);
        walk(&self.root.join(start), 0, &mut |path| {
            let name = path.strip_prefix(&self.root).unwrap_or(path);
            if glob.is_match(name) || glob.is_match(path) {
                found.push(name.to_string_lossy().into_owned());
            }
        });
        Ok(Answer { text: found.join("\n"), entries: found, ..Answer::default() })
    }

    fn search_content(&self, args: &Args) -> io::Result<Answer> {
        let matcher = RegexMatcher::new_line_matcher(&args.pattern).map_err(io::Error::other)?;
        let glob = args.glob.as_deref().map(glob).transpose()?;
        let mut lines = Vec::new();
        walk(&self.root.join(args.path()), 0, &mut |path| {
            let name = path.strip_prefix(&self.root).unwrap_or(path);
            if glob.as_ref().is_some_and(|glob| !glob.is_match(name)) {
                return;
            }
            let Ok(bytes) = read(path) else { return };
            for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
                if matcher.is_match(line).unwrap_or(false) {
                    let line = String::from_utf8_lossy(line);
                    lines.push(format!("{}:{}:{line}", name.display(), index + 1));
                }
            }
        });
        Ok(text(lines.join("\n")))
    }

    fn search_and_replace(&self, args: &Args) -> io::Result<Answer> {
        let path = self.root.join(&args.filepath);
        let mut content = String::from_utf8_lossy(&read(&path)?).into_owned();
        for edit in &args.edits {
            content = content.replacen(&edit.old, &edit.new, 1);
        }
        self.put(&path, &content)?;
        Ok(text(content))
    }
}

fn text(text: String) -> Answer {
    Answer { text, ..Answer::default() }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(READ).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn glob(pattern: &str) -> io::Result<GlobMatcher> {
    let any_depth = if pattern.contains('/') { "" } else { "**/" };
    let glob = GlobBuilder::new(&format!("{any_depth}{pattern}")).literal_separator(true).build();
    Ok(glob.map_err(io::Error::other)?.compile_matcher())
}

/// Every file below `place`; links are followed, to a depth at which a loop is one.
fn walk(place: &Path, depth: usize, found: &mut dyn FnMut(&Path)) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if !path.is_dir() {
            found(&path);
        } else if depth < 20 {
            walk(&path, depth + 1, found);
        }
    }
}

fn kind(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "not_found",
        io::ErrorKind::NotADirectory => "not_a_directory",
        io::ErrorKind::IsADirectory => "is_directory",
        io::ErrorKind::AlreadyExists => "already_exists",
        io::ErrorKind::PermissionDenied => "permission_denied",
        io::ErrorKind::InvalidFilename => "name_too_long",
        io::ErrorKind::InvalidInput => "invalid_path",
        io::ErrorKind::StorageFull => "no_space",
        _ if error.raw_os_error() == Some(libc::ELOOP) => "symlink_loop",
        _ => "internal",
    }
}
