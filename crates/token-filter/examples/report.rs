//! Measures what compaction saves and loses on both corpora, by family, and writes it into `docs/filter.md`.
//!
//! `cargo run -p token-filter --example report --features o200k` rewrites the table between the two markers; with `--check` it
//! fails if the committed table differs. Counts are real o200k tokens.
#![expect(clippy::print_stdout, reason = "an example that prints a table")]
#![expect(clippy::disallowed_methods, reason = "the corpus is read from the file system")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a broken corpus must stop the run")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use token_filter::{Meta, Policy, Recovery, Stats, compact, count_tokens};

#[path = "../tests/it/case.rs"]
#[expect(dead_code, reason = "shared with the tests")]
mod case;

const OPEN: &str = "<!-- report: begin -->\n";
const CLOSE: &str = "<!-- report: end -->\n";
const BUDGETS: [u64; 2] = [8_000, 4_000];

/// Groups with a target: name, families, least saving in percent, and whether outputs of 1,000 tokens and more alone count.
const TARGETS: &[(&str, &[&str], i64, bool)] = &[
    ("log, script, progress", &["log", "script", "progress"], 90, false),
    ("text, curl", &["text", "curl"], 90, false),
    ("grep, rg", &["grep", "rg"], 75, false),
    ("find, tree, ls", &["find", "tree", "ls"], 60, false),
    ("git", &["git"], 65, false),
    ("cargo, make", &["cargo", "make"], 55, false),
    ("test runs", &["pytest", "unittest", "go", "jest", "vitest", "nodetest"], 65, true),
    ("eslint, tsc, ruff, mypy", &["eslint", "tsc", "ruff", "mypy"], 40, true),
    ("npm, apt, pip, uv", &["npm", "apt", "pip", "uv"], 50, true),
    ("psql, sys, container", &["psql", "sys", "container"], 45, false),
];

/// One output, measured.
struct Measured {
    family: String,
    raw: u64,
    blind: u64,
    out: [u64; 2],
    lost: [usize; 2],
}

#[derive(Default, Clone)]
struct Sum {
    cases: usize,
    raw: u64,
    blind: u64,
    out: [u64; 2],
    lost: [usize; 2],
}

impl Sum {
    fn of<'m>(measured: impl Iterator<Item = &'m Measured>) -> Self {
        measured.fold(Self::default(), |mut sum, it| {
            sum.cases += 1;
            sum.raw += it.raw;
            sum.blind += it.blind;
            for budget in 0..2 {
                sum.out[budget] += it.out[budget];
                sum.lost[budget] += it.lost[budget];
            }
            sum
        })
    }

    fn row(&self, name: &str, into: &mut String) {
        let Self { cases, raw, blind, out, lost } = self;
        let saved = out.map(|out| percent(*raw, out));
        let beyond = i64::try_from(*blind).unwrap() - i64::try_from(out[0]).unwrap();
        writeln!(
            into,
            "| {name} | {cases} | {raw} | {} | {} % | {beyond:+} | {} | {} % | {} |",
            out[0], saved[0], lost[0], saved[1], lost[1]
        )
        .unwrap();
    }
}

fn main() {
    let corpora = [
        ("First corpus", measure(case::corpus())),
        (
            "Second corpus, its facts written before its outputs had been compacted",
            measure(case::blind_corpus()),
        ),
    ];
    let mut table = String::new();
    for (title, measured) in &corpora {
        families(title, measured, &mut table);
    }
    targets(&corpora[0].1, &mut table);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/filter.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(OPEN).unwrap();
    let (old, after) = rest.split_once(CLOSE).unwrap();
    println!("{table}");
    if std::env::args().any(|word| word == "--check") {
        assert!(old == table, "docs/filter.md is not what is measured: run this without --check");
    } else {
        std::fs::write(&path, [before, OPEN, &table, CLOSE, after].concat()).unwrap();
    }
}

