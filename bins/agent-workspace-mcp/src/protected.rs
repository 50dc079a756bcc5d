//! Protected names against commands: read-only while a command runs, and looked after when it has.
//!
//! The jail refuses the file tools a write to a name that makes a program on the operator's side run something.
//! Commands write by themselves. On the rungs with mounts they find these names read-only: at the root and in
//! every repository known when the server started. One that is missing at the root is held by an empty directory
//! for as long as a command runs, since a mount needs something to lie on; `.git` and what is below it are not,
//! so that `git init` works. The file tools do not see them. After every command a look finds what appeared or changed all the same: in a new
//! repository, or on the rung `landlock`, which cannot take a part away.
//!
//! The look is bounded: in a tree of more than [`LOOKED_AT`] entries it covers the names at the root and in the
//! known repositories alone. A change that the operator makes between two looks is told as well; it cannot be told
//! apart.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, Mode, OFlags};
use serde::Serialize;
use workspace_jail::{Jail, NOISE, Protect};

use crate::locked::lock;

/// Entries of the workspace a look goes through.
pub const LOOKED_AT: usize = 10_000;
/// Names that are told of one look.
const TOLD: usize = 10;
/// More of a configuration is not searched for keys: 256 KiB.
const LONGEST_CONFIGURATION: u64 = 256 * 1024;

/// Names below a repository's or the workspace's root.
const NAMES: [&str; 14] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/info/attributes",
    ".gitmodules",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".envrc",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".gemini/settings.json",
];
/// Keys of a git configuration that name a program to run, or the place of one; see `git-config(1)`.
const KEYS: [&str; 14] = [
    "hookspath",
    "fsmonitor",
    "sshcommand",
    "gitproxy",
    "pager",
    "editor",
    "askpass",
    "clean",
    "smudge",
    "process",
    "textconv",
    "command",
    "helper",
    "program",
];

/// The protected names of one workspace.
#[derive(Debug)]
pub struct Protected {
    protect: Protect,
    root: OwnedFd,
    /// Relative to the workspace, links and missing ones among them.
    masks: Vec<PathBuf>,
    held: Mutex<Held>,
    /// One more reference for each thread that closes placeholders.
    closing: Arc<()>,
    /// What was there at the last look.
    known: Mutex<BTreeMap<PathBuf, String>>,
}

/// Threads that may close placeholders at once.
const CLOSING: usize = 4;
/// Modes by which the jail knows placeholders, and does not show them.
const CLOSED: u32 = Protect::PLACEHOLDER;
const HOLDER: u32 = Protect::HOLDER;

/// Placeholders, and for how many commands.
#[derive(Debug, Default)]
struct Held {
    commands: usize,
    /// In the order in which they were made.
    made: Vec<PathBuf>,
}

/// A protected name that appeared or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Relative to the workspace.
    pub path: String,
    /// `appeared`, `changed` or `disappeared`.
    pub what: &'static str,
    /// Keys in it that run a program on the operator's side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.what)?;
        if !self.keys.is_empty() {
            write!(f, ", runs programs by {}", self.keys.join(", "))?;
        }
        Ok(())
    }
}

/// Keeps missing names from being made for as long as it lives.
#[derive(Debug)]
pub struct Hold<'a>(&'a Protected);

impl Protected {
    /// Finds the repositories and what is protected in them.
    ///
    /// # Errors
    ///
    /// When the workspace's descriptor cannot be duplicated.
    pub fn new(jail: &Jail, protect: Protect) -> std::io::Result<Self> {
        let root = jail.dir().try_clone_to_owned()?;
        let there = jail.protected_names().unwrap_or_default();
        let mut protected = Self {
            protect,
            root,
            masks: masks(&there, protect),
            held: Mutex::default(),
            closing: Arc::default(),
            known: Mutex::default(),
        };
        protected.clear_placeholders();
        protected.known = Mutex::new(protected.stamps(jail));
        Ok(protected)
    }

    /// What a command is to find read-only, relative to the workspace; see
    /// [`Target::protect`](proc_sandbox::Target::protect).
    pub fn masks(&self) -> &[PathBuf] {
        &self.masks
    }

