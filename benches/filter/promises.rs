//! The promised figures, measured in one run. Non-goal: statistics; each is the shortest of some runs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use token_filter::{Meta, Policy, Stream, clean_screen, compact};

use crate::lines;

/// Bytes of the long stream.
const GIGABYTE: usize = 1 << 30;

/// Measures and prints them all.
pub(super) fn print() {
    // First, while the process is small: the peak never goes down again.
    let before = memory("VmRSS:");
    let start = Instant::now();
    let (raw, out) = gigabyte();
    let took = start.elapsed();
    let growth = memory("VmHWM:").saturating_sub(before);
    println!("1 GB streamed: {took:.1?}, {} MB/s, peak memory +{} KiB", rate(raw, took), growth);
    println!("  answer of {out} tokens");

    let log = log(1_000_000);
    for bytes in [50_000, 1_000_000] {
        let raw = log.get(..bytes).unwrap_or_default();
        println!("log of {bytes} bytes: {:.2?}", shortest(|| compacted(raw)));
    }
    let corpora: Vec<(String, Vec<u8>)> = ["corpus", "corpus_blind"]
        .iter()
        .flat_map(|folder| read(&root().join("crates/token-filter/tests").join(folder)))
        .collect();
    let bytes: usize = corpora.iter().map(|(_, raw)| raw.len()).sum();
    let all = |work: fn(&[u8])| corpora.iter().map(|(_, raw)| shortest(|| work(raw))).sum();
    let (whole, screen): (Duration, Duration) = (all(compacted), all(cleaned));
    println!("{} outputs, {bytes} bytes: {} MB/s", corpora.len(), rate(bytes, whole));
    println!("  screen cleaning alone: {} MB/s", rate(bytes, screen));

    let mut costs: Vec<(f64, String)> = corpora
        .into_iter()
        .chain(built())
        .filter(|(_, raw)| raw.len() >= 10_000)
        .map(|(name, raw)| {
            let bytes = u32::try_from(raw.len()).unwrap_or(u32::MAX);
            (shortest(|| compacted(&raw)).as_secs_f64() * 1e9 / f64::from(bytes), name)
        })
        .collect();
    costs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let median = costs.get(costs.len() / 2).map_or(1.0, |(cost, _)| *cost);
    println!(
        "{} inputs of 10 KB and more, median {median:.1} ns a byte; the dearest:",
        costs.len()
    );
    for (cost, name) in costs.iter().rev().take(3) {
        println!("  {:.1} times the median, {cost:.1} ns a byte: {name}", cost / median);
    }
    println!();
}

fn compacted(raw: &[u8]) {
    let answer = compact(&Meta::new("./run", Some(0)), raw, &Policy::default());
    assert!(answer.text.is_empty() == raw.is_empty());
}

fn cleaned(raw: &[u8]) {
    assert!(clean_screen(raw).is_empty() == raw.is_empty());
}

fn shortest(work: impl Fn()) -> Duration {
    let once = || {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..7).map(|_| once()).min().unwrap_or_default()
}

/// Megabytes a second.
fn rate(bytes: usize, took: Duration) -> u128 {
    bytes as u128 / took.as_micros().max(1)
}

/// Streams a gigabyte of log; returns its bytes and the tokens of the answer.
fn gigabyte() -> (usize, u64) {
    let mut stream = Stream::new(&Policy::default());
    let mut piece = String::with_capacity(70_000);
    let (mut bytes, mut number) = (0, 0_u64);
    while bytes < GIGABYTE {
        piece.clear();
        while piece.len() < 64 * 1024 {
            number += 1;
            piece.push_str("2026-03-04T09:00:00Z INFO worker ");
            piece.push_str(&(number % 977).to_string());
            piece.push_str(": batch ");
            piece.push_str(&number.to_string());
            piece.push_str(" done\n");
        }
        stream.push(piece.as_bytes());
        bytes += piece.len();
    }
    (bytes, stream.finish(&Meta::new("./soak", Some(0))).stats.out_tokens)
}

/// A figure of this process in KiB; 0 where the system does not tell.
#[expect(clippy::disallowed_methods, reason = "the process looks at itself")]
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The outputs below a folder, each with its path.
#[expect(clippy::disallowed_methods, reason = "the corpora are read from the file system")]
fn read(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.is_dir() {
            found.extend(read(&path));
        } else if path.extension().is_some_and(|ending| ending == "raw") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let family = folder.file_name().unwrap_or_default().to_string_lossy();
            found.extend(std::fs::read(&path).map(|raw| (format!("{family}/{name}"), raw)));
        }
    }
    found
}

fn log(bytes: usize) -> Vec<u8> {
    lines(bytes, |n| {
        format!("2026-03-04 09:00:00 INFO  worker {n}: batch {} done in {}ms\n", n * 7, n % 97)
    })
}

/// Inputs made to be slow, a megabyte each.
fn built() -> Vec<(String, Vec<u8>)> {
    let grown = |unit: &[u8]| unit.iter().copied().cycle().take(1_000_000).collect::<Vec<u8>>();
    let noise = (0..250_000_u32)
        .flat_map(|n| n.wrapping_mul(2_654_435_761).rotate_left(9).to_le_bytes())
        .collect();
    let distinct = lines(1_000_000, |n| {
        format!("{:x} {:o} word{}\n", n * 7_919, n * 31, n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    });
    [
        ("log", log(1_000_000)),
        ("colours", grown(b"\x1b[32mok\x1b[0m test \x1b[1mname\x1b[0m one two three\n")),
        ("progress", grown(b"downloading 45% of model.bin\r")),
        ("cursor up", grown(b"\x1b[1A\x1b[2Kbuilding 45%\n")),
        ("cursor up alone", grown(b"\x1b[Ax")),
        ("one line", grown(b"{\"a\":1,\"b\":\"two\"},")),
        ("one number", grown(b"31415926")),
        ("blank lines", grown(b"\n")),
        ("one letter a line", grown(b"a\n")),
        ("equal lines", grown(b"src/main.rs: one two\n")),
        ("errors", grown(b"error: one two three four\n")),
        ("escapes", grown(b"\x1b")),
        ("unclosed title", grown(b"\x1b]0;")),
        ("noise", noise),
        ("distinct lines", distinct),
        ("paths", lines(1_000_000, |n| format!("src/d{}/f{}.rs\n", n / 3, n * 7 % 97))),
        ("tasks", lines(1_000_000, |n| format!("> Task :lib{n}:compileJava UP-TO-DATE\n"))),
    ]
    .map(|(name, raw)| (format!("built: {name}"), raw))
    .into()
}
