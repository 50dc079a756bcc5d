//! The resolver against another one: cap-std, which asks the kernel (`openat2` beneath).
//!
//! On random trees full of links and for random paths, both must reach the same file or refuse alike.
//! One difference is meant: behind a missing name or a file the kernel says so, the jail goes on to look
//! whether the path steps out, since that must not depend on what exists.

use std::os::unix::fs::MetadataExt as _;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use proptest::prelude::*;
use testkit::Fixture;

use crate::open;

fn part() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c", "l", "m", "n", "f"]),
        2 => Just(".."),
        1 => prop::sample::select(vec![".", "", "missing"]),
    ]
}

fn path(most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 1..most).prop_map(|parts| {
        let path = parts.join("/");
        // Absolute ones are another matter: cap-std knows no root's name.
        path.trim_start_matches('/').to_owned()
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Reached {
    File(u64),
    Outside,
    Loop,
    Missing,
    NotDirectory,
}

fn by_kernel(dir: &Dir, path: &str) -> Reached {
    match dir.metadata(path) {
        Ok(meta) => Reached::File(meta.ino()),
        Err(error) => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            None if error.kind() == std::io::ErrorKind::PermissionDenied => Reached::Outside,
            Some(rustix::io::Errno::NOENT) => Reached::Missing,
            Some(rustix::io::Errno::NOTDIR) => Reached::NotDirectory,
            Some(rustix::io::Errno::LOOP) => Reached::Loop,
            _ => panic!("{path}: {error:?}"),
        },
    }
}

fn by_jail(fixture: &Fixture, path: &str) -> Reached {
    match open(fixture).canonical(path) {
        Ok(canonical) => {
            let there = fixture.root().join(canonical).symlink_metadata().unwrap();
            assert!(!there.is_symlink());
            Reached::File(there.ino())
        }
        Err(error) => match error.kind() {
            "outside_workspace" => Reached::Outside,
            "symlink_loop" => Reached::Loop,
            "not_found" => Reached::Missing,
            "not_a_directory" => Reached::NotDirectory,
            other => panic!("{path}: {other}"),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn both_reach_the_same(
        links in prop::collection::vec((0_usize..4, prop::sample::select(vec!["l", "m", "n"]), path(5)), 0..9),
        paths in prop::collection::vec(path(8), 1..12),
    ) {
        let fixture = Fixture::new("//- f\n//- a/f\n//- a/b/f\n//- a/b/c/f\n//- c/\n");
        for (depth, name, target) in links {
            let place = ["", "a/", "a/b/", "c/"][depth];
            if !target.is_empty() && !fixture.exists(&format!("{place}{name}")) {
                fixture.symlink(&format!("{place}{name}"), target);
            }
        }
        let dir = Dir::open_ambient_dir(fixture.root(), ambient_authority()).unwrap();
        for path in paths.iter().filter(|path| !path.is_empty()) {
            let (kernel, jail) = (by_kernel(&dir, path), by_jail(&fixture, path));
            let meant = jail == Reached::Outside
                && matches!(kernel, Reached::Missing | Reached::NotDirectory);
            prop_assert!(kernel == jail || meant, "{}: {:?} {:?}", path, kernel, jail);
        }
    }
}
