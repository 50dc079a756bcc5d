//! Names that listings and searches leave out: caches, stores and histories nobody asked about.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// The names left out by [`Jail::list`](crate::Jail::list) and, unless asked for, by the searches: at
/// any depth, letter case counts.
pub const NOISE: [&str; 15] = [
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".mcp",
    ".venv",
    ".venv_container",
    "__pycache__",
    "node_modules",
    ".ruff_cache",
    ".mypy_cache",
    ".pytest_cache",
    ".tox",
    ".nox",
    ".eggs",
];

/// Whether `name` is one of [`NOISE`].
pub(crate) fn is_noise(name: &OsStr) -> bool {
    NOISE.iter().any(|noise| noise.as_bytes() == name.as_bytes())
}
