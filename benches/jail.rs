//! Files through the jail, beside the same files through plain paths, and large trees and files beside
//! the programs people use for them: `fd`, `rg`, `ls` and `tail`.
//!
//! The second part is a table of its own, printed first: a median of each side, taken in turn, and by how
//! much the process's memory grew at most. Both sides must give the same answer. A program that is not
//! installed is said to be missing, and its column stays empty.
#![expect(
    clippy::disallowed_methods,
    reason = "the baseline is the plain call or the program that the jail replaces"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use divan::Bencher;
use tempfile::TempDir;
use workspace_jail::{FindOptions, GrepOptions, Jail, Options, PageRequest};

fn main() {
    // Without it this is a test of whether the benches run at all.
    if std::env::args().any(|argument| argument == "--bench") {
        beside_programs();
    }
    divan::main();
}

/// What one side of a comparison answers, in any order.
type Answer = Vec<String>;

/// A row of the table.
struct Row<'a> {
    what: &'a str,
    ours: &'a dyn Fn() -> Answer,
    /// The names the program goes by, and its arguments.
    theirs: (&'a [&'a str], &'a [&'a str]),
}

impl Row<'_> {
    /// Runs both sides in turn and prints the medians. `place` is where the program starts.
    fn print(&self, place: &Path) {
        const ROUNDS: usize = 11;
        let grown = memory_growth(&|| drop((self.ours)()));
        let (names, arguments) = self.theirs;
        let run = |name: &str| Command::new(name).args(arguments).current_dir(place).output();
        let found = names.iter().find_map(|name| Some((name, run(name).ok()?)));
        if let Some((name, output)) = &found {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let mut theirs: Answer = text.lines().map(str::to_owned).collect();
            let mut ours = (self.ours)();
            theirs.sort();
            ours.sort();
            assert!(ours == theirs, "{name}: {} and {} lines", ours.len(), theirs.len());
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(time(&|| drop((self.ours)())));
            if let Some((name, _)) = &found {
                theirs.push(time(&|| drop(run(name).expect("it ran before"))));
            }
        }
        let ours = median(ours);
        let beside = match &found {
            None => format!("{} is not installed", names.join(" or ")),
            Some((name, _)) => {
                let theirs = median(theirs);
                let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
                format!("{name} {:.2} ms, ratio {ratio:.2}", milliseconds(theirs))
            }
        };
        say(&format!(
            "{:<44} {:>9.2} ms, memory +{grown:.1} MiB; {beside}",
            self.what,
            milliseconds(ours)
        ));
    }
}

fn beside_programs() {
    let (tree, jail) = large_tree();
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let find = || {
        let all = FindOptions::default().limit(usize::MAX);
        let found = jail.find("*.rs", &[], all).expect("a search");
        found.paths.iter().map(|path| shown(path)).collect()
    };
    let grep = || {
        let all = GrepOptions::default().limit(usize::MAX);
        let found = jail.grep("needle [0-9]+", ".", &all).expect("a search");
        let files = found.files.iter();
        files
            .flat_map(|file| {
                let path = shown(&file.path);
                file.lines.iter().map(move |line| format!("{path}:{}:{}", line.number, line.text))
            })
            .collect()
    };
    let list = || {
        let listing = jail.list("flat", 0, 10_000).expect("a listing");
        listing.entries.iter().map(|entry| shown(Path::new(&entry.name))).collect()
    };
    let page = |offset| {
        let page = jail.read_page("long.log", &PageRequest::new(offset, 100)).expect("a page");
        page.text().lines().map(str::to_owned).collect()
    };
    let tail = || page(-100);
    let inside = || page(10_000_000);
    let rows = [
        // What must not grow with the size comes first, before there is memory to use again.
        Row {
            what: "the last 100 lines of 1 GiB",
            ours: &tail,
            theirs: (&["tail"], &["-n", "100", "long.log"]),
        },
        Row {
            what: "100 lines after 10,000,000, once indexed",
            ours: &inside,
            theirs: (&["sed"], &["-n", "10000001,10000100p;10000100q", "long.log"]),
        },
        Row { what: "list 10,000 entries", ours: &list, theirs: (&["ls"], &["-A", "flat"]) },
        Row {
            what: "find *.rs in 50,000 files",
            ours: &find,
            theirs: (
                &["fdfind", "fd"],
                &["--hidden", "--exclude", ".git", "--type", "f", "--glob", "*.rs"],
            ),
        },
        Row {
            what: "grep in 50,000 files",
            ours: &grep,
            theirs: (
                &["rg"],
                &[
                    "--no-config",
                    "--hidden",
                    "--glob",
                    "!.git",
                    "--line-number",
                    "--no-heading",
                    "needle [0-9]+",
                ],
            ),
        },
    ];
    for row in rows {
        row.print(tree.path());
    }
    say("");
}

