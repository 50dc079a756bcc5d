//! Commands that both run in a project: ours as they are written, `rtk` as its `rewrite` says.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use benches::figures::median;

use crate::project::{self, COMMITS, MODULES};
use crate::{Rtk, Shown, ours, saved};

/// Runs of each side; the figure is the median.
const SAMPLES: usize = 5;

/// A command, and what its output must still say, or an agent cannot go on.
struct Case {
    command: &'static str,
    /// The best of `rtk`, where that is another command than the one it rewrites this to.
    theirs: Option<&'static str>,
    facts: Vec<String>,
}

fn case(command: &'static str, facts: impl IntoIterator<Item = String>) -> Case {
    Case { command, theirs: None, facts: facts.into_iter().collect() }
}

fn cases() -> Vec<Case> {
    let owned = |facts: &[&str]| facts.iter().map(|&fact| fact.to_owned()).collect::<Vec<_>>();
    let changed = || (0..12).map(|number| format!("mod_{:03}.py", number * 9));
    let subjects = || (0..COMMITS).map(project::subject);
    let failing =
        ["case_021", "case_088", "total of 21 drifted", "total of 88 drifted", "2 failed"];
    vec![
        case("git status", changed().chain(owned(&["mod_119.py", "notes/"]))),
        case("git log -n 40", subjects()),
        case("git log --oneline", subjects()),
        case(
            "git diff",
            changed().chain((0..12).map(|number| format!("value * {} + 4000", number * 9))),
        ),
        case(
            "git show --stat",
            owned(&["mod_039.py", &project::subject(COMMITS - 1), "held a lock"]),
        ),
        case("ls -la pkg", (0..MODULES - 1).map(|number| format!("mod_{number:03}.py"))),
        case("find . -name '*.py'", (0..MODULES - 1).map(|number| format!("mod_{number:03}"))),
        case(
            "grep -rn TODO pkg",
            owned(&["mod_000.py", "mod_118.py", "remove the password from here", "mod_077.py"]),
        ),
        Case {
            command: "cat app.log",
            theirs: Some("rtk log app.log"),
            facts: owned(&[
                "payment 8841 was charged twice",
                "/var/data is 97% full",
                "certificate of api.example expires",
                "finished job",
            ]),
        },
        case("cd ledger && cargo test --offline", owned(&["150 passed"])),
        case("cd ledger && cargo test --offline --features failing", owned(&failing)),
        case(
            "cd ledger && cargo build --offline --features broken",
            owned(&["E0308", "src/lib.rs:7:5", "expected `String`, found `u64`"]),
        ),
        case(
            "pytest",
            owned(&["test_case_41", "289 == 999", "test_pkg.py:169", "1 failed", "59 passed"]),
        ),
    ]
}

/// Runs a command line; both streams in the order they came, how it ended, and how long that took.
fn run(rtk: &Rtk, root: &Path, line: &str) -> (Vec<u8>, i32, Duration) {
    let mut command = rtk.command(Path::new("/bin/sh"));
    command.arg("-c").arg(format!("{{ {line}\n}} 2>&1")).current_dir(root);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env_remove("CARGO_TARGET_DIR");
    // Cargo and its compiler live in the true home.
    for (variable, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(folder));
        command.envs(std::env::var_os(variable).or(home.map(Into::into)).map(|it| (variable, it)));
    }
    let started = Instant::now();
    let output = command.output().expect("a shell");
    (output.stdout, output.status.code().unwrap_or(-1), started.elapsed())
}

/// Such a command as `rtk` would have it.
fn rewritten(rtk: &Rtk, line: &str) -> String {
    let output = rtk.command(&rtk.program).args(["rewrite", line]).output().expect("rtk");
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(text.contains("rtk "), "rtk has nothing for {line}");
    text
}

/// The table, a row for each command.
pub(crate) fn table(rtk: &Rtk, root: &Path, pytest: &Path) -> String {
    project::make(root);
    let mut text =
        "| command | raw | ours | saved | facts kept | ms | rtk | saved | facts kept | ms |\n\
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    assert!(pytest.with_file_name("rtk").is_file(), "rtk and pytest lie in one folder");
    let mut sums = [0; 6];
    for Case { command, theirs, facts } in cases() {
        let theirs = theirs.map_or_else(|| rewritten(rtk, command), str::to_owned);
        let facts: Vec<_> = facts.into_iter().map(|fact| vec![fact]).collect();
        // What is built or cached the first time is so for both.
        run(rtk, root, command);
        let (mut own, mut other) = ((String::new(), Vec::new()), (String::new(), Vec::new()));
        let mut raw = String::new();
        for _ in 0..SAMPLES {
            let (output, exit_code, took) = run(rtk, root, command);
            let started = Instant::now();
            own.0 = ours(command, exit_code, &output);
            own.1.push(took + started.elapsed());
            raw = String::from_utf8_lossy(&output).into_owned();
            let (output, _, took) = run(rtk, root, &theirs);
            other.0 = String::from_utf8_lossy(&output).into_owned();
            other.1.push(took);
        }
        let full = Shown::of(&raw, &facts);
        assert_eq!(full.facts, facts.len(), "{command} says all that is asked of it:\n{raw}");
        let [(own, own_ms), (other, other_ms)] = [own, other].map(|(text, took)| {
            (Shown::of(&text, &facts), median(took).map_or(0, |it| it.as_millis()))
        });
        let count = facts.len();
        writeln!(
            text,
            "| `{command}` | {} | {} | {} % | {} of {count} | {own_ms} | {} | {} % | {} of {count} | {other_ms} |",
            full.tokens,
            own.tokens,
            saved(full.tokens, own.tokens),
            own.facts,
            other.tokens,
            saved(full.tokens, other.tokens),
            other.facts,
        )
        .expect("a string");
        let counts = [own.facts, other.facts, count].map(|facts| u64::try_from(facts).unwrap_or(0));
        let row = [full.tokens, own.tokens, other.tokens, counts[0], counts[1], counts[2]];
        sums.iter_mut().zip(row).for_each(|(sum, figure)| *sum += figure);
    }
    let [raw, own, other, own_facts, other_facts, facts] = sums;
    let [by_own, by_other] = [own, other].map(|shown| saved(raw, shown));
    writeln!(
        text,
        "| **all** | {raw} | {own} | {by_own} % | {own_facts} of {facts} | | {other} | {by_other} % | {other_facts} of {facts} | |"
    )
    .expect("a string");
    text
}
