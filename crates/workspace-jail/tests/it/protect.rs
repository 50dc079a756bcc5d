//! Protected names, reached every way there is.

use testkit::{Fixture, Snapshot};
use workspace_jail::{Jail, Options, Protect};

use crate::open;

fn fixture() -> Fixture {
    let fixture = Fixture::new(
        "//- .git/config\nc\n//- .git/HEAD\nh\n//- hooks/x\n\n//- sub/.git/\n//- f\nf\n",
    );
    fixture.symlink("g", ".git");
    fixture.symlink(".git/hooks", "../hooks");
    fixture.symlink("conf", "g/config");
    fixture.symlink("sub/.claude", "../hooks");
    fixture
}

fn check(path: &str, expected: Option<&str>) {
    let fixture = fixture();
    let jail = open(&fixture);
    let before = Snapshot::of(&fixture.root());
    let kind = jail.replace(path, b"x", None).map_err(|error| error.kind()).err();
    assert_eq!(kind, expected, "{path}");
    if expected.is_some() {
        assert_eq!(before, Snapshot::of(&fixture.root()), "{path}");
        assert_eq!(jail.rename("f", path).map_err(|error| error.kind()), Err("protected_path"));
        assert!(fixture.exists("f"));
    }
}

#[test]
fn protected_names_are_refused_through_links_and_from_them() {
    for path in [
        ".git/config",
        "g/config",
        "conf",
        ".GIT/config.worktree",
        ".git/hooks/pre-commit",
        "g/hooks/pre-commit",
        "sub/.git/hooks/pre-commit",
        "sub/.claude/settings.json",
        "new/.vscode/tasks.json",
        "a/.git",
        "hooks/../.mcp.json",
    ] {
        check(path, Some("protected_path"));
    }
}

#[test]
fn their_neighbours_are_not() {
    for path in [".git/HEAD", "g/HEAD", "hooks/x", "sub/.claude/commands.md", "f"] {
        check(path, None);
    }
}

#[test]
fn a_protected_file_is_neither_removed_nor_moved_but_read() {
    let fixture = fixture();
    let jail = open(&fixture);
    assert_eq!(jail.remove("g/config").unwrap_err().kind(), "protected_path");
    assert_eq!(jail.remove(".git/hooks").unwrap_err().kind(), "protected_path");
    assert_eq!(jail.rename("conf", "other").map_err(|error| error.kind()), Ok(()));
    assert_eq!(jail.rename(".git/config", "other2").unwrap_err().kind(), "protected_path");
    assert_eq!(jail.read("g/config", 9).unwrap().bytes, b"c\n");
}

#[test]
fn protection_can_be_opened() {
    let fixture = fixture();
    let with = |protect| Jail::open(&fixture.root(), Options::new().protect(protect)).unwrap();
    let git = with(Protect::GitConfig);
    git.replace(".git/config", b"c2", None).unwrap();
    assert_eq!(git.replace(".mcp.json", b"x", None).unwrap_err().kind(), "protected_path");
    with(Protect::Off).replace(".git/hooks/x", b"x", None).unwrap();
}

#[test]
fn the_protected_names_that_are_there_are_told() {
    let fixture = fixture();
    fixture.write("node_modules/m/.vscode/tasks.json", b"{}");
    fixture.write(".git/objects/ab/config", b"");
    fixture.write("objects/.envrc", b"");
    let jail = open(&fixture);
    let names = jail.protected_names().unwrap();
    let names: Vec<_> = names.iter().map(|name| name.to_str().unwrap()).collect();
    assert_eq!(names, [".git/config", ".git/hooks", "objects/.envrc"]);
    assert_eq!(jail.protected_names_among(3), None, "an answer that is silently short is none");
}
