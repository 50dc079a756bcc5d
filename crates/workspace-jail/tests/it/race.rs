//! Another party swaps a directory for a link that leads out, as fast as it can, during every verb.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use testkit::{Fixture, Snapshot};
use workspace_jail::{FindOptions, GrepOptions, Jail, PageRequest};

use crate::open;

const ROUNDS: usize = 3000;

/// For a window of one system call.
const MANY_ROUNDS: usize = 60_000;

/// Ends the other party, also when this one fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `verb` while `swapped` and a link to `target` change places; it says whether it got through.
fn check(rounds: usize, swapped: &str, target: &str, verb: impl Fn(&Jail, usize) -> bool) {
    let fixture = Fixture::new(
        "//- sw/secret.txt\ninside\n//- sw/sub/secret.txt\ninside\n//- file.txt\ninside\n",
    );
    fixture.symlink("alt", target);
    let outside = Snapshot::of(&fixture.outside());
    let jail = open(&fixture);
    let (one, other) = (fixture.root().join(swapped), fixture.root().join("alt"));
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut through = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _stop = StopOnDrop(&stop);
        through = (0..rounds).filter(|round| verb(&jail, *round)).count();
    });
    assert_eq!(outside, Snapshot::of(&fixture.outside()), "something outside changed");
    let swaps = swaps.into_inner();
    eprintln!("{rounds} rounds, {through} got through, {swaps} swaps");
    assert!(through > 0 && swaps > 100, "no race: {through} of {rounds} with {swaps} swaps");
}

#[test]
fn reads_stay_inside() {
    check(ROUNDS, "sw", "../outside", |jail, _| {
        match jail.read_page("sw/secret.txt", &PageRequest::default()) {
            Ok(page) => {
                assert_eq!(page.bytes, b"inside\n");
                true
            }
            Err(error) => {
                assert!(["outside_workspace", "busy"].contains(&error.kind()), "{error}");
                false
            }
        }
    });
}

#[test]
fn listings_stay_inside() {
    check(ROUNDS, "sw", "../outside", |jail, _| match jail.list("sw", 0, 10) {
        Ok(listing) => {
            assert!(listing.entries.iter().all(|entry| entry.name != "victim.txt"));
            true
        }
        Err(error) => {
            assert!(["outside_workspace", "busy"].contains(&error.kind()), "{error}");
            false
        }
    });
}

#[test]
fn searches_stay_inside() {
    check(ROUNDS, "sw", "../outside", |jail, round| {
        if round % 2 == 0 {
            let found = jail.find("**/*.txt", &[], FindOptions::default()).unwrap();
            assert!(found.paths.iter().all(|path| !path.ends_with("victim.txt")), "{found:?}");
            found.total > 0
        } else {
            let found = jail.grep("CANARY|ORIGINAL", ".", &GrepOptions::default()).unwrap();
            assert_eq!(found.total, 0, "{found:?}");
            true
        }
    });
}

#[test]
fn writes_stay_inside() {
    check(ROUNDS, "sw", "../outside", |jail, round| {
        let content = round.to_string();
        let written = match round % 3 {
            0 => jail.replace("sw/new.txt", content.as_bytes(), None).map(drop),
            1 => jail.create(&format!("sw/n{round}/x.txt"), content.as_bytes()).map(drop),
            _ => jail.remove("sw/new.txt"),
        };
        written.is_ok()
    });
}

#[test]
fn the_last_name_may_be_swapped_too() {
    check(MANY_ROUNDS, "file.txt", "../outside/secret.txt", |jail, round| {
        if round % 1000 == 0 {
            return jail.replace("file.txt", b"inside\n", None).is_ok();
        }
        match jail.read("file.txt", 100) {
            Ok(snapshot) => {
                assert_eq!(snapshot.bytes, b"inside\n");
                true
            }
            Err(error) => {
                assert!(["outside_workspace", "busy"].contains(&error.kind()), "{error}");
                false
            }
        }
    });
}
