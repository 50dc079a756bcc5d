//! Which stage took which line: every missing line is named once, and every line that is not named is shown.

use std::collections::BTreeSet;

use proptest::prelude::*;
use token_filter::{
    Compacted, Explanation, LineFate, Meta, OmissionKind, Policy, Stage, Stream, clean_screen,
    compact, compact_explained,
};

use crate::case::all_cases;
use crate::compact::lines;
use crate::invariants::{output, policy};

/// The lines of an account that are missing, each with its stage and its kind.
fn missing(explanation: &Explanation) -> Vec<(u64, Stage, OmissionKind)> {
    let named = explanation.taken.iter().filter_map(|it| match it.fate {
        LineFate::Missing(kind) => Some((it, kind)),
        _ => None,
    });
    named.flat_map(|(it, kind)| it.raw_lines.clone().map(move |n| (n, it.stage, kind))).collect()
}

fn check(id: &str, raw: &[u8], answer: &Compacted, explanation: &Explanation) {
    let omitted: Vec<_> = answer
        .omitted
        .iter()
        .flat_map(|part| part.raw_lines.clone().map(|n| (n, part.stage, part.kind)))
        .collect();
    assert_eq!(missing(explanation), omitted, "{id}");
    let mut next = 0;
    for it in &explanation.taken {
        assert!(it.raw_lines.start >= next && !it.raw_lines.is_empty(), "{id}: {explanation}");
        assert_eq!(it.recipe.is_some(), it.stage == Stage::Recipe, "{id}");
        next = it.raw_lines.end;
    }
    assert!(next <= answer.stats.raw_lines, "{id}");
    if answer.omitted.iter().any(|part| part.kind == OmissionKind::Binary) {
        return;
    }
    let shown: BTreeSet<&str> = answer.text.lines().collect();
    let named: BTreeSet<u64> =
        explanation.taken.iter().flat_map(|it| it.raw_lines.clone()).collect();
    for (number, line) in (0..).zip(raw.split_inclusive(|&byte| byte == b'\n')) {
        let line = clean_screen(line);
        let missing = line.lines().find(|line| !shown.contains(line));
        assert!(
            missing.is_none() || named.contains(&number),
            "{id}: line {number} is neither shown nor named: {line:?}\n{explanation}\n{}",
            answer.text
        );
    }
}

#[test]
fn every_line_of_the_corpora_is_shown_or_named() {
    for case in all_cases().into_iter().filter(|case| case.id != "text/binary") {
        for budget in [8_000, 4_000, 1_000] {
            let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
            let policy = policy(budget, true);
            let (answer, explanation) = compact_explained(&meta, &case.raw, &policy);
            assert_eq!(answer, compact(&meta, &case.raw, &policy), "{}", case.id);
            check(&format!("{} at {budget}", case.id), &case.raw, &answer, &explanation);
        }
    }
}

/// With recipes of an operator's own, where the build has any.
fn with_own_recipes(policy: Policy) -> Policy {
    #[cfg(feature = "recipes")]
    let policy = {
        let own = token_filter::Recipes::parse(
            "[[recipe]]\nname='own'\n[[recipe.line]]\nclass='drop'\npattern='file[135]'\n\
             [[recipe.line]]\nclass='keep'\npattern='file6'",
        );
        policy.with_recipes(token_filter::Recipes::builtin().and(&own.unwrap()).unwrap())
    };
    policy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_line_is_shown_or_named(raw in output(), budget in 0..3_000_u64, failed: bool) {
        let policy = with_own_recipes(policy(budget, true));
        let meta = Meta::new("./run", Some(i32::from(failed)));
        let (answer, explanation) = compact_explained(&meta, &raw, &policy);
        prop_assert_eq!(&answer, &compact(&meta, &raw, &policy));
        check("generated", &raw, &answer, &explanation);
    }
}

#[test]
fn a_stream_beyond_its_window_names_what_it_let_go() {
    let mut stream = Stream::new(&policy(4_000, true));
    for number in 0..200_000 {
        stream.push(format!("2026-03-04 09:00:00 worker {number}: batch done\n").as_bytes());
    }
    let (answer, explanation) = stream.finish_explained(&Meta::new("./soak", Some(0)));
    let omitted: u64 = answer.omitted.iter().map(|it| it.raw_lines.end - it.raw_lines.start).sum();
    assert_eq!(missing(&explanation).len() as u64, omitted);
    assert!(explanation.taken.iter().any(|it| it.stage == Stage::Spill), "{explanation}");
}

/// Checks the account of an output as it is printed.
fn check_table(command: &str, raw: &str, expected: &str) {
    let meta = Meta::new(command, Some(0));
    let (_, explanation) = compact_explained(&meta, raw.as_bytes(), &Policy::default());
    assert_eq!(explanation.to_string(), expected);
}

#[test]
fn an_account_reads_as_a_table() {
    let mut raw = "begins\n\u{1b}[1A\u{1b}[2Kdrawn over\n".to_owned();
    raw += &lines(200, |n| format!("[info] queue depth {n}"));
    raw += &lines(50, |n| format!("out/report_{n:04}.csv"));
    check_table(
        "./build",
        &raw,
        "1-2  screen  2 lines drawn over\n\
         5-201  fold  197 similar lines folded\n\
         203-252  records  50 lines written shorter\n",
    );
}

#[cfg(feature = "recipes")]
#[test]
fn an_account_names_the_recipe() {
    let raw = lines(300, |n| format!("> Task :lib{n}:compileJava"));
    check_table(
        "./gradlew build",
        &raw,
        "3-299  recipe  297 similar lines folded by recipe gradle\n",
    );
}
