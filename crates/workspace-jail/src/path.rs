//! From the caller's text to parts: the only place that looks at a path as text.
//!
//! Invariants: a [`Name`] is one plain directory entry, never `.`, `..`, empty, or with a `/` or NUL in
//! it; the system calls of this crate take nothing else. Nothing is decoded, expanded or normalised:
//! `~`, `$X`, `%2e` and `file:` are names. `..` stays a step for the resolver.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use crate::error::{Fault, Step};

/// Longest component and longest path Linux takes, bytes.
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 4095;

/// One plain directory entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(OsString);

impl Name {
    /// Takes `bytes` if they are one plain entry.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        match Part::new(bytes) {
            Some(Part::Down(name)) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn as_os_str(&self) -> &OsStr {
        &self.0
    }

    pub(crate) fn into_os_string(self) -> OsString {
        self.0
    }
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// `.`, or the nothing after a trailing slash: what stands before must be a directory.
    Here,
    /// `..`
    Up,
    /// A name below.
    Down(Name),
}

impl Part {
    fn new(bytes: &[u8]) -> Option<Self> {
        match bytes {
            b"" | b"." => Some(Self::Here),
            b".." => Some(Self::Up),
            _ if bytes.contains(&0) || bytes.contains(&b'/') => None,
            _ => Some(Self::Down(Name(OsString::from_vec(bytes.to_vec())))),
        }
    }
}

/// The parts of a relative path.
pub(crate) type Parts = VecDeque<Part>;

/// Splits a relative path or a link's text. `None` if it is absolute or holds a NUL.
pub(crate) fn split(bytes: &[u8]) -> Option<Parts> {
    if bytes.first() == Some(&b'/') {
        return None;
    }
    bytes.split(|byte| *byte == b'/').map(Part::new).collect()
}

/// Reads the caller's path against the absolute names the root is known by.
pub(crate) fn parse(text: &str, roots: &[Vec<OsString>]) -> Step<Parts> {
    if text.is_empty() {
        return Err(Fault::InvalidPath("it is empty"));
    }
    if text.contains('\0') {
        return Err(Fault::InvalidPath("it holds a NUL byte"));
    }
    if text.len() > MAX_PATH || text.split('/').any(|part| part.len() > MAX_NAME) {
        return Err(Fault::NameTooLong);
    }
    match split(text.as_bytes()) {
        Some(parts) => Ok(parts),
        None => roots.iter().find_map(|root| below(text, root)).ok_or(Fault::Outside),
    }
}

/// The parts of an absolute path that follow the components of `root`, if it leads with them.
fn below(text: &str, root: &[OsString]) -> Option<Parts> {
    let mut parts = split(text.trim_start_matches('/').as_bytes())?;
    for expected in root {
        loop {
            match parts.pop_front()? {
                Part::Here => {}
                Part::Down(name) if name.as_os_str() == expected => break,
                Part::Up | Part::Down(_) => return None,
            }
        }
    }
    Some(parts)
}

/// The components of an absolute path, to compare callers' paths with.
pub(crate) fn components(path: &Path) -> Vec<OsString> {
    path.as_os_str()
        .as_bytes()
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(|part| OsStr::from_bytes(part).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let roots = [components(Path::new("/srv/ws")), components(Path::new("/workspace"))];
        let shown = match parse(text, &roots) {
            Err(fault) => format!("{fault:?}"),
            Ok(parts) => parts
                .iter()
                .map(|part| match part {
                    Part::Here => ".".to_owned(),
                    Part::Up => "..".to_owned(),
                    Part::Down(name) => name.as_os_str().to_string_lossy().into_owned(),
                })
                .collect::<Vec<_>>()
                .join(" "),
        };
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn text_becomes_parts() {
        check("a/b", "a b");
        check("a//./b/", "a . . b .");
        check("a/../b", "a .. b");
        check("~/x", "~ x");
        check("%2e%2e/x", "%2e%2e x");
        check("file:///etc", "file: . . etc");
        check("", "InvalidPath(\"it is empty\")");
        check("a\0b", "InvalidPath(\"it holds a NUL byte\")");
        check(&"x".repeat(256), "NameTooLong");
        check(&"a/".repeat(2048), "NameTooLong");
    }

    #[test]
    fn absolute_paths_need_the_components_of_the_root() {
        check("/srv/ws", "");
        check("/srv/ws/a", "a");
        check("//srv/./ws//a", ". a");
        check("/workspace/a", "a");
        check("/srv/ws/../ws/a", ".. ws a");
        check("/srv/ws-evil/x", "Outside");
        check("/srv/x/../ws/a", "Outside");
        check("/srv", "Outside");
        check("/", "Outside");
        check("/etc/passwd", "Outside");
    }
}