    /// Holds the names that are missing at the root. To be called before a command is started on a rung that
    /// makes [`Self::masks`] read-only; without that it keeps nothing from anybody.
    pub fn hold(&self) -> Hold<'_> {
        let mut held = lock(&self.held);
        held.commands += 1;
        for name in self.placeholders() {
            self.make(Path::new(name), &mut held.made);
        }
        Hold(self)
    }

    /// What appeared, changed or disappeared since the last look, in byte order.
    pub fn look(&self, jail: &Jail) -> Vec<Change> {
        if self.protect == Protect::Off {
            return Vec::new();
        }
        let now = self.stamps(jail);
        let mut known = lock(&self.known);
        let paths: BTreeSet<&PathBuf> = known.keys().chain(now.keys()).collect();
        let changes = paths
            .into_iter()
            .filter_map(|path| {
                let what = match (known.get(path), now.get(path)) {
                    (None, Some(_)) => "appeared",
                    (Some(_), None) => "disappeared",
                    (before, after) if before != after => "changed",
                    _ => return None,
                };
                let keys = if what == "disappeared" { Vec::new() } else { keys(jail, path) };
                let path = workspace_jail::Escaped::new(path).to_string();
                Some(Change { path, what, keys })
            })
            .collect();
        *known = now;
        changes
    }

    fn placeholders(&self) -> impl Iterator<Item = &'static str> {
        let wanted = self.protect != Protect::Off;
        NAMES.into_iter().filter(move |name| wanted && !name.starts_with(".git/"))
    }

    /// Makes an empty directory where there is nothing, and the one that holds it.
    fn make(&self, path: &Path, made: &mut Vec<PathBuf>) {
        let closed = Mode::from_raw_mode(CLOSED);
        let holder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(holder) = holder
            && rustix::fs::mkdirat(&self.root, holder, Mode::from_raw_mode(HOLDER)).is_ok()
        {
            made.push(holder.to_owned());
        }
        // Where it cannot be made (a read-only workspace, say), a command cannot make it either.
        if let Some(place) = self.directory(holder)
            && let Some(name) = path.file_name()
            && rustix::fs::mkdirat(&place, name, closed).is_ok()
        {
            made.push(path.to_owned());
        }
    }

    /// Closes what is removed already on a thread of its own: a disk that is told of every block that becomes free takes
    /// longer over these than most commands do.
    fn close_late(&self, gone: Vec<OwnedFd>) {
        let turn = Arc::clone(&self.closing);
        // Where the disk does not keep up, or there is no thread, they are closed here.
        if Arc::strong_count(&turn) <= 1 + CLOSING {
            let close = move || drop((gone, turn));
            std::thread::Builder::new().name("placeholders".to_owned()).spawn(close).ok();
        }
    }

    /// A directory of the root, never through a link.
    fn directory(&self, name: Option<&Path>) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = name.unwrap_or_else(|| Path::new("."));
        rustix::fs::openat(&self.root, name, flags, Mode::empty()).ok()
    }

    /// Removes a placeholder, if it is one still: what holds something is not removed by this call.
    fn unmake(&self, path: &Path) {
        let holder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let (Some(place), Some(name)) = (self.directory(holder), path.file_name()) {
            let removed = rustix::fs::unlinkat(&place, name, AtFlags::REMOVEDIR);
            if removed.is_err() && self.mode(path) == Some(HOLDER) {
                // A command put something into it: an ordinary directory from now on.
                let mode = Mode::from_raw_mode(HOLDER & 0o777);
                rustix::fs::chmodat(&place, name, mode, AtFlags::empty()).ok();
            }
        }
    }

    /// The mode of a directory of the workspace.
    fn mode(&self, path: &Path) -> Option<u32> {
        let stat = rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (stat.st_mode & 0o170_000 == 0o040_000).then_some(stat.st_mode & 0o7777)
    }

    /// Removes what a killed server left: a directory by the name of a file, empty and closed to writers, and the
    /// one that was made to hold it.
    fn clear_placeholders(&self) {
        for path in self.placeholders().map(Path::new) {
            if self.mode(path) == Some(CLOSED) {
                self.unmake(path);
            }
        }
        for holder in self.placeholders().filter_map(|name| Path::new(name).parent()) {
            if self.mode(holder) == Some(HOLDER) {
                self.unmake(holder);
            }
        }
    }

    /// The protected names that are there, with what tells one version from another.
    fn stamps(&self, jail: &Jail) -> BTreeMap<PathBuf, String> {
        let there = jail.protected_names_among(LOOKED_AT).unwrap_or_else(|| self.masks.clone());
        there
            .into_iter()
            .filter(|path| {
                let is_noise =
                    |name: &OsStr| NOISE.iter().any(|noise| name == *noise && name != ".git");
                // Git never runs the samples that come with every new repository.
                let is_sample = path.extension().is_some_and(|ending| ending == "sample");
                !path.iter().any(is_noise) && !is_sample
            })
            .filter_map(|path| {
                let stamp = match jail.sha256(path.to_str()?) {
                    Ok(hash) => hash.to_string(),
                    // Gone meanwhile; or a placeholder, or a directory that is looked into by itself.
                    Err(
                        workspace_jail::Error::NotFound { .. }
                        | workspace_jail::Error::IsDirectory { .. },
                    ) => return None,
                    // A link that leads out, a FIFO: there, and that is what counts.
                    Err(error) => error.kind().to_owned(),
                };
                Some((path, stamp))
            })
            .collect()
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let mut held = lock(&self.0.held);
        held.commands -= 1;
        if held.commands == 0 {
            let made = std::mem::take(&mut held.made);
            // Held open beyond their removal: the names go now, and what the disk does to free them is not waited for.
            let gone: Vec<_> =
                made.iter().filter_map(|path| self.0.directory(Some(path))).collect();
            for path in made.iter().rev() {
                self.0.unmake(path);
            }
            drop(held);
            self.0.close_late(gone);
        }
    }
}

