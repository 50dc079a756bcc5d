//! Finding files by name.

use testkit::Fixture;
use workspace_jail::FindOptions;

use crate::open;

fn check(files: &str, pattern: &str, excludes: &[&str], expected: &str) {
    let fixture = Fixture::new(files);
    check_in(&fixture, pattern, excludes, FindOptions::default(), expected);
}

fn check_in(
    fixture: &Fixture,
    pattern: &str,
    excludes: &[&str],
    options: FindOptions,
    expected: &str,
) {
    let found = open(fixture).find(pattern, excludes, options).unwrap();
    let paths: Vec<_> = found.paths.iter().map(|path| path.to_str().unwrap()).collect();
    assert_eq!(format!("{} of {}", paths.join(" "), found.total), expected, "{pattern}");
    assert_eq!(found.unreadable, 0);
}

const TREE: &str = "//- test1.py\n//- subdir/test2.py\n//- test.txt\n//- q/r/s/t/deep.py\n//- .hidden/h.py\n\
                    //- .venv_container/v.py\n//- node_modules/n.py\n";

#[test]
fn patterns_find_sorted_paths() {
    let all = ".hidden/h.py q/r/s/t/deep.py subdir/test2.py test1.py of 4";
    check(TREE, "**/*.py", &[], all);
    check(TREE, "*.py", &[], all);
    check(TREE, "q/**/*.py", &[], "q/r/s/t/deep.py of 1");
    check(TREE, "test*.{py,txt}", &[], "subdir/test2.py test.txt test1.py of 3");
    check(TREE, "nothing", &[], " of 0");
    check("//- a/b\n//- a.b\n//- a0\n", "**", &[], "a.b a/b a0 of 3");
}

#[test]
fn excludes_remove_names_paths_and_directories() {
    check(TREE, "**/test*.py", &["test1.py"], "subdir/test2.py of 1");
    check(TREE, "*.py", &["subdir/test2.py", "q", ".hidden/"], "test1.py of 1");
    check("//- src/main.py\n", "**/*.py", &["src/main.py"], " of 0");
    check("//- f\n", "f", &["!../**", "/f", "..", "[z-a", "~/f"], "f of 1");
}

#[test]
fn the_first_paths_are_told_and_all_are_counted() {
    let fixture = Fixture::new("//- c.py\n//- a.py\n//- b.py\n");
    check_in(&fixture, "*.py", &[], FindOptions::default().limit(2), "a.py b.py of 3");
    check_in(&fixture, "*.py", &[], FindOptions::default().limit(3), "a.py b.py c.py of 3");
}

#[test]
fn gitignore_files_count_in_a_repository_or_not() {
    let files = "//- .gitignore\n# comment\n*.log\n!keep.log\n/build/\nsub/ignored.txt\n\
                 //- a.log\n//- keep.log\n//- build/x.txt\n//- sub/build/x.txt\n//- sub/ignored.txt\n\
                 //- sub/.gitignore\n!a.log\n*.tmp\n//- sub/a.log\n//- sub/x.tmp\n//- x.tmp\n";
    let seen = ".gitignore keep.log sub/.gitignore sub/a.log sub/build/x.txt x.tmp of 6";
    check(files, "**", &[], seen);
    let fixture = Fixture::new(&format!("{files}//- .git/HEAD\n"));
    check_in(&fixture, "**", &[], FindOptions::default(), seen);
    let all = FindOptions::default().include_ignored(true);
    let found = open(&fixture).find("**", &[], all).unwrap();
    assert_eq!(found.total, 11);
}

#[test]
fn links_are_found_and_not_followed() {
    let fixture = Fixture::new("//- d/f.txt\n");
    fixture.symlink("out", "../outside");
    fixture.symlink("d/loop.txt", "..");
    fixture.symlink(".gitignore", "../outside/secret.txt");
    let none = FindOptions::default();
    check_in(&fixture, "**/*.txt", &[], none, "d/f.txt d/loop.txt of 2");
    check_in(&fixture, "out/*", &[], none, " of 0");
}

#[test]
fn patterns_that_lead_out_are_refused() {
    let fixture = Fixture::new("//- f\n");
    for pattern in ["../../**/*.py", "/etc/*", "~/x", "a/../b"] {
        let error = open(&fixture).find(pattern, &[], FindOptions::default()).unwrap_err();
        assert_eq!(error.kind(), "invalid_pattern", "{pattern}");
        let text = error.to_string();
        assert!(text.contains("Path traversal or absolute paths are not allowed"), "{text}");
    }
    check("//- x..y\n", "x..y", &[], "x..y of 1");
}

#[test]
fn a_deep_tree_is_walked_with_few_descriptors() {
    let fixture = Fixture::new("");
    let jail = open(&fixture);
    let deep = "d/".repeat(300);
    jail.create(&format!("{deep}f.txt"), b"x").unwrap();
    jail.create(&format!("{}g.txt", "d/".repeat(100)), b"x").unwrap();
    let found = jail.find("*.txt", &[], FindOptions::default()).unwrap();
    assert_eq!((found.total, found.unreadable), (2, 0));
    assert_eq!(
        jail.read(&format!("{deep}{}f.txt", "../".repeat(300) + &deep), 9).unwrap().bytes,
        b"x"
    );
}

#[test]
fn rules_without_measure_are_passed_over_and_counted() {
    let fixture = Fixture::new("//- f\n//- d/f\n//- d/.gitignore\n/f\n");
    fixture.write(".gitignore", "f\n".repeat(200 * 1024).as_bytes());
    let found = open(&fixture).find("f", &[], FindOptions::default()).unwrap();
    assert_eq!((found.total, found.unreadable), (1, 1));
}
