//! A line planted anywhere in any output is shown: rarity first, words second.

use token_filter::{Meta, Policy, Recovery, compact};

use crate::case::{Case, all_cases};

/// Lines with usual words.
const ALARMS: &[&str] = &[
    "ERROR replication slot standby_3 dropped: write-ahead log no longer available",
    "fatal: checksum of page 0x7fe does not match",
    "Exception in thread \"reaper\": heap space used up",
    "E: could not lock the ledger, giving up",
    "out of memory: killed process 31337 (indexer)",
    "    panic: runtime error: index out of range [5] with length 3",
    "FAILED tests/test_ledger.py::test_close - balance drifted",
    "TypeError: cannot read properties of undefined (reading 'tariff')",
];

/// Sentences about abnormal events without any usual word.
const PLAIN: &[&str] = &[
    "The operator unplugged the second disk while the copy was still running",
    "Someone else holds the lease on ledger shard nine since Tuesday",
    "Battery backup drained faster than the morning forecast said",
    "clock on replica jumped backwards by eleven minutes",
    "the mirror returned yesterday's snapshot instead of today's",
    "Nobody answered at the pager number given for this rota",
    "water was seen dripping onto rack seventeen",
    "Coolant valve opened by hand, bypassing the interlock",
    "disk is full",
    "кот сидит на сервере и не уходит",
    "Backup tape number four smells of smoke",
    "signature belongs to a key that was withdrawn last spring",
];

/// `raw` with `line` planted before its line `tenth`/10.
fn planted(raw: &[u8], line: &str, tenth: usize) -> Vec<u8> {
    let lines: Vec<&[u8]> = raw.split_inclusive(|&byte| byte == b'\n').collect();
    let at = lines.len() * tenth / 10;
    let mut out = lines.get(..at).unwrap_or_default().concat();
    if !out.is_empty() && !out.ends_with(b"\n") {
        out.push(b'\n');
    }
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
    out.extend(lines.get(at..).unwrap_or_default().concat());
    out
}

fn check(case: &Case, line: &str, tenth: usize, policy: &Policy) -> Option<String> {
    let raw = planted(&case.raw, line, tenth);
    let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
    let text = compact(&meta, &raw, policy).text;
    let whole = text.lines().any(|shown| shown == line);
    (!whole).then(|| format!("{} at {tenth}/10, {}: {line}", case.id, policy.budget_tokens))
}

fn policy(budget: u64) -> Policy {
    Policy::default()
        .with_budget_tokens(budget)
        .with_recovery(Recovery::ReadOutput { output_id: "o-5f3a".into() })
}

/// Every line at every tenth position of every case would be 20 times as much: each position of each case gets one of
/// them, in turn.
fn check_all(lines: &[&str], set: impl Fn(Policy) -> Policy) {
    let policies = [8_000, 4_000].map(|budget| set(policy(budget)));
    let mut failures = Vec::new();
    for (index, case) in all_cases().iter().enumerate() {
        for tenth in 0..=10 {
            let line = lines[(index + tenth) % lines.len()];
            failures.extend(check(case, line, tenth, &policies[(index + tenth) % 2]));
        }
    }
    assert!(failures.is_empty(), "{} lost:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn an_error_line_is_always_shown() {
    check_all(ALARMS, |policy| policy);
}

#[test]
fn a_plain_abnormal_sentence_is_always_shown() {
    check_all(PLAIN, |policy| policy);
}

/// Recipes that would hide everything, were they let.
#[cfg(feature = "recipes")]
const HOSTILE: &[&str] = &[
    "[[recipe]]\nname='all'\n[[recipe.line]]\nclass='drop'\npattern='.'\n",
    "[[recipe]]\nname='all'\n[[recipe.line]]\nclass='group'\npattern='.'\n",
    "[[recipe]]\nname='all'\n[[recipe.line]]\nclass='keep'\npattern='[0-9]'\n[[recipe.line]]\nclass='drop'\n\
     pattern='.'\nstarts=['The ','ERROR ','Backup tape','disk is full','кот ','fatal: ','Someone ','FAILED ']\n",
];

#[cfg(feature = "recipes")]
#[test]
fn no_recipe_hides_a_planted_line() {
    for text in HOSTILE {
        let recipes = token_filter::Recipes::parse(text).unwrap();
        check_all(ALARMS, |policy| policy.with_recipes(recipes.clone()));
        check_all(PLAIN, |policy| policy.with_recipes(recipes.clone()));
    }
}

fn check_dressed(dress: impl Fn(&Case) -> Vec<u8>) {
    let mut failures = Vec::new();
    for case in all_cases().iter().filter(|case| std::str::from_utf8(&case.raw).is_ok()) {
        let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
        let text = compact(&meta, &dress(case), &Policy::default()).text;
        let lost = case.lost(&text);
        if !lost.is_empty() {
            failures.push(format!("{}: {lost:?}", case.id));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_progress_bar_loses_no_fact() {
    check_dressed(|case| {
        let state = |percent: u32| format!("\rfetching parts {percent:>3}% of the whole");
        let bar = (0..=100).map(state).collect::<Vec<_>>().concat() + "\n";
        [bar.as_bytes(), &case.raw, bar.as_bytes()].concat()
    });
}

#[test]
fn a_passing_test_loses_no_fact() {
    for tenth in [0, 5, 10] {
        check_dressed(|case| planted(&case.raw, "test store::tests::adds_two ... ok", tenth));
    }
}

#[test]
fn colour_and_crlf_lose_no_fact() {
    for case in all_cases().iter().filter(|case| std::str::from_utf8(&case.raw).is_ok()) {
        let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
        let policy = Policy::default();
        let text = String::from_utf8_lossy(&case.raw).replace("\r\n", "\n");
        let dress =
            |line: &str| ["\u{1b}[33m", line.trim_end_matches('\n'), "\u{1b}[0m\r\n"].concat();
        let dressed: String = text.split_inclusive('\n').map(dress).collect();
        let dressed = compact(&meta, dressed.as_bytes(), &policy).text;
        assert_eq!(case.lost(&dressed), Vec::<String>::new(), "{}", case.id);
    }
}
