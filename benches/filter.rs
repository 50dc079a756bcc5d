//! The output filter, in bytes of raw output a second, beside a plain copy of the same bytes.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use token_filter::{Meta, Policy, compact};

fn main() {
    divan::main();
}

/// A build log with a fault in its middle, coloured as tools colour it.
fn log(bytes: usize) -> Vec<u8> {
    let mut log = Vec::with_capacity(bytes + 200);
    let mut number = 0;
    while log.len() < bytes {
        number += 1;
        log.extend(format!("\x1b[32m   Compiling\x1b[0m unit_{number} v1.{number}.0\n").bytes());
        if log.len() / 2 < bytes / 4 && number % 5000 == 0 {
            log.extend(b"error: expected a semicolon\n");
        }
    }
    log
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
