//! From parts to descriptors: the resolver of every path.
//!
//! It walks the path as the kernel does, one [`Part`] at a time, and takes hold of each entry before it
//! looks at it: a directory is entered, a link's text is put before the rest of the path, `..` returns
//! to the directory the trail came through. Above the root there is nothing, and an absolute link has no
//! place to start: both are [`Fault::Outside`], without a look at what may be there.
//!
//! Why not one call of `cap-std` for the whole path: it does not tell the path after links, which
//! protected names are compared with, and a write needs the parent it will rename in. The tests
//! compare the two, path by path.

use rustix::fs::FileType;

use crate::at::{self, Held};
use crate::error::{Fault, Step};
use crate::jail::Jail;
use crate::path::{self, Name, Part, Parts};
use crate::placeholder;
use crate::trail::Trail;

/// Links followed in one path, as in Linux.
const MAX_LINKS: usize = 40;

/// Whether a link at the end of the path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    Follow,
    /// The entry itself is meant: to rename or remove it.
    Keep,
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Resolved<'j> {
    /// The last directory that exists on the way, or the directory the path names.
    pub(crate) trail: Trail<'j>,
    pub(crate) end: End,
    /// The path ended in a link that was followed.
    pub(crate) through_link: bool,
    /// A link on the way stands at a protected name, or leads from one.
    through_protected: bool,
}

/// What stands at the end.
#[derive(Debug)]
pub(crate) enum End {
    /// The directory of the trail.
    Directory,
    /// An entry of the trail's directory that is not one.
    Entry(Name, Held),
    /// Nothing: `dirs` are missing, and `name` below them. `as_directory` when the path ends in a slash.
    Missing { dirs: Vec<Name>, name: Name, as_directory: bool },
}

impl Resolved<'_> {
    /// Whether a write here is refused by the jail's protected names.
    pub(crate) fn is_protected(&self, jail: &Jail) -> bool {
        let (dirs, name): (&[Name], Option<&Name>) = match &self.end {
            End::Directory => (&[], None),
            End::Entry(name, _) => (&[], Some(name)),
            End::Missing { dirs, name, .. } => (dirs, Some(name)),
        };
        let below = dirs.iter().chain(name).map(Name::as_os_str);
        self.through_protected || jail.protect().matches(self.trail.names().chain(below))
    }
}

/// Resolves the caller's text.
pub(crate) fn resolve<'j>(jail: &'j Jail, text: &str, last: LastLink) -> Step<Resolved<'j>> {
    let mut rest = path::parse(text, jail.root_names())?;
    let mut trail = Trail::new(jail.root());
    let (mut links, mut through_link, mut through_protected) = (0, false, false);
    while let Some(part) = rest.pop_front() {
        let name = match part {
            Part::Here => continue,
            Part::Up => match trail.up() {
                0 => return Err(Fault::Outside),
                1 => continue,
                _ => return Err(Fault::Changed),
            },
            Part::Down(name) => name,
        };
        let held = match at::hold(trail.dir(), &name) {
            Err(rustix::io::Errno::NOENT) => {
                let end = missing(trail.depth(), name, rest)?;
                return Ok(Resolved { trail, end, through_link, through_protected });
            }
            Err(errno) => {
                stays_inside(trail.depth() + 1, &rest)?;
                return Err(errno.into());
            }
            Ok(held) => held,
        };
        match held.kind() {
            FileType::Directory
                if rest.iter().all(|part| *part == Part::Here)
                    && placeholder::is_placeholder(&trail, &name, &held.stat) =>
            {
                let end = missing(trail.depth(), name, rest)?;
                return Ok(Resolved { trail, end, through_link, through_protected });
            }
            FileType::Directory => trail.down(name, held.into_dir()),
            FileType::Symlink if !(last == LastLink::Keep && rest.is_empty()) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Fault::Loop);
                }
                through_link |= rest.is_empty();
                through_protected |= leads_from_protected(jail, &trail, &name, &rest);
                let mut text = path::split(&held.link_text()?).ok_or(Fault::Outside)?;
                text.append(&mut rest);
                rest = text;
            }
            _ if rest.is_empty() => {
                let end = End::Entry(name, held);
                return Ok(Resolved { trail, end, through_link, through_protected });
            }
            _ => {
                stays_inside(trail.depth() + 1, &rest)?;
                return Err(Fault::NotADirectory);
            }
        }
    }
    Ok(Resolved { trail, end: End::Directory, through_link, through_protected })
}

/// What follows a name that is missing or cannot be looked at can only be counted; whatever it is, it must not lead out, or the
/// answer would tell what exists.
fn stays_inside(depth: usize, rest: &Parts) -> Step<()> {
    let mut depth = depth;
    for part in rest {
        match part {
            Part::Here => {}
            Part::Up => depth = depth.checked_sub(1).ok_or(Fault::Outside)?,
            Part::Down(_) => depth += 1,
        }
    }
    Ok(())
}

fn missing(depth: usize, first: Name, rest: Parts) -> Step<End> {
    stays_inside(depth + 1, &rest)?;
    let as_directory = rest.back() == Some(&Part::Here);
    let (mut dirs, mut name) = (Vec::new(), first);
    for part in rest {
        match part {
            Part::Here => {}
            // Directories are made for a plain path alone.
            Part::Up => return Err(Fault::NotFound),
            Part::Down(next) => dirs.push(std::mem::replace(&mut name, next)),
        }
    }
    Ok(End::Missing { dirs, name, as_directory })
}

/// A link at `.git/hooks` to elsewhere makes that place a protected one for paths that come this way.
fn leads_from_protected(jail: &Jail, trail: &Trail<'_>, link: &Name, rest: &Parts) -> bool {
    let below = rest.iter().map_while(|part| match part {
        Part::Here => Some(None),
        Part::Down(name) => Some(Some(name.as_os_str())),
        Part::Up => None,
    });
    let here = || trail.names().chain([link.as_os_str()]);
    jail.protect().matches(here()) || jail.protect().matches(here().chain(below.flatten()))
}