/// 50,000 files of 2 KiB in 500 directories, a directory of 10,000 files, and a log of 1 GiB; the last two
/// are ignored by searches.
fn large_tree() -> (TempDir, Jail) {
    const LINE: &str = "a line of text like many others, until somebody looks for it\n";
    let place = TempDir::new().expect("a scratch directory");
    let root = place.path();
    // fd takes rules from a repository alone.
    std::fs::create_dir(root.join(".git")).expect("a directory");
    std::fs::write(root.join(".gitignore"), "/flat/\n*.log\n").expect("a file");
    for directory in 0..500 {
        let path = root.join(format!("package{}/module{}", directory / 20, directory % 20));
        std::fs::create_dir_all(&path).expect("a directory");
        for file in 0..100 {
            let ending = if file % 3 == 0 { "txt" } else { "rs" };
            let last = if file == 7 { format!("a needle {directory}\n") } else { String::new() };
            let text = LINE.repeat(32) + &last;
            std::fs::write(path.join(format!("file{file}.{ending}")), text).expect("a file");
        }
    }
    std::fs::create_dir(root.join("flat")).expect("a directory");
    for file in 0..10_000 {
        std::fs::write(root.join(format!("flat/entry{file}")), "").expect("a file");
    }
    let mut log = std::fs::File::create(root.join("long.log")).expect("a file");
    let chunk = LINE.repeat(16 * 1024);
    for _ in 0..(1024 * 1024 * 1024_usize).div_ceil(chunk.len()) {
        log.write_all(chunk.as_bytes()).expect("a write");
    }
    let jail = Jail::open(root, Options::new()).expect("a jail");
    (place, jail)
}

fn time(work: &dyn Fn()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// By how many MiB the peak of resident memory grows.
fn memory_growth(work: &dyn Fn()) -> f64 {
    // The peak is that since this write (proc(5)).
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak is reset");
    let before = peak_kib();
    work();
    f64::from(peak_kib() - before) / 1024.0
}

fn peak_kib() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("somebody listens");
}

fn place() -> (TempDir, Jail) {
    let place = TempDir::new().expect("a scratch directory");
    for directory in 0..50 {
        let directory = place.path().join(format!("d{directory}"));
        std::fs::create_dir(&directory).expect("a directory");
        for file in 0..100 {
            std::fs::write(directory.join(format!("f{file}.txt")), "one\ntwo\nthree\n")
                .expect("a file");
        }
    }
    let jail = Jail::open(place.path(), Options::new()).expect("a jail");
    (place, jail)
}

#[divan::bench]
fn baseline_read(bencher: Bencher<'_, '_>) {
    let (place, _) = place();
    let path = place.path().join("d7/f7.txt");
    bencher.bench(|| std::fs::read(&path).expect("a file"));
}

#[divan::bench]
fn read_page(bencher: Bencher<'_, '_>) {
    let (_place, jail) = place();
    bencher.bench(|| jail.read_page("d7/f7.txt", &PageRequest::new(0, 100)).expect("a page"));
}

#[divan::bench]
fn baseline_walk(bencher: Bencher<'_, '_>) {
    let (place, _) = place();
    bencher.bench(|| ignore::walk_count(place.path()));
}

#[divan::bench]
fn find(bencher: Bencher<'_, '_>) {
    let (_place, jail) = place();
    bencher.bench(|| jail.find("*7.txt", &[], FindOptions::default()).expect("matches").total);
}

#[divan::bench]
fn baseline_write(bencher: Bencher<'_, '_>) {
    let (place, _) = place();
    let path = place.path().join("plain.txt");
    bencher.bench(|| {
        let temporary = place.path().join("plain.tmp");
        std::fs::write(&temporary, "content\n").expect("a file");
        std::fs::File::open(&temporary).and_then(|file| file.sync_all()).expect("a synced file");
        std::fs::rename(&temporary, &path).expect("a renamed file");
    });
}

#[divan::bench]
fn replace(bencher: Bencher<'_, '_>) {
    let (_place, jail) = place();
    bencher.bench(|| jail.replace("new.txt", b"content\n", None).expect("a write"));
}

mod ignore {
    //! What a walk must at least do: read every directory once.

    pub(super) fn walk_count(path: &std::path::Path) -> usize {
        std::fs::read_dir(path)
            .expect("a directory")
            .map(|entry| entry.expect("an entry"))
            .map(|entry| if entry.path().is_dir() { walk_count(&entry.path()) } else { 1 })
            .sum()
    }
}
