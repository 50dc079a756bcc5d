//! Paths: which lead where, which are refused, and which refusal wins.

use testkit::Fixture;
use workspace_jail::{Hardlinks, Jail, Options};

use crate::open;

fn fixture() -> Fixture {
    let fixture = Fixture::new("//- f\nhi\n//- a/b/g\ndeep\n");
    fixture.symlink("inside", "a/b");
    fixture.symlink("a/up", "../f");
    fixture.symlink("absolute", fixture.root().join("f"));
    fixture.symlink("out", "../outside");
    fixture.symlink("out-missing", "../outside/no-such");
    fixture.symlink("loop", "loop");
    fixture.symlink("dangling", "no-such");
    fixture
}

fn check(path: &str, expected: &str) {
    let fixture = fixture();
    let root = fixture.root().to_string_lossy().into_owned();
    let base = fixture.base().to_string_lossy().into_owned();
    let jail = open(&fixture);
    let path = path.replace("$W", &root);
    let shown = match jail.read(&path, 1024) {
        Ok(snapshot) => String::from_utf8(snapshot.bytes).unwrap().trim_end().to_owned(),
        Err(error) => {
            let text = error.to_string();
            assert!(path.contains(&base) || !text.contains(&base), "tells a host path: {text}");
            error.kind().to_owned()
        }
    };
    assert_eq!(shown, expected, "{path}");
}

#[test]
fn paths_that_stay_inside_are_followed() {
    check("f", "hi");
    check("./a//b/g", "deep");
    check("a/../f", "hi");
    check("inside/g", "deep");
    check("inside/../up", "hi");
    check("a/up", "hi");
    check("$W/f", "hi");
    check("/workspace/f", "hi");
    check("/workspace//./a/b/g", "deep");
}

#[test]
fn paths_that_lead_out_are_refused_whatever_is_there() {
    for path in [
        "..",
        "../ws/f",
        "../outside/secret.txt",
        "../outside/no-such",
        "a/../../ws/f",
        "inside/../../../outside/secret.txt",
        "absolute",
        "out/secret.txt",
        "out/no-such",
        "out-missing",
        "/",
        "/etc/passwd",
        "/etc/no-such",
        "/workspace/../f",
        "/workspace-evil/f",
        "$W/../ws/f",
        "$W-evil/f",
        "no-such/../../outside/secret.txt",
        "f/../../outside/secret.txt",
    ] {
        check(path, "outside_workspace");
    }
}

#[test]
fn other_refusals_have_names_of_their_own() {
    check("", "invalid_path");
    check("f\0", "invalid_path");
    check(&"x".repeat(256), "name_too_long");
    check(&"x/".repeat(2048), "name_too_long");
    check("loop", "symlink_loop");
    check("no-such", "not_found");
    check("no-such/../f", "not_found");
    check("dangling", "not_found");
    check("~/f", "not_found");
    check("%2e%2e/outside/secret.txt", "not_found");
    check("f/", "not_a_directory");
    check("f/.", "not_a_directory");
    check("f/..", "not_a_directory");
    check("f/x", "not_a_directory");
    check("a", "is_directory");
    check(".", "is_directory");
    check("a/..", "is_directory");
    check("/workspace", "is_directory");
}

#[test]
fn a_directory_is_opened_for_a_command() {
    let fixture = fixture();
    let jail = open(&fixture);
    let kind = |path: &str| jail.open_dir(path).map_err(|error| error.kind()).err();
    assert_eq!(kind("."), None);
    assert_eq!(kind("inside"), None);
    assert_eq!(kind("$W".replace("$W", &fixture.root().to_string_lossy()).as_str()), None);
    assert_eq!(kind("f"), Some("not_a_directory"));
    assert_eq!(kind("no-such"), Some("not_found"));
    assert_eq!(kind("out"), Some("outside_workspace"));
    assert_eq!(jail.canonical("inside/../up").unwrap().to_str(), Some("f"));
    assert_eq!(jail.canonical("a/..").unwrap().to_str(), Some(""));
}

#[test]
fn the_root_may_be_given_through_a_link_and_be_named_either_way() {
    let fixture = Fixture::new("//- f\nhi\n");
    let link = fixture.base().join("link");
    std::os::unix::fs::symlink("ws", &link).unwrap();
    let jail = Jail::open(&link, Options::new()).unwrap();
    for root in [link, fixture.root()] {
        assert!(jail.read(&root.join("f").to_string_lossy(), 9).is_ok(), "{}", root.display());
    }
}

#[test]
fn neither_debug_nor_an_error_of_open_tells_more_than_was_given() {
    let fixture = Fixture::new("//- f\nhi\n");
    let base = fixture.base().to_string_lossy().into_owned();
    assert!(!format!("{:?}", open(&fixture)).contains(&base));
    let kind = |path: &str| {
        Jail::open(&fixture.root().join(path), Options::new()).map_err(|error| error.kind()).err()
    };
    assert_eq!(kind("no-such"), Some("not_found"));
    assert_eq!(kind("f"), Some("not_a_directory"));
}

#[test]
fn files_with_two_names_can_be_refused() {
    let fixture = Fixture::new("//- f\nhi\n");
    std::fs::hard_link(fixture.root().join("f"), fixture.root().join("g")).unwrap();
    let jail = Jail::open(&fixture.root(), Options::new().hardlinks(Hardlinks::Deny)).unwrap();
    assert_eq!(jail.read("f", 9).unwrap_err().kind(), "hardlink_refused");
    assert_eq!(jail.replace("f", b"x", None).unwrap_err().kind(), "hardlink_refused");
    assert_eq!(open(&fixture).read("f", 9).unwrap().bytes, b"hi\n");
}

#[test]
fn a_jail_is_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Jail>();
}

#[test]
fn a_missing_name_is_met_with_similar_ones() {
    let fixture =
        Fixture::new("//- src/main.py\n//- src/util.py\n//- docs/guide.md\n//- Makefile\n");
    let jail = open(&fixture);
    assert_eq!(jail.similar_names("src/mian.py"), ["src/main.py"]);
    assert_eq!(jail.similar_names("guide.md"), ["docs/guide.md"]);
    assert_eq!(jail.similar_names("scr/main.py"), ["src", "src/main.py"]);
    assert_eq!(jail.similar_names("makefile"), ["Makefile"]);
    assert_eq!(jail.similar_names("src/main.py"), [""; 0]);
    assert_eq!(jail.similar_names("../outside/secret.tx"), [""; 0]);
    fixture.symlink("kadefile", "nakefile");
    assert_eq!(jail.similar_names("kadefile"), ["Makefile"]);
}
