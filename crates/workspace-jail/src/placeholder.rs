//! Placeholders: empty directories that stand at protected names while commands run.
//!
//! A sandbox makes a protected name read-only by mounting over it, and a mount needs something to lie on. Where the
//! name is missing, whoever runs the sandbox puts an empty directory there for as long as a command runs, and one
//! around it where the directory above is missing, too. Both are known by their modes, so that those of another
//! process in the same root are recognised as well. To the verbs a placeholder is not there: nobody who lists or
//! reads is to take it for the user's. Its name stays protected, and what a holder holds beside it is told.

use std::ffi::OsStr;

use cap_std::fs::Dir;
use rustix::fs::Stat;

use crate::at;
use crate::path::Name;
use crate::protect::Protect;
use crate::trail::Trail;

impl Protect {
    /// Mode of a placeholder: an empty directory at a protected name, which the verbs take for missing.
    pub const PLACEHOLDER: u32 = 0o555;

    /// Mode of a directory that was made to hold placeholders, and is not listed while it holds nothing else; the
    /// sticky bit tells it from a user's.
    pub const HOLDER: u32 = 0o1755;
}

/// Whether the directory `name` at the end of the trail is a placeholder; `stat` is its own.
pub(crate) fn is_placeholder(trail: &Trail<'_>, name: &Name, stat: &Stat) -> bool {
    has_mode(stat, Protect::PLACEHOLDER) && {
        let above: Vec<&OsStr> = trail.names().collect();
        is_empty_at_protected(trail.dir(), &above, name)
    }
}

/// Whether the directory `name` at the end of the trail is a placeholder or holds placeholders and nothing else.
pub(crate) fn stands_for_nothing(trail: &Trail<'_>, name: &Name) -> bool {
    let Ok(held) = at::hold(trail.dir(), name) else { return false };
    if !has_mode(&held.stat, Protect::HOLDER) {
        return is_placeholder(trail, name, &held.stat);
    }
    let here: Vec<&OsStr> = trail.names().chain([name.as_os_str()]).collect();
    let dir = held.into_dir();
    let Ok(entries) = at::read_dir(&dir) else { return false };
    let mut placeholders = entries.map(|entry| {
        entry.is_ok_and(|entry| match Name::new(entry.file_name().to_bytes()) {
            Some(inner) => {
                at::hold(&dir, &inner).is_ok_and(|held| has_mode(&held.stat, Protect::PLACEHOLDER))
                    && is_empty_at_protected(&dir, &here, &inner)
            }
            // `.` and `..`
            None => true,
        })
    });
    placeholders.all(|is_placeholder| is_placeholder)
}

fn has_mode(stat: &Stat, mode: u32) -> bool {
    const DIRECTORY: u32 = 0o040_000;
    stat.st_mode & 0o177_777 == DIRECTORY | mode
}

fn is_empty_at_protected(dir: &Dir, above: &[&OsStr], name: &Name) -> bool {
    let path = above.iter().copied().chain([name.as_os_str()]);
    let is_empty = || {
        let opened = at::hold_dir(dir, name).ok();
        let mut entries = opened.and_then(|dir| at::read_dir(&dir).ok())?;
        let is_dot = |bytes: &[u8]| Name::new(bytes).is_none();
        Some(entries.all(|entry| entry.is_ok_and(|entry| is_dot(entry.file_name().to_bytes()))))
    };
    Protect::Default.matches(path) && is_empty().unwrap_or(false)
}
