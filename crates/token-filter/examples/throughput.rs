//! Measures time and throughput on the corpus and on built inputs.
//!
//! `cargo run --release -p token-filter --example throughput [CASE]`
#![expect(clippy::print_stdout, reason = "an example that prints a table")]
#![expect(clippy::disallowed_methods, reason = "the corpus is read from the file system")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a broken corpus must stop the run")]
#![expect(dead_code, reason = "shared with the tests")]

use std::time::{Duration, Instant};

use token_filter::{Meta, Policy, compact};

#[path = "../tests/it/case.rs"]
mod case;

/// Shortest of some runs.
fn time(raw: &[u8]) -> Duration {
    let policy = Policy::default();
    let run = || {
        let start = Instant::now();
        let answer = compact(&Meta::new("./run", Some(0)), raw, &policy);
        assert!(answer.text.is_empty() == raw.is_empty());
        start.elapsed()
    };
    (0..9).map(|_| run()).min().unwrap_or_default()
}

fn report(name: &str, raw: &[u8]) {
    let took = time(raw);
    let micros = took.as_micros().max(1);
    println!(
        "{name:32} {:>9} bytes {:>9} us {:>6} MB/s",
        raw.len(),
        micros,
        raw.len() as u128 / micros
    );
}

fn grown(unit: &[u8], length: usize) -> Vec<u8> {
    unit.iter().copied().cycle().take(length).collect()
}

fn lines(count: u64, line: impl Fn(u64) -> String) -> String {
    (0..count).fold(String::new(), |all, number| all + &line(number))
}

fn main() {
    let mut all = (0_usize, Duration::ZERO);
    let only = std::env::args().nth(1);
    for case in case::all_cases() {
        if only.as_ref().is_some_and(|only| *only != case.id) {
            continue;
        }
        let took = time(&case.raw);
        all = (all.0 + case.raw.len(), all.1 + took);
        if case.raw.len() > 40_000 {
            report(&case.id, &case.raw);
        }
    }
    let rate = all.0 as u128 / all.1.as_micros().max(1);
    println!("{} bytes in {:?}, {rate} MB/s", all.0, all.1);
    if only.is_some() {
        return;
    }
    let log = lines(20_000, |n| {
        format!("2026-03-04 09:00:00 INFO  worker {n}: batch {} done in {}ms\n", n * 7, n % 97)
    });
    report("log, 50 KB", &grown(log.as_bytes(), 50_000));
    report("log, 1 MB", &grown(log.as_bytes(), 1_000_000));
    report(
        "colours, 1 MB",
        &grown(b"\x1b[32mok\x1b[0m test \x1b[1mname\x1b[0m one two three\n", 1_000_000),
    );
    report("progress, 1 MB", &grown(b"downloading 45% of model.bin\r", 1_000_000));
    report("cursor up, 1 MB", &grown(b"\x1b[1A\x1b[2Kbuilding 45%\n", 1_000_000));
    report("cursor up only, 1 MB", &grown(b"\x1b[Ax", 1_000_000));
    report("one line, 1 MB", &grown(b"{\"a\":1,\"b\":\"two\"},", 1_000_000));
    report("one number, 1 MB", &grown(b"31415926", 1_000_000));
    report("blank lines, 1 MB", &grown(b"\n", 1_000_000));
    report("one letter a line, 1 MB", &grown(b"a\n", 1_000_000));
    report("equal lines, 1 MB", &grown(b"src/main.rs: one two\n", 1_000_000));
    report("errors, 1 MB", &grown(b"error: one two three four\n", 1_000_000));
    report("escapes, 1 MB", &grown(b"\x1b", 1_000_000));
    report("unclosed title, 1 MB", &grown(b"\x1b]0;", 1_000_000));
    let noise: Vec<u8> = (0..250_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).rotate_left(9).to_le_bytes())
        .collect();
    report("noise, 1 MB", &noise);
    let distinct = lines(40_000, |n| {
        format!("{:x} {:o} word{}\n", n * 7_919, n * 31, n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    });
    report("distinct lines", distinct.as_bytes());
    let paths = lines(30_000, |n| format!("src/d{}/f{}.rs\n", n / 3, n * 7 % 97));
    report("paths", paths.as_bytes());
}
