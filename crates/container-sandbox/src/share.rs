//! A directory of the host in a container, at its own path, some places in it read-only.
//!
//! Invariants: nothing is shared but what a [`Share`] names; what the kernel mounted in the container is compared with
//! that before anybody can run something there ([`Share::differs`]). An engine finds a place by its path, and whoever
//! may write to the directory may put a link into that path meanwhile: so it is the mount that is looked at, not
//! the path. Non-goals: two directories, another path inside, a place outside the directory.

use bollard::config::MountBindOptionsPropagationEnum;
use bollard::models::{Mount, MountBindOptions, MountPoint, MountType};

use crate::command::Command;
use crate::container::Container;
use crate::error::Error;

/// One directory of the host that commands may write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    directory: String,
    /// Relative paths, and whether they are read-only.
    places: Vec<(String, bool)>,
}

/// What engines read as something else in a path: separators of their own syntax.
const SEPARATORS: &[char] = &[',', ':', '"', '\\'];
/// Bytes of the container's list of mounts.
const LONGEST_LIST: usize = 1 << 20;

impl Share {
    /// Shares `directory`, an absolute path without links, under the same path in the container.
    ///
    /// # Security
    ///
    /// Commands get all of it, as the user and group of [`Hardening`](crate::Hardening).
    pub fn new(directory: impl Into<String>) -> Self {
        Self { directory: directory.into(), places: Vec::new() }
    }

    /// Makes files and directories below it read-only, named relative to it. They must be there, and no component
    /// may be a link. Commands can neither rename nor remove them; the directory that holds one they can rename,
    /// unless it is [kept](Self::keep).
    ///
    /// # Security
    ///
    /// An engine resolves the paths by itself, with its own rights, and Podman makes a directory where nothing is. What
    /// a link led it to is not handed out ([`Error::ShareDiffers`]); that it went there is not undone. So look for links
    /// first, and keep directories that another container's commands could turn into one meanwhile.
    #[must_use]
    pub fn read_only<S: Into<String>>(self, places: impl IntoIterator<Item = S>) -> Self {
        self.with(places, true)
    }

    /// Makes directories below it mounts of their own, which commands can neither rename nor remove. A rename across
    /// their border fails as one between two file systems does.
    #[must_use]
    pub fn keep<S: Into<String>>(self, places: impl IntoIterator<Item = S>) -> Self {
        self.with(places, false)
    }

    fn with<S: Into<String>>(
        mut self,
        places: impl IntoIterator<Item = S>,
        read_only: bool,
    ) -> Self {
        self.places.extend(places.into_iter().map(|place| (place.into(), read_only)));
        self
    }

    /// Whether a path can be told to an engine: some read `,`, `:`, quotes and backslashes as syntax of theirs.
    pub fn is_expressible(path: &str) -> bool {
        !path.contains(SEPARATORS) && !path.contains(char::is_control)
    }

    /// Refuses what an engine would take for something else.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let invalid = |argument, reason| Err(Error::InvalidArgument { argument, reason });
        let plain = |path: &str| {
            path.split('/').all(|name| !matches!(name, "" | "." | "..")) && !path.is_empty()
        };
        let below_root = self.directory.strip_prefix('/').unwrap_or_default();
        if !plain(below_root) {
            return invalid("shared directory", "is not an absolute path without dots and links");
        }
        if !self.places.iter().all(|(place, _)| plain(place)) {
            return invalid("shared place", "is not a path below the shared directory");
        }
        let mut paths = self.places.iter().map(|(place, _)| place).chain([&self.directory]);
        if !paths.all(|path| Self::is_expressible(path)) {
            return invalid(
                "shared directory",
                "has a comma, colon, quote, backslash or control character in its path",
            );
        }
        Ok(())
    }

    fn targets(&self) -> impl Iterator<Item = (String, bool)> {
        let path = |place: &str| format!("{}/{place}", self.directory);
        let below = self.places.iter().map(move |(place, read_only)| (path(place), *read_only));
        [(self.directory.clone(), false)].into_iter().chain(below)
    }

    /// The request for it.
    pub(crate) fn mounts(&self) -> Vec<Mount> {
        self.targets()
            .map(|(path, read_only)| Mount {
                typ: Some(MountType::BIND),
                source: Some(path.clone()),
                target: Some(path),
                read_only: Some(read_only),
                bind_options: Some(MountBindOptions {
                    // What is mounted later on either side stays there.
                    propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                    ..MountBindOptions::default()
                }),
                ..Mount::default()
            })
            .collect()
    }

    /// Whether the engine's own account of a container's mounts is what was asked for.
    pub(crate) fn is_told(&self, made: &[MountPoint]) -> bool {
        let mut told: Vec<_> = made
            .iter()
            .map(|mount| (mount.destination.clone().unwrap_or_default(), mount.rw == Some(false)))
            .collect();
        let mut asked: Vec<_> = self.targets().collect();
        told.sort();
        asked.sort();
        told == asked
    }

    /// The first place that the kernel mounted otherwise than asked, by the container's own `mountinfo`
    /// (`proc_pid_mountinfo(5)`): each place must be that very path of the file system that is shared.
    fn differs(&self, mountinfo: &str) -> Option<&str> {
        let mounts: Vec<_> = mountinfo.lines().filter_map(Mounted::parse).collect();
        // The last one at a path is the one that is seen.
        let at = |path: &str| mounts.iter().rev().find(|mount| mount.at == path);
        let Some(base) = at(&self.directory).filter(|mount| !mount.read_only) else {
            return Some(".");
        };
        let differs = |(place, read_only): &&(String, bool)| {
            let root = format!("{}/{place}", base.root.trim_end_matches('/'));
            !at(&format!("{}/{place}", self.directory)).is_some_and(|mount| {
                mount.read_only == *read_only && mount.device == base.device && mount.root == root
            })
        };
        self.places.iter().find(differs).map(|(place, _)| place.as_str())
    }
}

