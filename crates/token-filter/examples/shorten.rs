//! Shortens what a command printed, as an agent would be shown it: `shorten COMMAND EXIT_CODE < output`.
//!
//! `make 2>&1 | cargo run -p token-filter --example shorten -- make "${PIPESTATUS[0]}"`

use std::io::{self, Read as _, Write as _};

use token_filter::{Meta, Policy, compact};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (command, code) = arguments.next().zip(arguments.next()).ok_or("shorten COMMAND CODE")?;
    let mut raw = Vec::new();
    io::stdin().read_to_end(&mut raw)?;
    let policy = Policy::default().with_budget_tokens(2_000);
    let short = compact(&Meta::new(&command, Some(code.parse()?)), &raw, &policy);
    io::stdout().write_all(short.text.as_bytes())?;
    let (raw, out) = (short.stats.raw_tokens, short.stats.out_tokens);
    writeln!(io::stderr(), "{raw} tokens became {out}, {} gaps", short.omitted.len())?;
    Ok(())
}
