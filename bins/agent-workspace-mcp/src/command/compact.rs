//! `compact`: the output filter alone, raw bytes on stdin, compacted text on stdout.

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use serde_json::json;
use token_filter::{Meta, Policy, Stream};

use super::say;
use crate::config::Config;
use crate::recipes;

#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// The command that printed the output, as a shell would get it
    #[arg(long, default_value = "")]
    command: String,
    /// Its exit code
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    exit_code: Option<i32>,
    /// Tokens that the answer may have [default: the output budget]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<u64>,
    /// Text and figures as one JSON object
    #[arg(long, conflicts_with = "explain")]
    json: bool,
    /// Instead of the text, which stage took which raw lines
    #[arg(long)]
    explain: bool,
}

pub(super) fn run(options: &Options, config: &Config) -> anyhow::Result<ExitCode> {
    let budget = options.budget.unwrap_or(config.output_budget);
    let recipes = recipes::load(config.recipes.as_deref(), None)?;
    let policy = Policy::default().with_budget_tokens(budget).with_recipes(recipes);
    let mut stream = Stream::new(&policy);
    let mut input = std::io::stdin().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = input.read(&mut buffer).context("stdin")?;
        match buffer.get(..read) {
            None | Some([]) => break,
            Some(bytes) => stream.push(bytes),
        }
    }
    let meta = Meta::new(&options.command, options.exit_code);
    if options.explain {
        let (_, explanation) = stream.finish_explained(&meta);
        say(&explanation.to_string())?;
        return Ok(ExitCode::SUCCESS);
    }
    let compacted = stream.finish(&meta);
    if options.json {
        let stats = &compacted.stats;
        let value = json!({
            "text": compacted.text,
            "truncated": compacted.truncated,
            "raw_bytes": stats.raw_bytes,
            "raw_lines": stats.raw_lines,
            "raw_tokens": stats.raw_tokens,
            "out_tokens": stats.out_tokens,
            "saved": stats.saved(),
            "saved_beyond_cut": stats.saved_beyond_cut(),
        });
        say(&value.to_string())?;
    } else if !compacted.text.is_empty() {
        say(&compacted.text)?;
    }
    Ok(ExitCode::SUCCESS)
}