/// The lines for a model about changes.
pub fn notes(changes: &[Change]) -> Vec<String> {
    if changes.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        "[names that programs of the operator's trust were changed by this command or beside it; tell the operator:]"
            .to_owned(),
    ];
    lines.extend(changes.iter().take(TOLD).map(|change| format!("[  {change}]")));
    if changes.len() > TOLD {
        lines.push(format!("[  and {} more; the audit log names all]", changes.len() - TOLD));
    }
    lines
}

/// Places to make read-only: what is protected at the root and in each repository, by the directory where all of a
/// directory is.
fn masks(there: &[PathBuf], protect: Protect) -> Vec<PathBuf> {
    if protect == Protect::Off {
        return Vec::new();
    }
    let mut roots: BTreeSet<PathBuf> = BTreeSet::from([PathBuf::new()]);
    let mut masks = BTreeSet::new();
    for path in there {
        let names: Vec<&OsStr> = path.iter().collect();
        if let Some(at) = names.iter().position(|name| *name == ".git") {
            roots.insert(names.iter().take(at).collect());
        }
        // `.git/modules/x/hooks/y` is protected by `.git/modules/x/hooks`.
        let whole =
            names.iter().position(|name| ["hooks", ".vscode", ".idea"].iter().any(|w| name == w));
        let length = whole.map_or(names.len(), |at| at + 1);
        masks.insert(names.iter().take(length).collect::<PathBuf>());
    }
    for root in &roots {
        masks.extend(NAMES.iter().map(|name| root.join(name)));
    }
    masks.retain(|path| protect.matches(path.iter()));
    masks.into_iter().collect()
}

/// Keys of a git configuration that run a program.
fn keys(jail: &Jail, path: &Path) -> Vec<String> {
    let is_configuration = path
        .file_name()
        .is_some_and(|name| name == "config" || name == "config.worktree" || name == ".gitmodules");
    let Some(path) = path.to_str().filter(|_| is_configuration) else { return Vec::new() };
    let Ok(text) = jail.read_text(path, LONGEST_CONFIGURATION) else { return Vec::new() };
    keys_of(&text.text)
}