/// A line of `mountinfo`.
struct Mounted<'l> {
    device: &'l str,
    root: String,
    at: String,
    read_only: bool,
}

impl<'l> Mounted<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        let mut fields = line.split(' ').skip(2);
        let (device, root, at) = (fields.next()?, fields.next()?, fields.next()?);
        let read_only = fields.next()?.split(',').any(|option| option == "ro");
        Some(Self { device, root: unescaped(root), at: unescaped(at), read_only })
    }
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
fn unescaped(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

impl Container {
    /// Compares what was mounted with what was asked for, before the first command.
    pub(crate) async fn check_share(&self, share: &Share) -> Result<(), Error> {
        // By the shell alone: the image need not have a `cat`.
        let list =
            "while IFS= read -r line; do printf '%s\\n' \"$line\"; done </proc/self/mountinfo";
        let timeout = std::time::Duration::from_secs(30);
        let command = Command::new(["sh", "-c", list], timeout).keep(LONGEST_LIST, 0);
        let outcome = self.exec(&command).await?;
        let list = outcome.output.to_string();
        let whole = outcome.exit_code == Some(0) && !outcome.output.truncated();
        match share.differs(&list) {
            None if whole => Ok(()),
            place => Err(Error::ShareDiffers { place: place.unwrap_or(".").to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: &str = "\
84 80 0:46 / /tmp rw,nosuid - tmpfs tmpfs rw
87 84 254:0 /srv/a\\040b /srv/a\\040b rw,relatime - ext4 /dev/vda rw
106 87 254:0 /srv/a\\040b/.git/hooks /srv/a\\040b/.git/hooks ro,relatime - ext4 /dev/vda rw
";

    fn share() -> Share {
        Share::new("/srv/a b").read_only([".git/hooks"])
    }

    #[test]
    fn what_was_asked_for_does_not_differ() {
        assert_eq!(share().differs(SEEN), None);
    }

    #[test]
    fn a_place_that_a_link_led_away_from_differs() {
        let check = |from: &str, to: &str, expected: &str| {
            let seen = SEEN.replace(from, to);
            assert_ne!(seen, SEEN);
            assert_eq!(share().differs(&seen), Some(expected), "{seen}");
        };
        check("254:0 /srv/a\\040b/.git/hooks", "254:0 /root/hooks", ".git/hooks");
        check("106 87 254:0", "106 87 254:1", ".git/hooks");
        check("hooks ro", "hooks rw", ".git/hooks");
        check("106 87", "106", ".git/hooks");
        let kept = Share::new("/srv/a b").keep([".git"]);
        assert_eq!(kept.differs(SEEN), Some(".git"));
        check("/srv/a\\040b rw", "/srv/other rw", ".");
        check("/srv/a\\040b rw", "/srv/a\\040b ro", ".");
    }

    #[test]
    fn a_file_system_that_begins_at_the_directory_is_shared_as_well() {
        let seen =
            "87 84 0:9 / /w rw - virtiofs w rw\n88 87 0:9 /.envrc /w/.envrc ro - virtiofs w rw\n";
        assert_eq!(Share::new("/w").read_only([".envrc"]).differs(seen), None);
    }

    #[test]
    fn paths_that_mean_something_else_are_refused() {
        for directory in
            ["", "/", "relative", "/a/../b", "/a//b", "/a/", "/a:b", "/a,ro", "/a\"b", "/a\n"]
        {
            assert!(Share::new(directory).check().is_err(), "{directory:?}");
        }
        for place in ["", "/etc", "../x", "a,source=/root", "a/./b"] {
            assert!(Share::new("/w").read_only([place]).check().is_err(), "{place:?}");
        }
        assert!(share().check().is_ok());
    }

    #[test]
    fn the_engine_s_account_is_compared_place_by_place() {
        let point = |path: &str, rw| MountPoint {
            destination: Some(path.into()),
            rw: Some(rw),
            ..MountPoint::default()
        };
        let (whole, hooks) = (point("/srv/a b", true), point("/srv/a b/.git/hooks", false));
        assert!(share().is_told(&[hooks.clone(), whole.clone()]));
        assert!(!share().is_told(std::slice::from_ref(&whole)));
        assert!(!share().is_told(&[whole.clone(), point("/srv/a b/.git/hooks", true)]));
        assert!(!share().is_told(&[whole, hooks, point("/root", true)]));
    }
}
