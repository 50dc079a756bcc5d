//! The server as a client meets it, beside its peers in the same run: how long it takes to start, what each tool costs at
//! small and large size, what waiting calls do to each other, what ours has alone, memory, and how cost grows with size.
//!
//! Samples of the servers alternate, so that a busy machine slows all of them; medians and their ratios are the figures to
//! read. `benches/peers` installs the peers and says where they are; without one its column is left out. Run it with
//! `cargo bench -p benches --bench server`, after `cargo build --release`; `-- --write FILE` puts the tables between the two
//! marks of a page.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench starts the programs it measures, and prints"
)]

mod alone;
mod growth;
mod peers;

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use benches::figures::{self, time, write_page};
use benches::session::{Server, Session, Task};
use serde_json::{Value, json};

/// Starts of each server.
const STARTS: usize = 20;
/// Files of the directory that is listed, and of the tree that is searched.
const ENTRIES: usize = 1000;
/// Calls at one time.
const PIPELINED: u64 = 200;

/// The middle one of some samples.
pub(crate) fn median(samples: Vec<Duration>) -> Duration {
    figures::median(samples).expect("samples")
}

/// One line of a table: a figure for each server that has one.
struct Row {
    what: &'static str,
    figures: Vec<Option<f64>>,
    unit: fn(f64) -> String,
}

fn memory(kib: f64) -> String {
    format!("{:.1} MiB", kib / 1024.0)
}

/// The tasks that are timed, with how many samples are taken.
fn tasks() -> Vec<(&'static str, usize, Task)> {
    let owned = str::to_owned;
    let run = |words: &[&str]| Task::Run(words.iter().copied().map(str::to_owned).collect());
    let edit = |file: &str, line: u32| {
        let text = format!("line {line} of");
        Task::Edit(file.to_owned(), text.clone(), text)
    };
    let search =
        |file: &str, line: u32| Task::Search(file.to_owned(), format!("line [{line}]+ of"));
    vec![
        ("read, 20 lines", 1000, Task::Read(owned("small.txt"), 20)),
        ("read, 1 MB", 40, Task::Read(owned("large.txt"), 20_000)),
        ("list, 10 entries", 200, Task::List(owned("few"))),
        ("list, 1,000 entries", 40, Task::List(owned("many"))),
        ("find by name among 1,000", 40, Task::Find(owned("."), owned("**/*7.txt"))),
        ("search in 20 lines", 200, search("small.txt", 7)),
        ("search in 1 MB", 40, search("large.txt", 7)),
        ("write, 4 KB", 100, Task::Write(owned("new.txt"), "a line of text\n".repeat(270))),
        ("write, 1 MB", 20, Task::Write(owned("new.txt"), "a line of text\n".repeat(70_000))),
        ("edit in 20 lines", 200, edit("small.txt", 7)),
        ("edit in 1 MB", 20, edit("large.txt", 7777)),
        ("run `true`", 60, run(&["true"])),
        ("run with 0.6 MB of output", 20, run(&["seq", "100000"])),
    ]
}

fn populate(root: &Path) {
    std::fs::create_dir(root).expect("a workspace");
    let lines = |count: usize| {
        let line = |number| {
            format!(
                "line {number} of a file with some more text in it
"
            )
        };
        (0..count).map(line).collect::<Vec<_>>().concat()
    };
    std::fs::write(root.join("small.txt"), lines(20)).expect("a small file");
    std::fs::write(root.join("large.txt"), lines(20_000)).expect("a large file");
    for (name, count) in [("few", 10), ("many", ENTRIES)] {
        std::fs::create_dir(root.join(name)).expect("a directory");
        for entry in 0..count {
            std::fs::write(root.join(format!("{name}/{entry}.txt")), "x\n").expect("a file");
        }
    }
}

fn measure(servers: &[Server], root: &Path, state: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut starts = vec![Vec::new(); servers.len()];
    for _ in 0..STARTS {
        for (server, starts) in servers.iter().zip(&mut starts) {
            let (session, took) = Session::start(server, root, state);
            starts.push(took);
            session.end();
        }
    }
    let medians = starts.into_iter().map(|samples| Some(median(samples).as_secs_f64()));
    rows.push(Row {
        what: "start to the answer of initialize",
        figures: medians.collect(),
        unit: time,
    });

    let mut sessions: Vec<_> =
        servers.iter().map(|server| Session::start(server, root, state).0).collect();
    let idle = sessions.iter().map(|session| Some(f64::from(session.memory().0))).collect();
    for (what, times, task) in tasks() {
        let mut samples = vec![Vec::new(); servers.len()];
        for _ in 0..times {
            for (session, samples) in sessions.iter_mut().zip(&mut samples) {
                samples.extend(session.time(&task));
            }
        }
        let middle = |samples: Vec<Duration>| figures::median(samples).map(|it| it.as_secs_f64());
        rows.push(Row { what, figures: samples.into_iter().map(middle).collect(), unit: time });
    }
    let read = Task::Read("small.txt".to_owned(), 20);
    let together = sessions.iter_mut().map(|session| {
        let samples: Vec<_> = (0..5).filter_map(|_| session.pipeline(&read, PIPELINED)).collect();
        figures::median(samples).map(|it| it.as_secs_f64())
    });
    rows.push(Row { what: "200 reads at one time", figures: together.collect(), unit: time });
    rows.push(Row { what: "memory, idle", figures: idle, unit: memory });
    let peak = sessions.iter().map(|session| Some(f64::from(session.memory().1))).collect();
    rows.push(Row { what: "memory, at most in all of the above", figures: peak, unit: memory });
    sessions.into_iter().for_each(Session::end);
    rows
}

