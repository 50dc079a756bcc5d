//! Any bytes as output: an answer, never longer than the raw text, the same whole and in pieces.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use token_filter::{Meta, Policy, Recovery, Stream, compact};

#[derive(Debug, Arbitrary)]
struct Input {
    raw: Vec<u8>,
    command: String,
    exit_code: Option<i32>,
    budget: u16,
    recoverable: bool,
    piece: u8,
}

fuzz_target!(|input: Input| {
    let mut policy = Policy::default().with_budget_tokens(u64::from(input.budget));
    if input.recoverable {
        policy = policy.with_recovery(Recovery::ReadOutput { output_id: "0123456789ab".into() });
    }
    let meta = Meta::new(&input.command, input.exit_code);
    let whole = compact(&meta, &input.raw, &policy);
    assert!(whole.stats.out_tokens <= whole.stats.raw_tokens);
    let mut stream = Stream::new(&policy);
    for piece in input.raw.chunks(usize::from(input.piece).max(1)) {
        stream.push(piece);
    }
    assert_eq!(stream.finish(&meta).text, whole.text);
});
