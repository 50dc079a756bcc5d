//! The output filter, in bytes of raw output a second, beside a plain copy of the same bytes.
//!
//! A log folds, rows and numbers do not, blobs are what no processor can foresee: the slowest kind bounds the others.
//! A whole run begins with the figures that the filter promises, in one table: time of small and large outputs, throughput
//! of both corpora, the dearest input against the median, and the memory that a gigabyte takes.
#![expect(clippy::print_stdout, reason = "the promised figures are a table of their own")]

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use token_filter::{Meta, Policy, Stream, compact};

#[path = "filter/promises.rs"]
mod promises;

fn main() {
    // A filter or `--test` asks for single benches.
    if std::env::args().skip(1).all(|word| word == "--bench") {
        promises::print();
    }
    divan::main();
}

/// Lines made by `line` until there are `bytes` of them.
fn lines(bytes: usize, line: impl Fn(u64) -> String) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 200);
    let mut number = 0;
    while text.len() < bytes {
        number += 1;
        text.extend(line(number).bytes());
    }
    text
}

/// A build log with a fault now and then, coloured as tools colour it.
fn log(bytes: usize) -> Vec<u8> {
    lines(bytes, |number| {
        let fault = if number % 5_000 == 0 { "error: expected a semicolon\n" } else { "" };
        format!("\x1b[32m   Compiling\x1b[0m unit_{number} v1.{number}.0\n{fault}")
    })
}

/// An output of the kind with that name.
fn output(kind: &str, bytes: usize) -> Vec<u8> {
    match kind {
        "json" => lines(bytes, |n| {
            format!("  {{\n    \"id\": {n},\n    \"name\": \"user{n:04}\"\n  }},\n")
        }),
        "csv" => lines(bytes, |n| format!("2026-03-04,region-{},{},open\n", n % 7, n * 7_919)),
        "numbers" => lines(bytes, |n| format!("{n}\n")),
        "paths" => lines(bytes, |n| format!("src/d{}/f{}.rs\n", n / 3, n * 7 % 97)),
        "blobs" => lines(bytes, |n| {
            let word = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("{word:x}QZ{}aB+{:o}Xk/\n", word.rotate_left(17), word.rotate_left(29))
        }),
        _ => log(bytes),
    }
}

#[divan::bench(args = [50_000, 1_000_000])]
fn baseline_copy(bencher: Bencher<'_, '_>, bytes: usize) {
    let log = log(bytes);
    bencher.counter(BytesCount::new(log.len())).bench(|| black_box(log.clone()));
}

#[divan::bench(args = [50_000, 1_000_000])]
fn compacted(bencher: Bencher<'_, '_>, bytes: usize) {
    let log = log(bytes);
    let (meta, policy) = (Meta::new("make", Some(2)), Policy::default());
    bencher.counter(BytesCount::new(log.len())).bench(|| compact(&meta, black_box(&log), &policy));
}

#[divan::bench(args = ["log", "json", "csv", "numbers", "paths", "blobs"])]
fn compacted_by_kind(bencher: Bencher<'_, '_>, kind: &str) {
    let raw = output(kind, 1_000_000);
    let (meta, policy) = (Meta::new("./run", Some(0)), Policy::default());
    bencher.counter(BytesCount::new(raw.len())).bench(|| compact(&meta, black_box(&raw), &policy));
}

#[divan::bench]
fn streamed(bencher: Bencher<'_, '_>) {
    let raw = log(1_000_000);
    let (meta, policy) = (Meta::new("./run", Some(0)), Policy::default());
    bencher.counter(BytesCount::new(raw.len())).bench(|| {
        let mut stream = Stream::new(&policy);
        for piece in black_box(&raw).chunks(8_192) {
            stream.push(piece);
        }
        stream.finish(&meta)
    });
}
