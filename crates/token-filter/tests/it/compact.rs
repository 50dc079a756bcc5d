//! What is folded, what is not, and how it is said.

use std::fmt::Write as _;

use token_filter::{Compacted, Meta, OmissionKind, Policy, Recovery, Stage, compact};

fn run(command: &str, exit: i32, raw: &str) -> Compacted {
    let policy = Policy::default().with_recovery(Recovery::ReadOutput { output_id: "o1".into() });
    compact(&Meta::new(command, Some(exit)), raw.as_bytes(), &policy)
}

fn check(command: &str, exit: i32, raw: &str, expected: &str) {
    assert_eq!(run(command, exit, raw).text, expected);
}

/// Lines made from their number.
pub(crate) fn lines(count: u32, line: impl Fn(u32) -> String) -> String {
    (0..count).fold(String::new(), |mut all, number| {
        let _done = writeln!(all, "{}", line(number));
        all
    })
}

#[test]
fn chatter_folds_and_the_odd_line_stays() {
    let raw = lines(400, |n| match n {
        200 => "2026-03-04 09:00:00 disk three hums louder than before".into(),
        _ => format!("2026-03-04 09:00:00 worker {n}: batch {} done", n * 31 % 977),
    });
    check(
        "./workers",
        0,
        &raw,
        "2026-03-04 09:00:00 worker 0: batch 0 done\n\
         2026-03-04 09:00:00 worker 1: batch 31 done\n\
         [… 197 similar lines omitted, 3-199: read_output(output_id=\"o1\", offset=2, limit=197)]\n\
         2026-03-04 09:00:00 worker 199: batch 307 done\n\
         2026-03-04 09:00:00 disk three hums louder than before\n\
         [… 198 similar lines omitted, 202-399: read_output(output_id=\"o1\", offset=201, limit=198)]\n\
         2026-03-04 09:00:00 worker 399: batch 645 done\n",
    );
}

#[test]
fn a_failing_command_is_folded_only_above_the_budget() {
    let line = |n: u32| format!("2026-03-04 09:00:00 worker {n}: it is {} now", n * 31 % 977);
    let below = run("./workers", 1, &lines(300, line));
    assert!(!below.truncated && below.omitted.is_empty());
    let above = run("./workers", 1, &lines(3_000, line));
    assert!(above.truncated && above.stats.out_tokens < 8_000);
}

#[test]
fn rows_of_data_are_whole_below_the_budget() {
    let table = lines(150, |n| format!(" {n:3} | customer{n} | {} | open", n * 7_919 % 10_007));
    let processes = lines(150, |n| format!("root  {n:5}  0.{}  0.1  /usr/sbin/daemon -{n}", n % 7));
    let sheet = lines(300, |n| format!("{n},eu,{},2026-03-04 10:00:00,ok", n * 7_919 % 10_007));
    for raw in [table, processes, sheet] {
        let answer = run("./query", 0, &raw);
        assert!(!answer.truncated, "{}", answer.text);
        for word in
            raw.lines().filter_map(|line| line.split([' ', ',']).find(|word| word.len() > 3))
        {
            assert!(answer.text.contains(word), "{word}");
        }
    }
}

#[test]
fn two_joined_outputs_keep_the_facts_of_both() {
    let mut raw = lines(300, |n| format!("test group::case_{n} ... ok"));
    raw += "test result: ok. 300 passed; 0 failed\n==> second part\n";
    raw += &lines(40, |n| format!("host{n}  {}  up", n * 7_919 % 10_007));
    let text = run("make all", 0, &raw).text;
    assert!(text.contains("300 passed") && text.contains("==> second part"));
    assert!((0..40).all(|n| text.contains(&format!("{}", n * 7_919 % 10_007))), "{text}");
}

#[test]
fn small_outputs_are_cleaned_and_left_alone() {
    let raw = lines(20, |n| format!("check {n} ok"));
    check("./hook", 0, &raw, &raw);
    check("./hook", 0, "10%\r99%\rdone\u{1b}[K\n", "done\n");
    check("true", 0, "", "");
}

#[test]
fn equal_errors_fold_and_different_ones_do_not() {
    let raw = lines(60, |n| format!("2026-03-04 09:00:{n:02} ERROR order {} declined", n / 3 * 37));
    let text = run("./orders", 0, &raw).text;
    assert!((0..20).all(|n| text.contains(&format!("order {} declined", n * 37))), "{text}");
    let raw = lines(200, |n| format!("2026-03-04 09:00:{:02} ERROR link down", n % 60));
    assert!(run("./link", 0, &raw).stats.out_tokens < 200);
}

