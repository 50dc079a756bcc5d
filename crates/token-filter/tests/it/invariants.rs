//! What holds for any bytes, any budget and any way back.

use proptest::prelude::*;
use token_filter::{Compacted, Meta, OmissionKind, Policy, Recovery, Stream, compact};

use crate::case::{all_cases, real_tokens};
use crate::compact::lines;

pub(crate) fn policy(budget: u64, stored: bool) -> Policy {
    let recovery =
        if stored { Recovery::ReadOutput { output_id: "o1".into() } } else { Recovery::None };
    Policy::default().with_budget_tokens(budget).with_recovery(recovery)
}

/// Lines of the kinds that stages look for, and noise between them.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..9_999_u32).prop_map(|n| format!("2026-03-04 09:00:00 worker {n}: batch done")),
        3 => (0..9_999_u32).prop_map(|n| format!("src/store/file{}.rs:{n}: let x = {n};", n % 7)),
        2 => (0..99_u32).prop_map(|n| format!("test group::case_{n} ... ok")),
        1 => (0..99_u32).prop_map(|n| format!("report_{n:04}.csv")),
        1 => Just("error: connection refused".to_owned()),
        1 => Just("\u{1b}[1A\u{1b}[2K\u{1b}[32mprogress\u{1b}[0m\r45%".to_owned()),
        1 => "[ -~]{0,60}",
        1 => "\\PC{0,20}",
        1 => Just("[… 3 lines omitted, 4-6: read_output(output_id=\"x\", offset=3, limit=3)]".to_owned()),
        1 => Just(String::new()),
    ]
}

