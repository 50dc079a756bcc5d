//! The estimate against the real tokenizer.

use token_filter::{
    ESTIMATE_ERROR_PERCENT, ESTIMATE_ERROR_TOKENS, Meta, Policy, compact, estimate_tokens,
};

use crate::case::{all_cases, real_tokens};

fn check(id: &str, text: &str) -> Option<String> {
    let real = real_tokens(text);
    let estimate = estimate_tokens(text);
    (estimate.abs_diff(real) > ESTIMATE_ERROR_TOKENS + real * ESTIMATE_ERROR_PERCENT / 100)
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

/// The figures in the documentation of `estimate_tokens`: of texts of at least 300 tokens the largest errors, in
/// percent, and the errors of the sums, in per mill. They are of the default build: recipes decide what is compacted.
#[cfg(feature = "recipes")]
#[test]
fn errors_are_as_documented() {
    let (mut below, mut above, mut sums) = (0, 0, [[0_i64; 2]; 2]);
    for case in all_cases().into_iter().filter(|case| case.id != "text/binary") {
        let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
        let raw = String::from_utf8_lossy(&case.raw).into_owned();
        let compacted = compact(&meta, &case.raw, &Policy::default()).text;
        for (text, sum) in [raw, compacted].iter().zip(&mut sums) {
            let signed = |tokens: u64| i64::try_from(tokens).unwrap();
            let (real, estimate) = (signed(real_tokens(text)), signed(estimate_tokens(text)));
            if real >= 300 {
                let error = (estimate - real) * 100 / real;
                (below, above) = (below.min(error), above.max(error));
            }
            *sum = [sum[0] + real, sum[1] + estimate];
        }
    }
    let totals = sums.map(|[real, estimate]| (estimate - real) * 1_000 / real);
    assert_eq!((below, above, totals), (-14, 17, [-16, -15]));
}