#[test]
fn a_server_error_among_good_answers_stays() {
    let raw = lines(300, |n| {
        let status = if n == 150 { 503 } else { 200 };
        format!("2026-03-04T09:00:00Z INFO http: GET /v1/items/{n} {status} {}ms", n % 90)
    });
    assert!(run("./serve", 0, &raw).text.contains("/v1/items/150 503"));
}

#[test]
fn bytes_are_described_and_readable_lines_among_them_shown() {
    let mut raw: Vec<u8> =
        (0..4_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    raw.extend_from_slice(b"\nthe header says something readable\n");
    let answer = compact(&Meta::new("cat x", Some(0)), &raw, &Policy::default());
    assert!(answer.text.starts_with("[… binary output, unknown format, "), "{}", answer.text);
    assert!(answer.text.ends_with("the header says something readable\n"));
    assert!(answer.omitted.iter().all(|part| part.kind == OmissionKind::Binary));
    assert!(answer.stats.stages.iter().any(|saving| saving.stage == Stage::Decode));
}

#[test]
fn without_a_way_back_nothing_is_promised() {
    let raw = lines(400, |n| format!("[info] queue depth {n}"));
    let answer = compact(&Meta::new("./q", Some(0)), raw.as_bytes(), &Policy::default());
    assert!(answer.text.contains("similar lines not shown]"), "{}", answer.text);
    assert!(!answer.text.contains("read_output") && answer.truncated);
}

#[test]
fn every_failing_name_is_shown_before_all_that_is_told_of_them() {
    let raw = lines(90, |n| {
        format!(
            "=====\nFAIL: test_{n:03} (many.Ledger.test_{n:03})\n-----\nTraceback (most recent call last):\n  \
             File \"many.py\", line {n}, in test_{n:03}\n    self.assertEqual(a, b)\n\
             AssertionError: {{'a': {n}, 'b': [1, 2, 3]}} != {{'a': {n}, 'b': [1, 2, {n}]}}\n- {{'a': {n}}}\n?     ^\n"
        )
    });
    let text = run("python3 -m unittest", 1, &raw).text;
    let shown = |n: u32| text.contains(&format!("FAIL: test_{n:03} "));
    assert_eq!((0..90).filter(|&n| !shown(n)).collect::<Vec<_>>(), Vec::<u32>::new(), "{text}");
}

#[test]
fn a_long_diff_names_every_file() {
    let raw = lines(50, |n| {
        let changed = lines(12, |row| {
            format!("-    row_{n}_{row} = load({row})\n+    row_{n}_{row} = fetch({n})")
        });
        format!(
            "diff --git a/src/part{n}.py b/src/part{n}.py\n--- a/src/part{n}.py\n+++ b/src/part{n}.py\n@@ -1,12 +1,12 @@\n{changed}"
        )
    });
    let text = run("git diff", 0, &raw).text;
    let shown = |n: u32| text.contains(&format!("diff --git a/src/part{n}.py"));
    assert_eq!((0..50).filter(|&n| !shown(n)).collect::<Vec<_>>(), Vec::<u32>::new(), "{text}");
}

#[test]
fn a_finding_keeps_the_name_of_its_file() {
    let raw = lines(60, |file| {
        let finding = |row: u32| {
            if (file, row) == (41, 2) {
                "  15:5  error    Promise returned is not awaited  no-floating-promises".to_owned()
            } else {
                format!(
                    "  {}:3  warning  Unexpected any. Specify a different type  no-explicit-any",
                    row * 7 + 1
                )
            }
        };
        format!("\n/w/src/mod{file}.ts\n{}", lines(6, finding))
    });
    for budget in [8_000, 4_000, 1_500] {
        let policy = Policy::default().with_budget_tokens(budget);
        let text = compact(&Meta::new("npx eslint .", Some(1)), raw.as_bytes(), &policy).text;
        let (above, _) = text.split_once("  15:5  error ").unwrap();
        let name = above.lines().rfind(|line| line.starts_with("/w/src/"));
        assert_eq!(name, Some("/w/src/mod41.ts"), "at {budget}: {text}");
    }
}
