//! A workspace directory written from one string, beside an outside place that must never change.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A fresh `base/` with the workspace `base/ws` and the canary place `base/outside`.
///
/// `outside/secret.txt` holds [`Fixture::CANARY`], `outside/victim.txt` holds `ORIGINAL`. The whole is
/// removed on drop.
#[derive(Debug)]
pub struct Fixture {
    base: TempDir,
}

impl Fixture {
    /// Text that must never be seen in an answer.
    pub const CANARY: &'static str = "SECRET-CANARY";

    /// Makes the workspace from `files`: a file a section, each opened by a line `//- path`.
    ///
    /// A section's text runs to the next `//- ` line; a path that ends in `/` makes an empty directory.
    ///
    /// ```
    /// let fixture = testkit::Fixture::new("//- a.txt\none\n//- sub/b.txt\ntwo\n//- empty/\n");
    /// assert_eq!(fixture.read("sub/b.txt"), "two\n");
    /// ```
    pub fn new(files: &str) -> Self {
        let base = TempDir::with_prefix("testkit-").unwrap_or_else(|error| panic!("{error}"));
        let fixture = Self { base };
        make_dir(&fixture.root());
        make_dir(&fixture.outside());
        put(&fixture.outside().join("secret.txt"), format!("{}\n", Self::CANARY).as_bytes());
        put(&fixture.outside().join("victim.txt"), b"ORIGINAL\n");
        let mut section: Option<(String, String)> = None;
        for line in files.split_inclusive('\n') {
            if let Some(path) = line.strip_prefix("//- ") {
                fixture.flush(section.take());
                section = Some((path.trim_end().to_owned(), String::new()));
            } else if let Some((_, text)) = &mut section {
                text.push_str(line);
            } else {
                panic!("fixture text before the first `//- path` line: {line:?}");
            }
        }
        fixture.flush(section);
        fixture
    }

    fn flush(&self, section: Option<(String, String)>) {
        match section {
            Some((path, _)) if path.ends_with('/') => make_dir(&self.root().join(path)),
            Some((path, text)) => self.write(&path, text.as_bytes()),
            None => {}
        }
    }

    /// The directory that holds workspace and outside.
    pub fn base(&self) -> &Path {
        self.base.path()
    }

    /// The workspace.
    pub fn root(&self) -> PathBuf {
        self.base.path().join("ws")
    }

    /// The place beside the workspace that nothing may read or change.
    pub fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }

    /// Writes a workspace file, parents included.
    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.root().join(path);
        if let Some(parent) = path.parent() {
            make_dir(parent);
        }
        put(&path, bytes);
    }

    /// The text of a workspace file.
    pub fn read(&self, path: &str) -> String {
        String::from_utf8_lossy(&self.bytes(path)).into_owned()
    }

    /// The bytes of a workspace file.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        let path = self.root().join(path);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Whether a workspace entry exists; a dangling link does.
    pub fn exists(&self, path: &str) -> bool {
        self.root().join(path).symlink_metadata().is_ok()
    }

    /// Makes the link `path` in the workspace, with `target` as its text.
    pub fn symlink(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.root().join(path);
        std::os::unix::fs::symlink(target, &path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

fn make_dir(path: &Path) {
    std::fs::create_dir_all(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn put(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
