//! Listings: order, noise, pages, names of any bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use testkit::Fixture;
use workspace_jail::{EntryKind, FindOptions, GrepOptions, Protect};

use crate::open;

fn check(fixture: &Fixture, path: &str, offset: u64, limit: u64, expected: &str) {
    let listing = open(fixture).list(path, offset, limit).unwrap();
    let mut shown: Vec<String> =
        listing.entries.iter().map(|entry| format!("{:?}:{}", entry.kind, entry.shown())).collect();
    shown.push(format!("of {}", listing.total));
    shown.extend(listing.next_offset.map(|next| format!("next {next}")));
    if !listing.left_out.is_empty() {
        shown.push(format!("left out {:?}", listing.left_out));
    }
    assert_eq!(shown.join(" "), expected);
}

#[test]
fn directories_come_first_then_byte_order() {
    let fixture = Fixture::new("//- b\n//- B\n//- a.txt\n//- .hidden\n//- z/x\n//- Y/x\n");
    fixture.symlink("link", "../outside/secret.txt");
    let all = "Directory:Y Directory:z File:.hidden File:B File:a.txt File:b Link:link of 7";
    check(&fixture, ".", 0, 1000, all);
}

#[test]
fn a_listing_is_paged() {
    let fixture = Fixture::new("//- a\n//- b\n//- c\n//- d/\n");
    check(&fixture, ".", 0, 2, "Directory:d File:a of 4 next 2");
    check(&fixture, ".", 2, 2, "File:b File:c of 4");
    check(&fixture, ".", 9, 2, "of 4");
}

#[test]
fn noise_is_left_out_and_told_unless_it_is_asked_for() {
    let fixture =
        Fixture::new("//- .git/HEAD\n//- node_modules/m/x\n//- .gitignore\n*.log\n//- a.log\n");
    let rest = r#"File:.gitignore File:a.log of 2 left out [".git", "node_modules"]"#;
    check(&fixture, ".", 0, 10, rest);
    check(&fixture, "node_modules", 0, 10, "Directory:m of 1");
}

#[test]
fn one_entry_is_one_line_whatever_its_bytes() {
    let fixture = Fixture::new("//- ok\n");
    for name in [&b"a\nINJECTED\x1b[31m"[..], b"bad\xff"] {
        let path = fixture.root().join(OsStr::from_bytes(name));
        std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    }
    check(&fixture, ".", 0, 10, r"File:a\nINJECTED\u{1b}[31m File:bad\xff File:ok of 3");
    let listing = open(&fixture).list(".", 0, 10).unwrap();
    assert_eq!(listing.entries[1].name.as_bytes(), b"bad\xff");
    assert_eq!(listing.entries[1].kind, EntryKind::File);
}

/// Puts an empty directory of that mode there.
fn place(fixture: &Fixture, path: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;

    let path = fixture.root().join(path);
    std::fs::create_dir_all(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn placeholders_are_not_there() {
    let fixture = Fixture::new("//- .cursor/rules\nmine\n//- f\n//- .idea/x\n");
    for name in [".envrc", ".vscode", ".claude/settings.json", ".cursor/mcp.json"] {
        place(&fixture, name, Protect::PLACEHOLDER);
    }
    for name in [".claude", ".cursor"] {
        place(&fixture, name, Protect::HOLDER);
    }
    check(&fixture, ".", 0, 10, "Directory:.cursor Directory:.idea File:f of 3");
    check(&fixture, ".cursor", 0, 10, "File:rules of 1");
    let jail = open(&fixture);
    for path in [".envrc", "./.envrc/", ".claude/settings.json", ".vscode/."] {
        assert_eq!(jail.list(path, 0, 10).unwrap_err().kind(), "not_found", "{path}");
        assert_eq!(jail.read(path, 10).unwrap_err().kind(), "not_found", "{path}");
        assert_eq!(jail.open_dir(path).unwrap_err().kind(), "not_found", "{path}");
        assert_eq!(jail.create(path, b"x").unwrap_err().kind(), "protected_path", "{path}");
    }
    assert_eq!(jail.similar_names(".envr"), [] as [&str; 0]);
    jail.create(".claude/notes", b"x").unwrap();
    check(&fixture, ".", 0, 10, "Directory:.claude Directory:.cursor Directory:.idea File:f of 4");
    check(&fixture, ".claude", 0, 10, "File:notes of 1");
}

#[test]
fn a_users_directory_is_no_placeholder() {
    let fixture = Fixture::new("//- .vscode/tasks.json\n{}\n//- sticky/a\n");
    place(&fixture, ".vscode", Protect::PLACEHOLDER);
    place(&fixture, "closed", Protect::PLACEHOLDER);
    place(&fixture, ".idea", 0o755);
    place(&fixture, "sticky", Protect::HOLDER);
    let all = "Directory:.idea Directory:.vscode Directory:closed Directory:sticky of 4";
    check(&fixture, ".", 0, 10, all);
    check(&fixture, ".vscode", 0, 10, "File:tasks.json of 1");
}

#[test]
fn files_on_their_way_to_their_names_are_nobodys() {
    let fixture = Fixture::new("//- f\nneedle\n");
    let jail = open(&fixture);
    // Made after the opening, which removes those of the dead.
    let temp = format!("d/.aw-{}.tmp", "0".repeat(32));
    fixture.write(&temp, b"needle\n");
    fixture.write("d/.aw-mine.tmp", b"needle\n");
    let listed = jail.list("d", 0, 10).unwrap();
    assert_eq!((listed.total, listed.entries[0].name.to_str()), (1, Some(".aw-mine.tmp")));
    let all = FindOptions::default().include_ignored(true);
    assert_eq!(jail.find("*", &[], all).unwrap().total, 2);
    let all = GrepOptions::default().include_ignored(true);
    assert_eq!(jail.grep("needle", ".", &all).unwrap().total, 2);
    assert!(fixture.exists(&temp));
    open(&fixture);
    assert!(!fixture.exists(&temp));
}

#[test]
fn refusals_have_names() {
    let fixture = Fixture::new("//- f\n");
    fixture.symlink("out", "../outside");
    let jail = open(&fixture);
    let kind = |path| jail.list(path, 0, 10).unwrap_err().kind();
    assert_eq!(kind("f"), "not_a_directory");
    assert_eq!(kind("no-such"), "not_found");
    assert_eq!(kind("out"), "outside_workspace");
    assert_eq!(kind(""), "invalid_path");
}
