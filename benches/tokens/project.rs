//! A project like one that an agent works in: a Python package and a Rust crate in a git repository with a history, changes
//! that are not committed, a long log. The same bytes each time, dates of commits included.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Python modules, tests of the crate, commits, and lines of the log.
pub(crate) const MODULES: usize = 120;
pub(crate) const TESTS: usize = 150;
pub(crate) const COMMITS: usize = 40;
const LOG: usize = 3_000;

/// What the commits are about.
pub(crate) fn subject(commit: usize) -> String {
    const VERBS: [&str; 5] = ["Add", "Fix", "Rename", "Drop", "Speed up"];
    const THINGS: [&str; 7] =
        ["the cache", "a retry", "the parser", "a lock", "the index", "the queue", "a header"];
    let (verb, thing) = (VERBS[commit % 5], THINGS[commit % 7]);
    format!("{verb} {thing} of module {commit:03}")
}

fn module(number: usize) -> String {
    let mut text = format!("\"\"\"Module {number}.\"\"\"\n\n");
    for step in 0..6 {
        let todo = if step == 3 { "  # TODO: validate the payload" } else { "" };
        writeln!(text, "def step_{step}(value):{todo}\n    return value * {number} + {step}\n\n")
            .expect("a string");
    }
    text
}

/// The crate; a test fails where `broken` says so, and a function does not compile in the other feature.
fn library() -> String {
    let mut text = "pub fn total(n: u64) -> u64 {\n    n * 2\n}\n\n#[cfg(feature = \"broken\")]\n\
        pub fn label(n: u64) -> String {\n    n\n}\n\n#[cfg(test)]\nmod tests {\n"
        .to_owned();
    for test in 0..TESTS {
        let wrong =
            if test % 67 == 21 { " + if cfg!(feature = \"failing\") { 1 } else { 0 }" } else { "" };
        writeln!(
            text,
            "    #[test]\n    fn case_{test:03}() {{\n        assert_eq!(super::total({test}), {}{wrong}, \"total of {test} drifted\");\n    }}",
            test * 2
        )
        .expect("a string");
    }
    text.push_str("}\n");
    text
}

fn python_tests() -> String {
    let mut text = "from pkg import mod_007\n\n\n".to_owned();
    for test in 0..60 {
        let expected = if test == 41 { 999 } else { test * 7 + 2 };
        writeln!(
            text,
            "def test_case_{test:02}():\n    assert mod_007.step_2({test}) == {expected}\n\n"
        )
        .expect("a string");
    }
    text
}

fn log() -> String {
    let mut text = String::new();
    for line in 0..LOG {
        let (minute, second) = (line / 60 % 60, line % 60);
        let said = match line {
            1_203 => "ERROR payment 8841 was charged twice".to_owned(),
            2_077 => "ERROR disk /var/data is 97% full".to_owned(),
            2_500 => "WARN certificate of api.example expires in 3 days".to_owned(),
            _ => format!("INFO worker {} finished job {line} in {} ms", line % 8, line % 97),
        };
        writeln!(text, "2026-03-04T09:{minute:02}:{second:02}Z {said}").expect("a string");
    }
    text
}

/// Makes it at `root`.
pub(crate) fn make(root: &Path) {
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    for number in 0..MODULES {
        write(&format!("pkg/mod_{number:03}.py"), &module(number));
    }
    write("pkg/__init__.py", "");
    write(
        "pkg/mod_077.py",
        &module(77).replace("TODO: validate the payload", "TODO: remove the password from here"),
    );
    write("tests/test_pkg.py", &python_tests());
    write("conftest.py", "");
    let manifest = "[package]\nname = \"ledger\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[features]\nfailing = []\nbroken = []\n";
    write("ledger/Cargo.toml", manifest);
    write("ledger/src/lib.rs", &library());
    write(".gitignore", "target\n__pycache__\n.pytest_cache\n");
    write("app.log", &log());
    git(root, 0, &["init", "-q", "-b", "main"]);
    git(root, 0, &["add", "."]);
    for commit in 0..COMMITS {
        write(&format!("pkg/mod_{commit:03}.py"), &format!("{}# {commit}\n", module(commit)));
        let body = "The old way held a lock for too long; this one takes it once.";
        git(root, commit, &["commit", "-qam", &subject(commit), "-m", body]);
    }
    for number in 0..12 {
        let changed = module(number * 9).replace("+ 4\n", "+ 4000  # was 4\n");
        write(&format!("pkg/mod_{:03}.py", number * 9), &changed);
    }
    for number in 0..15 {
        write(&format!("notes/draft_{number:02}.md"), "a draft\n");
    }
    git(root, 0, &["rm", "-q", "pkg/mod_119.py"]);
}

fn git(root: &Path, commit: usize, arguments: &[&str]) {
    let date = format!("2026-02-{:02}T10:{:02}:00Z", commit / 2 + 1, commit);
    let status = Command::new("git")
        .args(["-c", "user.name=A Person", "-c", "user.email=person@example.org"])
        .args(arguments)
        .current_dir(root)
        .envs([("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .status()
        .expect("git");
    assert!(status.success(), "git {arguments:?}");
}
