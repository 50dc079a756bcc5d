//! Renaming and removing: entries, never what they point at.

use testkit::{Fixture, Snapshot};

use crate::open;

fn fixture() -> Fixture {
    let fixture = Fixture::new("//- f\nf\n//- g\ng\n//- d/x\nx\n");
    fixture.symlink("out", "../outside/victim.txt");
    fixture
}

fn check(from: &str, to: &str, expected: Option<&str>) {
    let fixture = fixture();
    let before = Snapshot::of(fixture.base());
    let kind = open(&fixture).rename(from, to).map_err(|error| error.kind()).err();
    assert_eq!(kind, expected, "{from} {to}");
    assert_eq!(expected.is_some(), before == Snapshot::of(fixture.base()), "{from} {to}");
}

#[test]
fn a_file_or_link_gets_a_free_name() {
    check("f", "new", None);
    check("f", "n/e/w", None);
    check("out", "d/out", None);
    check("f", "g", Some("already_exists"));
    check("f", "d", Some("already_exists"));
    check("f", "f", Some("already_exists"));
    check("f", "../new", Some("outside_workspace"));
    check("f", "out", Some("outside_workspace"));
    check("d", "e", Some("is_directory"));
    check("no-such", "new/dir", Some("not_found"));
    check("../outside/victim.txt", "new", Some("outside_workspace"));
}

#[test]
fn what_goes_is_the_entry() {
    let fixture = fixture();
    let outside = Snapshot::of(&fixture.outside());
    let jail = open(&fixture);
    jail.remove("out").unwrap();
    jail.remove("d/x").unwrap();
    assert!(!fixture.exists("out") && !fixture.exists("d/x") && fixture.exists("d"));
    assert_eq!(outside, Snapshot::of(&fixture.outside()));
    assert_eq!(jail.remove("d").unwrap_err().kind(), "is_directory");
    assert_eq!(jail.remove("no-such").unwrap_err().kind(), "not_found");
}