fn keys_of(text: &str) -> Vec<String> {
    let mut section = String::new();
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix('[') {
            let name: String =
                rest.chars().take_while(|c| !c.is_whitespace() && *c != ']').collect();
            section = name.to_lowercase();
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let key = key.trim().to_lowercase();
        let is_alias = section == "alias" && value.trim().trim_start_matches('"').starts_with('!');
        let is_include = section.starts_with("include") && key == "path";
        let is_update = key == "update" && value.trim().starts_with('!');
        if KEYS.contains(&key.as_str()) || is_alias || is_include || is_update {
            found.insert(format!("{section}.{key}"));
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test changes files as a command would")]
mod tests {
    use super::*;

    #[test]
    fn keys_that_run_programs_are_found() {
        let text = "[core]\n\tbare = false\n\thooksPath = /tmp/h\n\tsshCommand=x\n[alias]\n\tco = checkout\n\tx = !sh\n\
                    [filter \"lfs\"]\n\tclean = git-lfs\n[include]\n\tpath = ../x\n[remote \"o\"]\n\turl = u\n";
        assert_eq!(
            keys_of(text),
            ["alias.x", "core.hookspath", "core.sshcommand", "filter.clean", "include.path"]
        );
        assert!(keys_of("[core]\n\tbare = true\n").is_empty());
    }

    #[test]
    fn masks_cover_whole_directories_and_every_repository() {
        let there = [".git/hooks/pre-commit", "sub/.git/config", "a/.vscode/tasks.json"];
        let there: Vec<PathBuf> = there.iter().map(PathBuf::from).collect();
        let masks = masks(&there, Protect::Default);
        for path in [".git/hooks", "sub/.git/hooks", "sub/.envrc", "a/.vscode", ".mcp.json"] {
            assert!(masks.contains(&PathBuf::from(path)), "{path}: {masks:?}");
        }
        assert!(!masks.contains(&PathBuf::from(".git/hooks/pre-commit")));
        assert!(!super::masks(&there, Protect::GitConfig).contains(&PathBuf::from(".git/config")));
        assert!(super::masks(&there, Protect::Off).is_empty());
    }

    fn jail(files: &str) -> (testkit::Fixture, Jail) {
        let fixture = testkit::Fixture::new(files);
        let jail = Jail::open(&fixture.root(), workspace_jail::Options::new()).unwrap();
        (fixture, jail)
    }

    #[test]
    fn placeholders_go_with_the_last_command_and_keep_what_is_there() {
        let (fixture, jail) = jail("//- .envrc\nmine\n//- .claude/notes.md\nmine\n");
        let protected = Protected::new(&jail, Protect::Default).unwrap();
        let before = testkit::Snapshot::of(&fixture.root());
        let first = protected.hold();
        let second = protected.hold();
        drop(first);
        for name in [".mcp.json", ".vscode", ".claude/settings.json", ".codex/config.toml"] {
            assert!(fixture.root().join(name).is_dir(), "{name}");
        }
        assert!(!fixture.exists(".git"), "git init must work");
        assert_eq!(fixture.read(".envrc"), "mine\n");
        drop(second);
        assert!(testkit::Snapshot::of(&fixture.root()) == before);
    }

    #[test]
    fn placeholders_of_a_killed_server_are_cleared() {
        let (fixture, jail) = jail("//- a\n");
        std::fs::create_dir(fixture.root().join(".gemini")).unwrap();
        let before = testkit::Snapshot::of(&fixture.root());
        let killed = Protected::new(&jail, Protect::Default).unwrap();
        std::mem::forget(killed.hold());
        assert!(fixture.root().join(".mcp.json").is_dir());
        assert!(fixture.root().join(".claude/settings.json").is_dir());
        Protected::new(&jail, Protect::Default).unwrap();
        assert!(testkit::Snapshot::of(&fixture.root()) == before);
    }

    #[test]
    fn what_holds_a_placeholder_stays_when_a_command_used_it() {
        let (fixture, jail) = jail("//- a\n");
        let protected = Protected::new(&jail, Protect::Default).unwrap();
        let held = protected.hold();
        fixture.write(".claude/notes.md", b"mine\n");
        drop(held);
        assert_eq!(protected.mode(Path::new(".claude")), Some(0o755));
        assert!(!fixture.exists(".claude/settings.json"));
        assert_eq!(fixture.read(".claude/notes.md"), "mine\n");
    }

    #[test]
    fn a_look_tells_what_appeared_changed_and_disappeared_once() {
        let (fixture, jail) = jail("//- .git/config\n[core]\n//- .envrc\nx\n//- a\n");
        let protected = Protected::new(&jail, Protect::Default).unwrap();
        assert_eq!(protected.look(&jail), []);
        fixture.write(".git/config", b"[core]\n\tfsmonitor = evil\n");
        fixture.write("deep/.git/hooks/post-merge", b"evil");
        fixture.write("node_modules/x/.vscode/settings.json", b"{}");
        std::fs::remove_file(fixture.root().join(".envrc")).unwrap();
        let told: Vec<_> = protected.look(&jail).iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                ".envrc disappeared",
                ".git/config changed, runs programs by core.fsmonitor",
                "deep/.git/hooks/post-merge appeared"
            ]
        );
        assert_eq!(protected.look(&jail), []);
    }
}
