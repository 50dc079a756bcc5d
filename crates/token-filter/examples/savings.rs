//! Prints what compaction saves on the corpus, by family, in real tokens.
//!
//! `cargo run -p token-filter --example savings [BUDGET] [--cases] [--blind]`
#![expect(clippy::print_stdout, reason = "an example that prints a table")]
#![expect(clippy::disallowed_methods, reason = "the corpus is read from the file system")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a broken corpus must stop the run")]

use std::collections::BTreeMap;

use token_filter::{Meta, Policy, Recovery, compact};

#[path = "../tests/it/case.rs"]
#[expect(dead_code, reason = "shared with the tests")]
mod case;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let budget = arguments.iter().find_map(|word| word.parse().ok()).unwrap_or(8_000);
    let each = arguments.iter().any(|word| word == "--cases");
    let blind = arguments.iter().any(|word| word == "--blind");
    let show = arguments.iter().find(|word| word.contains('/'));
    let policy = Policy::default()
        .with_budget_tokens(budget)
        .with_recovery(Recovery::ReadOutput { output_id: "o-5f3a".into() });
    let mut families: BTreeMap<String, (u64, u64, usize)> = BTreeMap::new();
    let (mut raw_all, mut out_all, mut means, mut lost_all) = (0, 0, Vec::new(), 0);
    for case in if blind { case::blind_corpus() } else { case::corpus() } {
        let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
        let answer = compact(&meta, &case.raw, &policy);
        let raw = case::real_tokens(&String::from_utf8_lossy(&case.raw));
        let out = case::real_tokens(&answer.text);
        let lost = case.lost(&answer.text);
        lost_all += lost.len();
        if show.is_some_and(|id| *id == case.id) {
            println!("{}", answer.text);
        }
        if each {
            let estimate = format!("est {}/{}", answer.stats.raw_tokens, answer.stats.out_tokens);
            let exit = case.facts.exit_code;
            println!(
                "{:34} {raw:>7} -> {out:>6} {:>5} % x{exit} {estimate} {}",
                case.id,
                percent(raw, out),
                if lost.is_empty() { String::new() } else { format!("LOST {lost:?}") }
            );
        }
        let family = case.id.split('/').next().unwrap_or_default();
        let family = families.entry(family.to_owned()).or_default();
        *family = (family.0 + raw, family.1 + out, family.2 + lost.len());
        raw_all += raw;
        out_all += out;
        if raw >= 1_000 {
            means.push(percent(raw, out));
        }
    }
    println!("{:12} {:>8} {:>8} {:>7} {:>5}", "family", "raw", "out", "saved", "lost");
    for (name, (raw, out, lost)) in &families {
        println!("{name:12} {raw:>8} {out:>8} {:>5} % {lost:>5}", percent(*raw, *out));
    }
    let mean = means.iter().sum::<i64>() / i64::try_from(means.len()).unwrap_or(1);
    println!(
        "all at {budget}: {raw_all} -> {out_all}, {} % saved, {lost_all} facts lost",
        percent(raw_all, out_all)
    );
    println!("mean of the {} cases of 1,000 tokens and more: {mean} %", means.len());
}

fn percent(raw: u64, out: u64) -> i64 {
    let (raw, out) =
        (i64::try_from(raw).unwrap_or(i64::MAX), i64::try_from(out).unwrap_or(i64::MAX));
    (raw - out) * 100 / raw.max(1)
}
