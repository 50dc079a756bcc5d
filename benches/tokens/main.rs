//! What a model is given of the same outputs: as they are, by the filter of ours, and by `rtk`, a program that wraps
//! commands for the same end. Tokens are the real ones of one tokenizer; beside them stands how many facts, written down
//! from the raw outputs, are still in the text.
//!
//! Two tables: outputs of the filter's corpora that `rtk pipe` has a filter for, and commands in a project that both run
//! in their own way: ours as they are written, `rtk` as its own `rewrite` says. Its best mode for a log is a command of its
//! own. Run it with `cargo bench -p benches --bench tokens`; `-- --write FILE` puts the tables between two marks of a page.
//! `benches/peers` installs `rtk` and `pytest` and names both in variables. Non-goal: the speed of the filter alone, which
//! the bench `filter` measures.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench runs the programs it compares, and prints"
)]

mod commands;
mod corpus;
mod project;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use benches::figures::write_page;
use token_filter::{Meta, Policy, Recovery, compact, count_tokens};

/// A text with its price and the facts it still states.
struct Shown {
    tokens: u64,
    facts: usize,
}

impl Shown {
    /// Facts are groups of strings of which one must be there.
    fn of(text: &str, facts: &[Vec<String>]) -> Self {
        let stated = |group: &&Vec<String>| group.iter().any(|fact| text.contains(fact));
        Self { tokens: count_tokens(text), facts: facts.iter().filter(stated).count() }
    }
}

/// What ours makes of an output, with the way to the rest that the server names.
fn ours(command: &str, exit_code: i32, raw: &[u8]) -> String {
    let recovery = Recovery::ReadOutput { output_id: "o-5f3a".into() };
    let policy = Policy::default().with_recovery(recovery);
    compact(&Meta::new(command, Some(exit_code)), raw, &policy).text
}

/// The other program, started in a home of its own, without a terminal.
struct Rtk {
    program: PathBuf,
    home: PathBuf,
}

impl Rtk {
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let places = std::env::var_os("PATH").unwrap_or_default();
        let own = self.program.parent().map(Path::to_path_buf);
        let places = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&places)));
        command.env("PATH", places.expect("a path")).env("HOME", &self.home);
        command.stdin(Stdio::null());
        command
    }

    fn version(&self) -> String {
        let output = self.command(&self.program).arg("--version").output().expect("rtk");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

/// The program that a variable names.
fn place(variable: &str) -> Option<PathBuf> {
    let place = std::env::var_os(variable).map(PathBuf::from);
    if place.is_none() {
        println!("SKIPPED: {variable} is not set; benches/peers sets it");
    }
    place
}

/// The part of `raw` that `shown` saves, in percent.
fn saved(raw: u64, shown: u64) -> i64 {
    let [raw, shown] = [raw, shown].map(|tokens| i64::try_from(tokens).unwrap_or(i64::MAX));
    (raw - shown) * 100 / raw.max(1)
}

fn main() {
    let variables = ["AGENT_WORKSPACE_BENCH_RTK", "AGENT_WORKSPACE_BENCH_PYTEST"].map(place);
    let [Some(program), Some(pytest)] = variables else { return };
    let base = tempfile::tempdir().expect("a folder");
    let home = base.path().join("home");
    std::fs::create_dir(&home).expect("a home");
    let rtk = Rtk { program, home };
    let text = format!(
        "Measured with {}.\n\n{}\n{}",
        rtk.version(),
        corpus::table(&rtk),
        commands::table(&rtk, &base.path().join("project"), &pytest)
    );
    print!("{text}");
    write_page(["<!-- rtk: begin -->", "<!-- rtk: end -->"], &text);
}
