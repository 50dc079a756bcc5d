//! Listings: order, noise, pages, names of any bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use testkit::Fixture;
use workspace_jail::EntryKind;

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
