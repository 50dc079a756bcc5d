//! Edits against the least that any edit must do: find the text once and check that the file is UTF-8.

use std::path::Path;

use divan::{Bencher, black_box};
use fuzzy_edit::{Edit, Options, plan};

fn main() {
    divan::main();
}

/// A text file of `lines` lines, 50 bytes each, the last one indented.
fn text(lines: usize) -> String {
    let lines: Vec<String> = (1..lines)
        .map(|line| format!("line {line:>8} with some words that fill it up\n"))
        .collect();
    let mut text = lines.concat();
    text.push_str("        the wanted line at the very end\n");
    text
}

#[divan::bench(args = [1_000, 20_000, 1_000_000])]
fn baseline_find_and_check(bencher: Bencher<'_, '_>, lines: usize) {
    let text = text(lines);
    bencher.bench(|| {
        let found = memchr::memmem::find(text.as_bytes(), b"the wanted line at the very end");
        (black_box(found), std::str::from_utf8(black_box(text.as_bytes())).is_ok())
    });
}

#[divan::bench(args = [1_000, 20_000, 1_000_000])]
fn exact(bencher: Bencher<'_, '_>, lines: usize) {
    let text = text(lines);
    let edits = [Edit::new("the wanted line at the very end", "another")];
    bencher
        .bench(|| plan(text.as_bytes(), Path::new("f.txt"), &edits, &Options::default()).is_ok());
}

#[divan::bench(args = [1_000, 20_000, 1_000_000])]
fn fuzzy(bencher: Bencher<'_, '_>, lines: usize) {
    let text = text(lines);
    let edits = [Edit::new("  the wanted line at the very end  ", "  another")];
    bencher
        .bench(|| plan(text.as_bytes(), Path::new("f.txt"), &edits, &Options::default()).is_ok());
}

#[divan::bench(args = [1_000, 20_000])]
fn miss_with_report(bencher: Bencher<'_, '_>, lines: usize) {
    let text = text(lines);
    let edits = [Edit::new("        the wamted line at the very end", "another")];
    bencher
        .bench(|| plan(text.as_bytes(), Path::new("f.txt"), &edits, &Options::default()).is_err());
}
