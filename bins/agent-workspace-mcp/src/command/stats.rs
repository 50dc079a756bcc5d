//! `stats`: what the audit log tells, as a chart for a terminal, a page for a browser or as JSON, and whether the log is
//! as it was written.

mod chart;
mod page;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use clap::Args;

use super::say;
use crate::audit::chain;
use crate::config::Config;
use crate::state;
use crate::stats::Summary;

#[derive(Debug, Clone, Args)]
pub(super) struct Options {
    /// Everything as one JSON object
    #[arg(long)]
    json: bool,
    /// One page of HTML with the last calls in order, on stdout; it loads nothing and runs nothing
    #[arg(long, conflicts_with_all = ["json", "verify_audit"])]
    html: bool,
    /// Check that no line of the log was altered, removed or added; exit status 1 if one was
    #[arg(long)]
    verify_audit: bool,
}

pub(super) fn run(options: &Options, config: &Config) -> anyhow::Result<ExitCode> {
    let place = config
        .audit_dir
        .clone()
        .or_else(|| state::default_place(|name| std::env::var_os(name).map(PathBuf::from)))
        .context("no place known: set AUDIT_DIR, XDG_STATE_HOME or HOME")?;
    let Ok(dir) = Dir::open_ambient_dir(&place, ambient_authority()) else {
        bail!("no audit log at {}: nothing was served yet, or set AUDIT_DIR", place.display());
    };
    if options.verify_audit {
        return verify(&dir, &place.display().to_string());
    }
    let summary = Summary::of(&dir).context("the audit log cannot be read")?;
    if options.html {
        say(&page::page(&summary)?)?;
    } else if options.json {
        say(&serde_json::to_string_pretty(&summary)?)?;
    } else {
        say(&chart::chart(&summary)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(dir: &Dir, place: &str) -> anyhow::Result<ExitCode> {
    let verdict = chain::verify(dir).context("the audit log cannot be read")?;
    for fault in &verdict.faults {
        say(&fault.to_string())?;
    }
    let lines = verdict.lines;
    if verdict.faults.is_empty() {
        let range = match (verdict.first, verdict.last) {
            (Some(first), Some(last)) => format!(", number {first} to {last}"),
            _ => String::new(),
        };
        say(&format!("{place}: {lines} lines{range}, each as it was written"))?;
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!("{place}: {} faults in {lines} lines", verdict.faults.len()))?;
    Ok(ExitCode::FAILURE)
}
