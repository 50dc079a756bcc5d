//! The estimate against the real tokenizer.

use token_filter::{Meta, Policy, compact, estimate_tokens};

use crate::case::{all_cases, real_tokens};

/// Largest error, in percent of the real count, and the tokens that short texts may be off besides.
const BOUND: u64 = 15;
const SLACK: u64 = 24;

fn check(id: &str, text: &str) -> Option<String> {
    let real = real_tokens(text);
    let estimate = estimate_tokens(text);
    (estimate.abs_diff(real) > SLACK + real * BOUND / 100)
        .then(|| format!("{id}: {estimate} for {real} ({} %)", estimate * 100 / real.max(1)))
}

#[test]
fn raw_and_compacted_outputs_are_within_the_bound() {
    let mut failures = Vec::new();
    for case in all_cases().into_iter().filter(|case| case.id != "text/binary") {
        failures.extend(check(&case.id, &String::from_utf8_lossy(&case.raw)));
        let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
        let answer = compact(&meta, &case.raw, &Policy::default());
        failures.extend(check(&format!("{} compacted", case.id), &answer.text));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
