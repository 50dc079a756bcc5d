//! Searching file contents by regular expression.
//!
//! The engine is linear in the text ([`grep_regex`]), files are read through a buffer, and of what is
//! found only the first lines in path order are kept. All matching lines are counted. One thread walks
//! the tree, all processors search (`grep/spread.rs`); the answer does not depend on who was quicker.

mod lines;
mod search;
mod spread;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use self::search::Search;
use crate::error::{Error, Fault, Result, settle};
use crate::glob::Glob;
use crate::jail::Jail;
use crate::read;
use crate::resolve::{End, LastLink, Resolved, resolve};
use crate::walk::Walk;

/// Bytes of a pattern that an error repeats.
const MAX_REPEATED: usize = 200;

/// How to search; everything has a default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct GrepOptions {
    /// Only files whose path matches this pattern, see [`Jail::find`].
    pub glob: Option<String>,
    /// Lines told before and after each match.
    pub context: usize,
    /// Letter case does not count.
    pub ignore_case: bool,
    /// Also search what `.gitignore` files and [`NOISE`](crate::NOISE) leave out.
    pub include_ignored: bool,
    /// Matching lines told at most.
    pub limit: usize,
}

impl Default for GrepOptions {
    /// All files that are not ignored, no context, letter case counts, 50 lines.
    fn default() -> Self {
        Self { glob: None, context: 0, ignore_case: false, include_ignored: false, limit: 50 }
    }
}

impl GrepOptions {
    /// Searches only files whose path matches `glob`.
    #[must_use]
    pub fn glob(mut self, glob: impl Into<String>) -> Self {
        self.glob = Some(glob.into());
        self
    }

    /// Replaces the number of lines told before and after each match.
    #[must_use]
    pub fn context(mut self, context: usize) -> Self {
        self.context = context;
        self
    }

    /// Sets whether letter case counts.
    #[must_use]
    pub fn ignore_case(mut self, ignore_case: bool) -> Self {
        self.ignore_case = ignore_case;
        self
    }

    /// Also searches what is left out by default.
    #[must_use]
    pub fn include_ignored(mut self, include_ignored: bool) -> Self {
        self.include_ignored = include_ignored;
        self
    }

    /// Replaces the largest number of matching lines told.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grepped {
    /// The files with the first matching lines, in byte order of their paths.
    pub files: Vec<FileMatches>,
    /// How many lines matched in all.
    pub total: u64,
    /// In how many files.
    pub total_files: u64,
    /// Directories and text files that could not be read to their end, see also
    /// [`Found::unreadable`](crate::Found::unreadable).
    pub unreadable: u64,
}

/// The lines found in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileMatches {
    /// The file, relative to the root. For people: [`Escaped`](crate::Escaped).
    pub path: PathBuf,
    /// Matching lines and their context, in order.
    pub lines: Vec<GrepLine>,
}

/// One line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepLine {
    /// Its number, from 1.
    pub number: u64,
    /// Its text without the terminator; what is not UTF-8 is U+FFFD.
    pub text: String,
    /// It matches; `false` for context.
    pub is_match: bool,
    /// `text` is only a part of the line.
    pub is_cut: bool,
}

impl Jail {
    /// Searches the text files at or below `path` for lines that match the regular expression `pattern`.
    ///
    /// The syntax is that of the [`regex`](https://docs.rs/regex) crate; `^` and `$` match at line ends.
    /// Binary files (a NUL byte in the first 8 KiB), links and special files are left out; so are files
    /// with further hard links under [`Hardlinks::Deny`](crate::Hardlinks::Deny).
    ///
    /// A large tree is searched by as many threads as there are processors, eight at most. Memory is
    /// proportional to the lines told; beyond that one line is held whole while it is searched, and a file
    /// with a line over 128 MiB counts as unreadable from there on.
    ///
    /// ```
    /// use workspace_jail::GrepOptions;
    ///
    /// # let root = tempfile::tempdir()?;
    /// # let jail = workspace_jail::Jail::open(root.path(), Default::default())?;
    /// jail.create("src/a.rs", b"fn one() {}\nfn two() {}\n")?;
    /// let found = jail.grep(r"fn t\w+", ".", &GrepOptions::default().glob("*.rs"))?;
    /// let line = &found.files[0].lines[0];
    /// assert_eq!((line.number, line.text.as_str(), found.total), (2, "fn two() {}", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `InvalidPattern` for `pattern` or `glob`; for `path` `InvalidPath`, `NameTooLong`,
    /// `OutsideWorkspace`, `SymlinkLoop`, `NotFound`, `NotADirectory`, `NotARegularFile`,
    /// `HardlinkRefused`, `PermissionDenied`, `BinaryFile`, `NotUtf8`, `Busy`, `Io`.
    ///
    /// # Security
    ///
    /// No pattern is expensive by its shape, no line is kept whole, no link is followed.
    pub fn grep(&self, pattern: &str, path: &str, options: &GrepOptions) -> Result<Grepped> {
        let matcher = compile(pattern, options.ignore_case)?;
        let glob = match &options.glob {
            None => None,
            Some(pattern) => Some(
                Glob::new(pattern)
                    .map_err(|reason| Error::InvalidPattern { pattern: pattern.clone(), reason })?,
            ),
        };
        settle(path, || {
            let long_lines = Mutex::new(());
            let mut search = Search::new(&matcher, options, &long_lines);
            let Resolved { trail, end, .. } = resolve(self, path, LastLink::Follow)?;
            match end {
                End::Missing { .. } => return Err(Fault::NotFound),
                End::Directory => {
                    let walk = Walk::new(self, options.include_ignored);
                    let is_wanted =
                        |path: &Path| glob.as_ref().is_none_or(|glob| glob.matches(path));
                    search = spread::over(self, walk, trail, &is_wanted, search);
                }
                End::Entry(name, _) => {
                    let (file, stat) = read::open(self, path)?;
                    let mut shown: PathBuf = trail.names().collect();
                    shown.push(name.as_os_str());
                    search.file(shown.as_os_str(), &file, read::size_of(&stat))?;
                }
            }
            Ok(search.finish())
        })
    }
}

fn compile(pattern: &str, ignore_case: bool) -> Result<RegexMatcher> {
    let unusable = |reason: String| {
        // It repeats the pattern, to point at the place, and ends in a line that says what is wrong.
        let last = reason.lines().next_back().unwrap_or_default();
        let reason = if pattern.len() > MAX_REPEATED { last.to_owned() } else { reason };
        Error::InvalidPattern { pattern: pattern.to_owned(), reason }
    };
    // The matcher's builder puts the pattern into a group of its own, and so would take `a)(b`.
    regex_syntax::ParserBuilder::new()
        .utf8(false)
        .build()
        .parse(pattern)
        .map_err(|error| unusable(error.to_string()))?;
    RegexMatcherBuilder::new()
        .multi_line(true)
        .crlf(true)
        .case_insensitive(ignore_case)
        .build(pattern)
        .map_err(|error| unusable(error.to_string()))
}