fn table(servers: &[Server], rows: &[Row]) -> String {
    let mut text = String::from("| |");
    for server in servers {
        write!(text, " {} |", server.name).expect("a string");
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(servers.len()));
    text.push('\n');
    for row in rows {
        write!(text, "| {} |", row.what).expect("a string");
        let ours = row.figures.first().copied().flatten();
        for (place, figure) in row.figures.iter().enumerate() {
            match (figure, ours) {
                (None, _) => text.push_str(" – |"),
                (Some(figure), Some(ours)) if place > 0 => {
                    let (shown, ratio) = ((row.unit)(*figure), ours / figure);
                    write!(text, " {shown} ({ratio:.3}) |").expect("a string");
                }
                (Some(figure), _) => write!(text, " {} |", (row.unit)(*figure)).expect("a string"),
            }
        }
        text.push('\n');
    }
    text
}

/// What a slow call does to fast ones of the same client.
fn beside_a_slow_call(server: &Server, root: &Path, state: &Path) -> String {
    let (mut session, _) = Session::start(server, root, state);
    let read = json!({"filepath": "small.txt"});
    let sample = |session: &mut Session<'_>| {
        median((0..300).map(|_| session.call("read_file", &read)).collect()).as_secs_f64()
    };
    let alone = sample(&mut session);
    session.begin("run_bash", &json!({"command": "sleep 30"}));
    let beside = sample(&mut session);
    session.end();
    let (alone, beside, ratio) = (time(alone), time(beside), beside / alone);
    format!(
        "A small read takes {alone} alone and {beside} beside a command that runs: {ratio:.2} times as long.\n"
    )
}

/// A call of ours and a program that does the like.
struct Beside {
    what: &'static str,
    call: (&'static str, Value),
    /// Of the program, the first that is on `PATH`.
    names: &'static [&'static str],
    words: &'static [&'static str],
}

/// What the same search costs as a program of its own.
fn beside_programs(server: &Server, root: &Path, state: &Path) -> String {
    let mut text = String::from("| | ours | program |\n| --- | ---: | ---: |\n");
    let (mut session, _) = Session::start(server, root, state);
    let pairs = [
        Beside {
            what: "find by name among 10,000",
            call: ("search_workspace", json!({"pattern": "*77.txt"})),
            names: &["fd", "fdfind"],
            words: &["--glob", "*77.txt"],
        },
        Beside {
            what: "search in 100,000 lines",
            call: ("search_content", json!({"pattern": "line [0-9]*777 of"})),
            names: &["rg"],
            words: &["-n", "line [0-9]*777 of"],
        },
        Beside {
            what: "run `true` confined",
            call: ("run_bash", json!({"command": "true"})),
            names: &["bwrap"],
            words: &["--unshare-all", "--dev-bind", "/", "/", "sh", "-c", "true"],
        },
    ];
    for Beside { what, call: (tool, arguments), names, words } in pairs {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path)
            .flat_map(|place| names.iter().map(move |name| place.join(name)));
        let Some(program) = places.find(|place| place.is_file()) else {
            println!("SKIPPED a program: none of {names:?} is here");
            continue;
        };
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for _ in 0..40 {
            own.push(session.call(tool, &arguments));
            let mut command = std::process::Command::new(&program);
            command.args(words).current_dir(root).stdin(std::process::Stdio::null());
            let started = Instant::now();
            let output = command.output().expect("a program that runs");
            others.push(started.elapsed());
            assert!(output.status.success(), "{output:?}");
        }
        let (own, other) = (median(own).as_secs_f64(), median(others).as_secs_f64());
        let (program, ratio) = (names.first().copied().unwrap_or_default(), own / other);
        writeln!(text, "| {what} | {} | {program} {} ({ratio:.3}) |", time(own), time(other))
            .expect("a string");
    }
    session.end();
    text
}

fn main() {
    let base = tempfile::tempdir().expect("a folder");
    let (root, state) = (base.path().join("workspace"), base.path().join("state"));
    populate(&root);
    let servers = peers::all(&root);
    let mut text = table(&servers, &measure(&servers, &root, &state));
    text.push_str("\nIn brackets: our figure as a part of the peer's.\n\n");
    let ours = servers.first().expect("ours");
    text.push_str(&beside_a_slow_call(ours, &root, &state));
    text.push('\n');
    text.push_str(&alone::table(ours, &root, &state));
    text.push('\n');
    let large = base.path().join("large");
    std::fs::create_dir(&large).expect("a workspace");
    let in_large = peers::ours(&large);
    text.push_str(&growth::table(&in_large, &large, &state));
    text.push('\n');
    text.push_str(&beside_programs(&in_large, &large, &state));
    print!("{text}");
    write_page(["<!-- measured -->", "<!-- end of measured -->"], &text);
}
