//! Other parties swap directories for links that lead out, as fast as they can, during every verb.
//!
//! One exchanges `ex` and a link in one step (`RENAME_EXCHANGE`), one puts a link in the place of `mv` by
//! plain renames, so that at times nothing is there. Nothing outside may be seen or change.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use testkit::Fixture;
use workspace_jail::{Error, FindOptions, GrepOptions, Jail, PageRequest};

use crate::open;
use crate::state::State;

/// How many operations all tests here make together, where 10,000 are not enough.
pub(crate) const OPERATIONS: &str = "WORKSPACE_JAIL_RACE_OPERATIONS";

/// The tests that share them.
const TESTS: usize = 5;

/// For a window of one system call.
const MANY_ROUNDS: usize = 60_000;

/// Each waits for the disk.
const WRITES: usize = 60;

/// The directories that are swapped.
const SWAPPED: [&str; 2] = ["ex", "mv"];

fn rounds() -> usize {
    let all: usize = std::env::var(OPERATIONS).map_or(10_000, |text| text.parse().unwrap());
    all.div_ceil(TESTS)
}

/// Counts rounds: those that were asked for, and more until both sides of the race have been seen.
struct Pace {
    least: usize,
    round: usize,
    deadline: Instant,
}

impl Pace {
    fn new(least: usize) -> Self {
        Self { least, round: 0, deadline: Instant::now() + Duration::from_mins(1) }
    }

    /// The number of the next round, if there is one.
    fn next(&mut self, both_seen: bool) -> Option<usize> {
        let round = self.round;
        self.round += 1;
        let goes_on = round < self.least || (!both_seen && Instant::now() < self.deadline);
        goes_on.then_some(round)
    }
}

/// Ends the other parties, also when this one fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Exchanges two entries until told to stop, and counts.
fn exchange(one: &Path, other: &Path, stop: &AtomicBool, swaps: &AtomicU64) {
    while !stop.load(Ordering::Relaxed) {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        swaps.fetch_add(1, Ordering::Relaxed);
    }
}

/// Puts a directory aside, a link in its place, and both back, until told to stop, and counts.
fn displace(root: &Path, stop: &AtomicBool, swaps: &AtomicU64) {
    let at = |name: &str| root.join(name);
    let mut junk = 0;
    while !stop.load(Ordering::Relaxed) {
        for (from, to) in [("mv", "aside"), ("link", "mv"), ("mv", "link"), ("aside", "mv")] {
            while std::fs::rename(at(from), at(to)).is_err() {
                // A write has made the directory that was not there.
                junk += 1;
                std::fs::rename(at("mv"), at(&format!("junk{junk}"))).unwrap();
            }
        }
        swaps.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `verb` on either directory in turn; it says whether it got through.
fn check(what: &str, verb: impl Fn(&Jail, &str, usize) -> bool) {
    let fixture = Fixture::new(
        "//- ex/secret.txt\ninside\n//- ex/sub/secret.txt\ninside\n\
         //- mv/secret.txt\ninside\n//- mv/sub/secret.txt\ninside\n",
    );
    for place in SWAPPED {
        // Enough for a search to share them out among threads.
        for below in 0..12 {
            fixture.write(&format!("{place}/s{below}/secret.txt"), b"inside\n");
        }
    }
    fixture.symlink("alt", "../outside");
    fixture.symlink("link", "../outside");
    let outside = State::of(&fixture.outside());
    let jail = open(&fixture);
    let root = fixture.root();
    let (stop, swaps) = (AtomicBool::new(false), [AtomicU64::new(0), AtomicU64::new(0)]);
    let (mut through, mut refused) = ([0, 0], [0, 0]);
    let mut pace = Pace::new(rounds());
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&root.join("ex"), &root.join("alt"), &stop, &swaps[0]));
        scope.spawn(|| displace(&root, &stop, &swaps[1]));
        let _stop = StopOnDrop(&stop);
        while let Some(round) = pace.next(through.iter().chain(&refused).all(|count| *count > 0)) {
            let which = round % 2;
            let count =
                if verb(&jail, SWAPPED[which], round / 2) { &mut through } else { &mut refused };
            count[which] += 1;
        }
    });
    assert_eq!(outside, State::of(&fixture.outside()), "something outside changed");
    let swaps = swaps.map(AtomicU64::into_inner);
    eprintln!("{what}: {through:?} got through, {refused:?} did not, {swaps:?} swaps");
    assert!(
        through.iter().chain(&refused).all(|count| *count > 0),
        "no race: {through:?} got through, {refused:?} did not"
    );
    assert!(swaps.iter().all(|swaps| *swaps > 100), "no race: {swaps:?} swaps");
}

