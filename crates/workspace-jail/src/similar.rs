//! Names near a name that was not found.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::FileType;

use crate::at;
use crate::jail::Jail;
use crate::noise::is_noise;
use crate::path::Name;
use crate::placeholder;
use crate::resolve::{End, LastLink, Resolved, resolve};
use crate::trail::Trail;
use crate::walk::{Flow, Walk};

/// Names told at most.
const MAX_NAMES: usize = 5;

/// Entries looked at, in the directory and then in the tree.
const MAX_ENTRIES: usize = 20_000;

/// Longest names compared letter by letter, bytes.
const MAX_COMPARED: usize = 64;

impl Jail {
    /// Paths that a caller who got [`Error::NotFound`](crate::Error::NotFound) for `path` may have
    /// meant, best first, five at most: entries near the first missing component, then files of the same
    /// name elsewhere in the tree. Paths are relative to the root. An empty answer for a path that is
    /// there, leads outside, or resembles nothing.
    ///
    /// # Security
    ///
    /// Tells names below the root alone, nothing that [`Jail::list`] and [`Jail::find`] would not.
    pub fn similar_names(&self, path: &str) -> Vec<String> {
        let Ok(Resolved { trail, end, .. }) = resolve(self, path, LastLink::Follow) else {
            return Vec::new();
        };
        let End::Missing { dirs, name, .. } = end else { return Vec::new() };
        let mut found = near(&trail, dirs.first().unwrap_or(&name), dirs.is_empty());
        for path in self.same_name(&name) {
            if !found.contains(&path) {
                found.push(path);
            }
        }
        // A link to nothing is near itself.
        found.retain(|near| near != path);
        found.truncate(MAX_NAMES);
        found
    }

    /// Files elsewhere that have this name, letter case aside, the shallowest first.
    fn same_name(&self, name: &Name) -> Vec<String> {
        let wanted = name.as_os_str();
        let mut left = MAX_ENTRIES;
        let mut found = BTreeSet::new();
        Walk::new(self, false).run(Trail::new(self.root()), &mut |visit| {
            if visit.name.as_os_str().eq_ignore_ascii_case(wanted)
                && let Some(path) = visit.path.to_str()
            {
                found.insert((path.matches('/').count(), path.to_owned()));
                if found.len() > MAX_NAMES {
                    found.pop_last();
                }
            }
            left -= 1;
            if left == 0 { Flow::Stop } else { Flow::On }
        });
        found.into_iter().map(|(_, path)| path).collect()
    }
}

/// Entries of the trail's directory whose name is near `missing`.
fn near(trail: &Trail<'_>, missing: &Name, may_be_file: bool) -> Vec<String> {
    let Some(wanted) = comparable(missing) else { return Vec::new() };
    let Ok(entries) = at::read_dir(trail.dir()) else { return Vec::new() };
    let above: Option<Vec<&str>> = trail.names().map(|name| name.to_str()).collect();
    let Some(above) = above else { return Vec::new() };
    let mut found = BTreeSet::new();
    for entry in entries.take(MAX_ENTRIES).flatten() {
        let Some(name) = Name::new(entry.file_name().to_bytes()) else { continue };
        let is_directory = entry.file_type() == FileType::Directory;
        if is_noise(name.as_os_str())
            || (!may_be_file && entry.file_type() == FileType::RegularFile)
            || (is_directory && placeholder::stands_for_nothing(trail, &name))
        {
            continue;
        }
        let (Some(text), Some(letters)) = (name.as_os_str().to_str(), comparable(&name)) else {
            continue;
        };
        let distance = edits(&wanted, &letters);
        if distance <= 1 + wanted.len() / 4 {
            let path = above.iter().copied().chain([text]).collect::<Vec<_>>().join("/");
            found.insert((distance, path));
            if found.len() > MAX_NAMES {
                found.pop_last();
            }
        }
    }
    found.into_iter().map(|(_, path)| path).collect()
}

/// The letters of a name that is short enough to compare, letter case aside.
fn comparable(name: &Name) -> Option<Vec<char>> {
    let name = name.as_os_str();
    if name.as_bytes().len() > MAX_COMPARED {
        return None;
    }
    Some(name.to_str()?.chars().flat_map(char::to_lowercase).collect())
}

/// How many letters to insert, delete, change or swap with their neighbour.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut this = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let changed = last[column] + usize::from(letter != other);
            let mut cost = changed.min(last[column + 1] + 1).min(this[column] + 1);
            if row > 0 && column > 0 && letter == &to[column - 1] && other == &from[row - 1] {
                cost = cost.min(before_last[column - 1] + 1);
            }
            this.push(cost);
        }
        before_last = std::mem::replace(&mut last, this);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: &str, to: &str, expected: usize) {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(edits(&letters(from), &letters(to)), expected, "{from} {to}");
    }

    #[test]
    fn edits_are_counted() {
        check("", "", 0);
        check("abc", "", 3);
        check("main.py", "mian.py", 1);
        check("readme", "readme.md", 3);
        check("kitten", "sitting", 3);
    }
}
