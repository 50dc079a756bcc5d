//! Edits against the least that any edit must do: find the text once and check that the file is UTF-8.

use std::path::Path;

use divan::{Bencher, black_box};
use fuzzy_edit::{Edit, Options, plan};

/// Lines of a file of 1 MB and of one of 50 MB.
const LINES: [usize; 3] = [1_000, 20_000, 1_000_000];

fn main() {
    divan::main();
}

/// A text file of `lines` lines, 52 bytes each, the last one indented.
fn text(lines: usize) -> String {
    let lines: Vec<String> = (1..lines)
        .map(|line| format!("line {line:>8} with some words that fill up all of it\n"))
        .collect();
    let mut text = lines.concat();
    text.push_str("        the wanted line at the very end\n");
    text
}

/// Plans `edits` on a file without a validator.
fn bench(bencher: Bencher<'_, '_>, text: &str, edits: &[Edit], options: &Options) {
    bencher.bench(|| {
        let plan = plan(black_box(text.as_bytes()), Path::new("f.txt"), edits, options);
        assert!(plan.as_ref().is_ok_and(|plan| plan.applied.len() == edits.len()));
        plan
    });
}

#[divan::bench(args = LINES)]
fn baseline_find_and_check(bencher: Bencher<'_, '_>, lines: usize) {
    let text = text(lines);
    bencher.bench(|| {
        let found = memchr::memmem::find(text.as_bytes(), b"the wanted line at the very end");
        (black_box(found), std::str::from_utf8(black_box(text.as_bytes())).is_ok())
    });
}

/// What any edit costs that hands out the new text in one piece: fresh memory.
#[divan::bench(args = LINES)]
fn baseline_copy(bencher: Bencher<'_, '_>, lines: usize) {
    let text = text(lines);
    bencher.bench(|| black_box(text.as_bytes()).to_vec());
}

#[divan::bench(args = LINES)]
fn exact(bencher: Bencher<'_, '_>, lines: usize) {
    let edits = [Edit::new("the wanted line at the very end", "another")];
    bench(bencher, &text(lines), &edits, &Options::default());
}

#[divan::bench(args = LINES)]
fn exact_splices_only(bencher: Bencher<'_, '_>, lines: usize) {
    let edits = [Edit::new("the wanted line at the very end", "another")];
    bench(bencher, &text(lines), &edits, &Options::default().keep_text(false));
}

#[divan::bench(args = LINES)]
fn fuzzy(bencher: Bencher<'_, '_>, lines: usize) {
    let edits = [Edit::new("  the wanted line at the very end  ", "  another")];
    bench(bencher, &text(lines), &edits, &Options::default());
}

#[divan::bench(args = [1_000, 20_000])]
fn miss_with_report(bencher: Bencher<'_, '_>, lines: usize) {
    let text = text(lines);
    let edits = [Edit::new("        the wamted line at the very end", "another")];
    bencher.bench(|| {
        let plan =
            plan(black_box(text.as_bytes()), Path::new("f.txt"), &edits, &Options::default());
        assert!(plan.as_ref().is_err_and(|error| error.detail.closest.is_some()));
        plan.is_err()
    });
}

/// Edits of whole lines, spread over the file.
fn batch(bencher: Bencher<'_, '_>, lines: usize, count: usize) {
    let text = text(lines);
    let step = lines / count;
    let edit = |line: usize| Edit::new(format!("line {line:>8} with"), format!("row {line} with"));
    let edits: Vec<Edit> = (0..count).map(|number| edit(number * step + 1)).collect();
    bench(bencher, &text, &edits, &Options::default());
}

#[divan::bench(args = [250, 500, 1_000, 2_000])]
fn batch_by_edits(bencher: Bencher<'_, '_>, count: usize) {
    batch(bencher, 20_000, count);
}

#[divan::bench(args = [20_000, 40_000, 80_000])]
fn batch_of_500_by_lines(bencher: Bencher<'_, '_>, lines: usize) {
    batch(bencher, lines, 500);
}