/// Whether a verb got through; what it may be refused for is a link out, nothing there, or both in turn.
fn got_through<T>(result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(answer) => Some(answer),
        Err(error) => {
            let kinds = ["outside_workspace", "not_found", "busy"];
            assert!(kinds.contains(&error.kind()), "{error}");
            None
        }
    }
}

#[test]
fn reads_stay_inside() {
    check("reads", |jail, place, round| {
        let path = format!("{place}/secret.txt");
        let bytes = match round % 3 {
            0 => got_through(jail.read(&path, 100)).map(|snapshot| snapshot.bytes),
            1 => got_through(jail.read_page(&path, &PageRequest::default())).map(|page| page.bytes),
            _ => {
                got_through(jail.read_page(&path, &PageRequest::new(-1, 1))).map(|page| page.bytes)
            }
        };
        bytes.is_some_and(|bytes| {
            assert_eq!(bytes, b"inside\n");
            true
        })
    });
}

#[test]
fn listings_stay_inside() {
    check("lists", |jail, place, _| {
        got_through(jail.list(place, 0, 10)).is_some_and(|listing| {
            assert!(listing.entries.iter().all(|entry| entry.name != "victim.txt"));
            true
        })
    });
}

#[test]
fn finds_stay_inside() {
    check("finds", |jail, place, _| {
        let found = jail.find("**/*.txt", &[], FindOptions::default()).unwrap();
        assert!(found.paths.iter().all(|path| !path.ends_with("victim.txt")), "{found:?}");
        found.paths.iter().any(|path| path.starts_with(place))
    });
}

#[test]
fn greps_stay_inside() {
    check("greps", |jail, place, round| {
        let path = if round % 2 == 0 { "." } else { place };
        let found = got_through(jail.grep("CANARY|ORIGINAL|inside", path, &GrepOptions::default()));
        found.is_some_and(|found| {
            let lines = found.files.iter().flat_map(|file| &file.lines);
            assert!(lines.clone().all(|line| line.text == "inside"), "{found:?}");
            found.files.iter().any(|file| file.path.starts_with(place))
        })
    });
}

#[test]
fn writes_stay_inside() {
    check("writes", |jail, place, round| {
        let content = round.to_string();
        let (new, moved) = (format!("{place}/new.txt"), format!("{place}/moved{round}.txt"));
        let written = match round % 4 {
            0 => jail.replace(&new, content.as_bytes(), None).map(drop),
            1 => jail.create(&format!("{place}/n{round}/x.txt"), content.as_bytes()).map(drop),
            2 => jail.rename(&new, &moved),
            _ => jail.remove(&new),
        };
        written.is_ok()
    });
}

#[test]
fn the_last_name_may_be_swapped_too() {
    let fixture = Fixture::new("//- file.txt\ninside\n");
    fixture.symlink("alt", "../outside/secret.txt");
    let outside = State::of(&fixture.outside());
    let jail = open(&fixture);
    let (one, other) = (fixture.root().join("file.txt"), fixture.root().join("alt"));
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut through, mut refused) = (0, 0);
    let mut pace = Pace::new(MANY_ROUNDS);
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(&one, &other, &stop, &swaps));
        let _stop = StopOnDrop(&stop);
        while let Some(round) = pace.next(through > 1000 && refused > 1000) {
            if round % 10 == 0 {
                let found = jail.grep("CANARY", ".", &GrepOptions::default()).unwrap();
                assert_eq!(found.total, 0, "{found:?}");
            } else if let Some(snapshot) = got_through(jail.read("file.txt", 100)) {
                assert_eq!(snapshot.bytes, b"inside\n");
                through += 1;
            } else {
                refused += 1;
            }
        }
        for _ in 0..WRITES {
            got_through(jail.replace("file.txt", b"inside\n", None));
        }
    });
    assert_eq!(outside, State::of(&fixture.outside()), "something outside changed");
    let swaps = swaps.into_inner();
    eprintln!("last name: {through} got through, {refused} did not, {swaps} swaps");
    assert!(
        through > 1000 && refused > 1000,
        "no race: {through} and {refused} with {swaps} swaps"
    );
}
