//! The outputs of both corpora for which `rtk pipe` has a filter, by filter.
//!
//! Outputs of git and of `go test` are left out: there `rtk` asks for a form of its own, which these are not. The other
//! table has git.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::{Rtk, Shown, ours, saved};

/// The filter of `rtk pipe` for a command line that begins so.
const FILTERS: [(&str, &str); 12] = [
    ("cargo test", "cargo-test"),
    ("pytest", "pytest"),
    ("go build", "go-build"),
    ("npx tsc", "tsc"),
    ("npx vitest", "vitest"),
    ("grep", "grep"),
    ("rg", "rg"),
    ("find", "find"),
    ("mypy", "mypy"),
    ("ruff check", "ruff-check"),
    ("ruff format", "ruff-format"),
    ("cat journal.txt", "log"),
];
/// Logs by another command.
const LOGS: [&str; 5] = [
    "cat retry.log",
    "tail -n 400 app.log",
    "python3 pipeline.py",
    "python3 sysl.py",
    "python3 /workspace/tools/prog.py svc",
];

#[derive(Default)]
struct Sum {
    outputs: usize,
    raw: u64,
    facts: usize,
    ours: u64,
    ours_facts: usize,
    theirs: u64,
    their_facts: usize,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.outputs += other.outputs;
        self.raw += other.raw;
        self.facts += other.facts;
        self.ours += other.ours;
        self.ours_facts += other.ours_facts;
        self.theirs += other.theirs;
        self.their_facts += other.their_facts;
    }

    fn row(&self, name: &str, into: &mut String) {
        let Self { outputs, raw, facts, ours, ours_facts, theirs, their_facts } = self;
        let [by_ours, by_theirs] = [ours, theirs].map(|shown| saved(*raw, *shown));
        writeln!(
            into,
            "| {name} | {outputs} | {raw} | {ours} | {by_ours} % | {ours_facts} of {facts} | {theirs} | {by_theirs} % | {their_facts} of {facts} |"
        )
        .expect("a string");
    }
}

/// The table, a row for each filter.
pub(crate) fn table(rtk: &Rtk) -> String {
    let mut rows: BTreeMap<&str, Sum> = BTreeMap::new();
    for folder in ["corpus", "corpus_blind"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/token-filter/tests");
        for raw in outputs(&root.join(folder)) {
            let facts = std::fs::read(raw.with_extension("json")).expect("facts");
            let facts: Value = serde_json::from_slice(&facts).expect("JSON");
            let argv = facts["argv"].as_str().expect("a command line");
            if let Some(filter) = filter(argv) {
                let raw = std::fs::read(&raw).expect("an output");
                rows.entry(filter).or_default().add(&measure(rtk, filter, argv, &facts, &raw));
            }
        }
    }
    let mut text =
        "| filter | outputs | raw | ours | saved | facts kept | rtk pipe | saved | facts kept |\n\
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
            .to_owned();
    let mut all = Sum::default();
    for (filter, sum) in &rows {
        sum.row(filter, &mut text);
        all.add(sum);
    }
    all.row("**all**", &mut text);
    text
}

fn filter(argv: &str) -> Option<&'static str> {
    if LOGS.contains(&argv) {
        return Some("log");
    }
    let begins = |start: &str| argv.strip_prefix(start).is_some_and(|rest| !rest.starts_with('-'));
    let simple = !argv.contains(['|', ';']) && !argv.contains(" -ls");
    FILTERS.iter().find(|(start, _)| simple && begins(start)).map(|(_, filter)| *filter)
}

/// The files of outputs below a folder, in order.
fn outputs(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let entries = std::fs::read_dir(folder).expect("a folder of the corpus");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let families = entries(folder).into_iter().filter(|path| path.is_dir());
    let mut outputs: Vec<_> = families.flat_map(|family| entries(&family)).collect();
    outputs.retain(|path| path.extension().is_some_and(|ending| ending == "raw"));
    outputs.sort();
    outputs
}

fn measure(rtk: &Rtk, filter: &str, argv: &str, sidecar: &Value, raw: &[u8]) -> Sum {
    let list = |value: &Value| -> Vec<String> {
        let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    let mut facts: Vec<Vec<String>> =
        list(&sidecar["must_keep"]).into_iter().map(|fact| vec![fact]).collect();
    facts.extend(sidecar["must_keep_any"].as_array().into_iter().flatten().map(list));
    facts.retain(|group| !group.is_empty());
    let exit_code = sidecar["exit_code"].as_i64().and_then(|code| code.try_into().ok());
    let own = Shown::of(&ours(argv, exit_code.unwrap_or(0), raw), &facts);
    let theirs = Shown::of(&piped(rtk, filter, raw), &facts);
    Sum {
        outputs: 1,
        raw: Shown::of(&String::from_utf8_lossy(raw), &facts).tokens,
        facts: facts.len(),
        ours: own.tokens,
        ours_facts: own.facts,
        theirs: theirs.tokens,
        their_facts: theirs.facts,
    }
}

/// What `rtk pipe` makes of an output.
fn piped(rtk: &Rtk, filter: &str, raw: &[u8]) -> String {
    let mut child = rtk
        .command(&rtk.program)
        .args(["pipe", "--filter", filter])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("rtk");
    let mut input = child.stdin.take().expect("its input");
    let output = std::thread::scope(|scope| {
        // It may leave before it has read all.
        let writing = scope.spawn(move || input.write_all(raw));
        let output = child.wait_with_output().expect("its output");
        let written = writing.join().expect("a writer");
        assert!(written.is_ok() || output.status.success(), "rtk pipe --filter {filter} left");
        output
    });
    String::from_utf8_lossy(&output.stdout).into_owned()
}
