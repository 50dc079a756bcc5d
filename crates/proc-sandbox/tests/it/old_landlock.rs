//! Kernels whose Landlock knows less, imitated by a ceiling: the rung holds, and says what is missing.

use proc_sandbox::{Rung, State};
use testkit::{Snapshot, program, require};

use crate::Place;

/// Ways to empty a file without a right to write to it, as a program sees them.
const WAYS: [&str; 4] = [
    "os.truncate(path, 0)",
    "os.open(path, os.O_RDONLY | os.O_TRUNC)",
    // The mode that is neither reading nor writing.
    "os.open(path, os.O_ACCMODE | os.O_TRUNC)",
    // openat2 with the same flags: the number is the same on every architecture.
    "ctypes.CDLL(None).syscall(437, -100, path.encode(), (ctypes.c_uint64 * 3)(os.O_TRUNC, 0, 0), 24)",
];

fn old(version: u32) -> Option<Place> {
    require("a test in Python", program("python3"))?;
    let home = std::env::var_os("HOME").unwrap();
    Some(Place::plain(|policy| policy.home(&home).landlock_ceiling(version)))
}

fn emptying(way: &str, path: &str) -> String {
    format!("python3 -c \"import ctypes, os; path = '{path}'; {way}\" 2>&1")
}

#[test]
fn files_outside_cannot_be_emptied() {
    for version in [1, 2, 3] {
        let Some(place) = old(version) else { return };
        assert_eq!(place.sandbox.rung(), Rung::Landlock);
        for way in WAYS {
            let victim = place.fixture.outside().join("victim.txt");
            std::fs::write(&victim, "precious\n").unwrap();
            let attack = emptying(way, victim.to_str().unwrap());
            let before = Snapshot::of(&place.fixture.outside());
            let ran = place.confined(&attack);
            assert_eq!(Snapshot::of(&place.fixture.outside()), before, "{version} {way}: {ran:?}");
            place.open(&attack);
            assert_eq!(std::fs::read(&victim).unwrap(), b"", "{way} does not work at all");
        }
    }
}

#[test]
fn files_that_may_be_read_cannot_be_emptied() {
    let Some(_) = old(1) else { return };
    let readable = tempfile::tempdir().unwrap();
    let file = readable.path().join("file");
    let home = std::env::var_os("HOME").unwrap();
    let place =
        Place::plain(|policy| policy.home(&home).landlock_ceiling(1).extra_read([readable.path()]));
    std::fs::write(&file, "precious\n").unwrap();
    for way in WAYS {
        let attack = emptying(way, file.to_str().unwrap());
        let ran = place.confined(&attack);
        assert_eq!(std::fs::read(&file).unwrap(), b"precious\n", "{way}: {ran:?}");
    }
}

#[test]
fn the_workspace_can_be_written_to_all_the_same() {
    let Some(place) = old(1) else { return };
    let script = "set -e; echo one > a; echo two > a; : > b; truncate -s 1 a; wc -c < a; cp a c; \
                  python3 -c \"open('d', 'w').write('x'); os = __import__('os'); os.ftruncate(os.open('d', 1), 0)\"; \
                  mv c e; mkdir sub; stat -c %s d";
    assert_eq!(place.confined(script).succeeded(), "1\n0\n");
}

#[test]
fn the_report_says_what_an_old_version_lacks() {
    let detail = |version: u32| {
        let place = Place::plain(|policy| policy.landlock_ceiling(version));
        let report = place.sandbox.probe();
        assert_eq!(report.rung, Rung::Landlock, "{report:#?}");
        let state = if version < 6 { State::Unavailable } else { State::Active };
        assert_eq!(report.layer("signal_isolation").unwrap().state, state, "{report:#?}");
        let layer = report.layer("fs_readonly_outside").unwrap();
        assert_eq!(layer.state, State::Active);
        layer.detail.clone()
    };
    let truncation = |version| format!("Landlock version {version} does not know truncation");
    assert!(detail(1).contains(&truncation(1)) && detail(1).contains("cannot be moved or linked"));
    assert!(detail(2).contains(&truncation(2)) && !detail(2).contains("cannot be moved"));
    for version in [3, 6] {
        assert!(!detail(version).contains("Landlock version"));
    }
}

#[test]
fn a_policy_that_forbids_landlock_reaches_nothing() {
    let place = Place::plain(|policy| policy.landlock_ceiling(0));
    assert_eq!(place.sandbox.rung(), Rung::None);
    let report = place.sandbox.probe();
    let layer = report.layer("fs_readonly_outside").unwrap();
    assert!(layer.detail.contains("the policy forbids it"), "{layer:?}");
}