fn measure(cases: Vec<case::Case>) -> Vec<Measured> {
    let one = |case: case::Case| {
        let text = String::from_utf8_lossy(&case.raw);
        let raw = count_tokens(&text);
        let blind = match text.char_indices().nth(Stats::BLIND_CUT) {
            Some((end, _)) => count_tokens(text.get(..end).unwrap()),
            None => raw,
        };
        let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
        let answers = BUDGETS.map(|budget| {
            let policy = Policy::default()
                .with_budget_tokens(budget)
                .with_recovery(Recovery::ReadOutput { output_id: "o-5f3a".into() });
            compact(&meta, &case.raw, &policy).text
        });
        Measured {
            family: case.id.split('/').next().unwrap().to_owned(),
            raw,
            blind,
            out: [0, 1].map(|budget| count_tokens(&answers[budget])),
            lost: [0, 1].map(|budget| case.lost(&answers[budget]).len()),
        }
    };
    cases.into_iter().map(one).collect()
}

fn families(title: &str, measured: &[Measured], table: &mut String) {
    writeln!(
        table,
        "{title}, {} outputs:\n\n\
         | family | outputs | raw | shown at 8,000 | saved | beyond a blind cut | lost | saved at 4,000 | lost |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        measured.len()
    )
    .unwrap();
    let mut by_family: BTreeMap<&str, Vec<&Measured>> = BTreeMap::new();
    for it in measured {
        by_family.entry(&it.family).or_default().push(it);
    }
    for (name, of_family) in by_family {
        Sum::of(of_family.into_iter()).row(name, table);
    }
    Sum::of(measured.iter()).row("**all**", table);
    let large: Vec<&Measured> = measured.iter().filter(|it| it.raw >= 1_000).collect();
    let mean = |budget: usize| {
        let sum: i64 = large.iter().map(|it| percent(it.raw, it.out[budget])).sum();
        sum / i64::try_from(large.len()).unwrap()
    };
    let worse = measured.iter().filter(|it| it.out.iter().any(|out| *out > it.raw)).count();
    let unchanged = measured.iter().filter(|it| it.out[0] == it.raw).count();
    let cut = Sum::of(measured.iter());
    writeln!(
        table,
        "\nMean of the {} outputs of 1,000 tokens and more: {} % at 8,000, {} % at 4,000. A blind cut alone saves {} %. Longer than \
         raw: {worse}. As long as raw: {unchanged}.\n",
        large.len(),
        mean(0),
        mean(1),
        percent(cut.raw, cut.blind),
    )
    .unwrap();
}

fn targets(measured: &[Measured], table: &mut String) {
    table.push_str(
        "Targets, on the first corpus at the default budget of 8,000:\n\n\
         | group | outputs | saved at 8,000 | at 4,000 | lost | target | |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | --- |\n",
    );
    for (name, families, target, large) in TARGETS {
        let within =
            |it: &&Measured| families.contains(&it.family.as_str()) && (!large || it.raw >= 1_000);
        let sum = Sum::of(measured.iter().filter(within));
        let saved = sum.out.map(|out| percent(sum.raw, out));
        let verdict = if saved[0] >= *target { "met" } else { "short" };
        let note = if *large { ", 1,000 tokens and more" } else { "" };
        writeln!(
            table,
            "| {name}{note} | {} | {} % | {} % | {} | {target} % | {verdict} |",
            sum.cases, saved[0], saved[1], sum.lost[0]
        )
        .unwrap();
    }
    let rest = measured.iter().filter(|it| it.raw < 300);
    let worse = rest.clone().filter(|it| it.out[0] > it.raw).count();
    writeln!(table, "\nOf {} outputs under 300 tokens {worse} are longer than raw.", rest.count())
        .unwrap();
}

fn percent(raw: u64, out: u64) -> i64 {
    let signed = |tokens: u64| i64::try_from(tokens).unwrap();
    (signed(raw) - signed(out)) * 100 / signed(raw.max(1))
}