pub(crate) fn output() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::collection::vec((line(), 1..40_usize), 0..60).prop_map(|runs| {
        let mut text = String::new();
        for (line, times) in runs {
            for _ in 0..times {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text.into_bytes()
    });
    prop_oneof![3 => lines, 1 => prop::collection::vec(any::<u8>(), 0..4_000)]
}

fn check(raw: &[u8], answer: &Compacted, policy: &Policy) -> Result<(), TestCaseError> {
    let lossy = String::from_utf8_lossy(raw);
    prop_assert_eq!(answer.text.is_empty(), raw.is_empty());
    prop_assert!(real_tokens(&answer.text) <= real_tokens(&lossy) + 2, "never worse");
    prop_assert!(answer.stats.out_tokens <= policy.budget_tokens.max(Policy::MIN_BUDGET));
    let mut next = 0;
    for part in &answer.omitted {
        prop_assert!(part.raw_lines.start >= next && part.raw_lines.start < part.raw_lines.end);
        next = part.raw_lines.end;
    }
    prop_assert!(next <= answer.stats.raw_lines);
    prop_assert_eq!(answer.truncated, !answer.omitted.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_output_is_answered(raw in output(), budget in 0..3_000_u64, stored: bool, failed: bool) {
        let policy = policy(budget, stored);
        let meta = Meta::new("./run", Some(i32::from(failed)));
        let answer = compact(&meta, &raw, &policy);
        check(&raw, &answer, &policy)?;
        prop_assert_eq!(&answer, &compact(&meta, &raw, &policy), "deterministic");
        let again = compact(&meta, answer.text.as_bytes(), &policy);
        prop_assert_eq!(&again.text, &answer.text, "idempotent");
    }

    #[test]
    fn a_stream_in_any_pieces_agrees(raw in output(), sizes in prop::collection::vec(1..500_usize, 1..20)) {
        let policy = policy(1_000, true);
        let meta = Meta::new("./run", Some(0));
        let mut stream = Stream::new(&policy);
        let mut rest = raw.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            stream.push(piece);
            rest = after;
        }
        prop_assert_eq!(stream.finish(&meta), compact(&meta, &raw, &policy));
    }
}

/// A row that was overwritten and kept is a row to later stages, as it is when the answer is read again.
#[test]
fn an_overwritten_row_counts_like_any_other() {
    let hit =
        |file: u32, number: u32| format!("src/store/file{file}.rs:{number}: let x = {number};\n");
    let raw = [
        hit(6, 2_799).repeat(8),
        hit(0, 1_351).repeat(8),
        "\u{1b}[1A\u{1b}[2K\u{1b}[32mprogress\u{1b}[0m\r45%\n".to_owned(),
        "test group::case_0 ... ok\n".repeat(3),
    ]
    .concat();
    let (meta, policy) = (Meta::new("./run", Some(1)), policy(0, false));
    let once = compact(&meta, raw.as_bytes(), &policy);
    assert_eq!(compact(&meta, once.text.as_bytes(), &policy).text, once.text);
}

/// Shown lines and omitted ranges together are the raw lines, in order.
#[test]
fn shown_and_omitted_lines_partition_the_raw_lines() {
    let raw: Vec<String> = (0..3_000).map(|n| format!("{n},{},ok", n * 7_919 % 10_007)).collect();
    let answer =
        compact(&Meta::new("cat t.csv", Some(0)), raw.join("\n").as_bytes(), &policy(1_500, true));
    let mut rebuilt: Vec<&str> = Vec::new();
    let mut gaps = answer.omitted.iter().filter(|part| part.kind == OmissionKind::Gap);
    for line in answer.text.lines() {
        if line.starts_with("[… ") {
            let part = gaps.next().unwrap();
            assert_eq!(part.raw_lines.start, rebuilt.len() as u64, "{line}");
            let index = |line: u64| usize::try_from(line).unwrap();
            let (start, end) = (index(part.raw_lines.start), index(part.raw_lines.end));
            let expected = format!(
                "[… {} lines omitted, {}-{end}: read_output(output_id=\"o1\", offset={start}, limit={})]",
                end - start,
                start + 1,
                end - start,
            );
            assert_eq!(line, expected);
            rebuilt.extend(raw[start..end].iter().map(String::as_str));
        } else {
            rebuilt.push(line);
        }
    }
    assert_eq!(rebuilt, raw);
}

#[test]
fn compacting_a_compacted_output_changes_nothing() {
    for case in all_cases() {
        for budget in [8_000, 4_000, 1_000] {
            let policy = policy(budget, true);
            let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
            let once = compact(&meta, &case.raw, &policy);
            let twice = compact(&meta, once.text.as_bytes(), &policy);
            assert_eq!(once.text, twice.text, "{} at {budget}", case.id);
        }
    }
}

/// Distinct alarming lines are each shown while they fit, wherever they stand and however long the rest is.
#[test]
fn each_distinct_alarm_is_shown_once_at_least() {
    let kinds = ["lock", "lease", "quota", "socket", "ledger", "mirror", "shard", "tape"];
    let alarm = |n: u32| format!("ERROR the {} is gone, nobody holds it", kinds[n as usize / 500]);
    for exit in [0, 1] {
        // Once in the middle of its stretch, or forty times.
        let raw = lines(4_000, |n| match (n / 500 % 2, n % 500) {
            (_, 250) | (0, 460..) => alarm(n),
            _ => format!("[info] queue depth {n}"),
        });
        let text =
            compact(&Meta::new("./q", Some(exit)), raw.as_bytes(), &policy(1_000, true)).text;
        assert!((0..8).all(|kind| text.contains(&alarm(kind * 500))), "{text}");
        assert!(text.contains("queue depth 3999"), "the end of a failing run: {text}");
    }
}

/// The command decides nothing it could leak: it is never repeated, expanded or run.
#[test]
fn a_command_line_is_read_as_text_alone() {
    let raw = lines(2_000, |n| format!("row {n} of {}", n * 7_919 % 10_007));
    let plain = compact(&Meta::new("", Some(0)), raw.as_bytes(), &policy(1_000, true));
    for command in [
        "deploy --token hunter2-secret 'unclosed",
        "a\nb\0c\u{1b}[31m && $(touch /tmp/never) `id`",
        "\"quoted \\\" words\" > /dev/null; terraform\u{feff}",
    ] {
        let answer = compact(&Meta::new(command, Some(0)), raw.as_bytes(), &policy(1_000, true));
        assert_eq!(answer, plain, "{command:?}");
    }
}

/// Nothing but the raw lines speaks of success or failure.
#[test]
fn no_verdict_is_added() {
    let words = ["pass", "fail", "success", "error", "ok", "warning", "test"];
    for case in all_cases() {
        let meta = Meta::new(&case.facts.argv, Some(case.facts.exit_code));
        let answer = compact(&meta, &case.raw, &policy(1_000, true));
        let own = answer.text.lines().filter(|line| line.starts_with("[… "));
        for line in own.filter(|line| !line.starts_with("[… they start with: ")) {
            let said = line.split(|char: char| !char.is_alphabetic());
            assert!(said.clone().all(|word| !words.contains(&word)), "{}: {line}", case.id);
        }
    }
}
