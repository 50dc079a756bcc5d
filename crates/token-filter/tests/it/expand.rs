//! An answer read back: rewritings written out, markers taken away, so that what is left must be the shown raw lines.
//!
//! This proves over both corpora that nothing is invented, that the order is the raw order, and that shown lines and
//! omitted ranges together are the output.

use std::collections::BTreeSet;

use token_filter::{Compacted, Meta, OmissionKind, Policy, Recovery, clean_screen, compact};

use crate::case::all_cases;

const OPEN: &str = "[… ";

/// The lines that `text` says were shown.
fn expand(text: &str) -> Vec<String> {
    let mut lines = text.lines();
    let mut shown: Vec<String> = Vec::new();
    while let Some(line) = lines.next() {
        let Some(marker) = line.strip_prefix(OPEN) else {
            shown.push(line.to_owned());
            continue;
        };
        let count = || -> usize {
            let digits = marker.trim_start_matches("rewritten: ");
            let end = digits.find(' ').unwrap();
            digits.get(..end).unwrap().parse().unwrap()
        };
        if marker.ends_with("counting up by 1 …]") {
            let last = lines.next().unwrap();
            let first = shown.last().unwrap().clone();
            counted(&first, last, count(), &mut shown);
            shown.push(last.to_owned());
        } else if marker.ends_with("one for each word in braces]") {
            let end = shown.len() + count();
            while shown.len() < end {
                shown.extend(braces(lines.next().unwrap()));
            }
        } else if marker.ends_with("each under the path it starts with]") {
            let end = shown.len() + count();
            let mut heads: Vec<String> = Vec::new();
            let mut rows: Vec<&str> = Vec::new();
            while shown.len() + heads.len() * rows.len() < end {
                let line = lines.next().unwrap();
                if line.starts_with(|char: char| char.is_ascii_digit()) {
                    rows.push(line);
                    continue;
                }
                if !rows.is_empty() {
                    headed(&heads, &rows, &mut shown);
                    heads.clear();
                    rows.clear();
                }
                heads.extend(braces(line));
            }
            headed(&heads, &rows, &mut shown);
        } else if marker.ends_with("filled with the words of each row]") {
            let form = lines.next().unwrap();
            for _ in 0..count() {
                let words = lines.next().unwrap().split(' ');
                shown.push(words.fold(form.to_owned(), |row, word| row.replacen("{}", word, 1)));
            }
        } else {
            let known = marker.contains(" omitted") || marker.starts_with("they start with: ");
            assert!(known, "no marker of ours: {line}");
        }
    }
    shown
}

/// The `count` lines between `first` and `last`, which differ in one number.
fn counted(first: &str, last: &str, count: usize, shown: &mut Vec<String>) {
    let same = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    let digit = |at: usize| first.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let start = (0..=same).rev().find(|&at| at == 0 || !digit(at - 1)).unwrap();
    let (prefix, rest) = first.split_at(start);
    let suffix = rest.trim_start_matches(|char: char| char.is_ascii_digit());
    let digits = rest.strip_suffix(suffix).unwrap();
    let value: usize = digits.parse().unwrap();
    let width = if digits.starts_with('0') { digits.len() } else { 0 };
    for number in value + 1..=value + count {
        shown.push(format!("{prefix}{number:0width$}{suffix}"));
    }
}

fn braces(line: &str) -> Vec<String> {
    let Some((prefix, rest)) = line.split_once('{') else { return vec![line.to_owned()] };
    let (words, suffix) = rest.split_once('}').unwrap();
    words.split(' ').map(|word| [prefix, word, suffix].concat()).collect()
}

fn headed(heads: &[String], rows: &[&str], shown: &mut Vec<String>) {
    shown.extend(heads.iter().flat_map(|head| rows.iter().map(move |row| head.clone() + row)));
}

/// Whether `line` is `raw`, perhaps with its middle behind markers that count its bytes.
fn is_line(line: &str, raw: &str) -> bool {
    let mut parts = line.split(OPEN);
    let head = parts.next().unwrap();
    let mut at = head.len();
    let mut same = raw.starts_with(head);
    for part in parts {
        let (marker, rest) = part.split_once(" …]").unwrap_or((part, ""));
        let bytes = marker.split(' ').next().and_then(|word| word.parse::<usize>().ok());
        at += bytes.unwrap_or(0);
        same &= raw.get(at..).is_some_and(|raw| raw.starts_with(rest));
        at += rest.len();
    }
    line == raw || (same && at == raw.len())
}

fn check(id: &str, input: &str, answer: &Compacted) {
    let missing: BTreeSet<u64> = answer
        .omitted
        .iter()
        .filter(|part| part.kind != OmissionKind::Cut)
        .flat_map(|part| part.raw_lines.clone())
        .collect();
    let kept = (0..).zip(input.lines()).filter(|(number, _)| !missing.contains(number));
    let mut shown = expand(&answer.text).into_iter();
    for (number, raw) in kept {
        let line = shown.next();
        let same = line.as_ref().is_some_and(|line| is_line(line, raw));
        assert!(same, "{id}: line {number} is\n{raw}\nand shown as\n{line:?}");
    }
    assert_eq!(shown.next(), None, "{id}: a line that the output does not have");
}

#[test]
fn every_answer_reads_back_as_its_raw_lines() {
    for case in all_cases().into_iter().filter(|case| case.id != "text/binary") {
        let input = clean_screen(&case.raw);
        for (budget, exit) in [(8_000, case.facts.exit_code), (4_000, 0), (1_000, 1)] {
            let policy = Policy::default()
                .with_budget_tokens(budget)
                .with_recovery(Recovery::ReadOutput { output_id: "o-5f3a".into() });
            let meta = Meta::new(&case.facts.argv, Some(exit));
            let answer = compact(&meta, input.as_bytes(), &policy);
            check(&format!("{} at {budget}", case.id), &input, &answer);
        }
    }
}
