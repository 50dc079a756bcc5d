//! `stats`: what the audit log tells, as a chart for a terminal, a page for a browser or as JSON, and whether the log is
//! as it was written.

mod page;

use std::fmt::Write as _;
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
use crate::stats::{Figures, Summary};

/// Columns of the longest bar.
const BAR: u64 = 40;
/// Characters of a slow call's arguments.
const ARGUMENTS: usize = 70;

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
        say(&chart(&summary)?)?;
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

fn chart(summary: &Summary) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let total = summary.total();
    let (Some(from), Some(to)) = (&summary.from, &summary.to) else {
        return Ok("no calls yet".to_owned());
    };
    writeln!(text, "{} to {} (UTC)\n", day(from), day(to))?;
    writeln!(
        text,
        "{:>12} calls, {} failed, {} refused",
        number(total.calls),
        number(total.failed),
        number(summary.refusals)
    )?;
    writeln!(text, "{:>12} tokens printed by commands", number(total.raw_tokens))?;
    writeln!(text, "{:>12} tokens saved{}", signed(total.saved()), percent(&total))?;
    bars(&mut text, "tokens saved by day", &summary.days)?;
    bars(&mut text, "tokens saved by tool", &summary.tools)?;
    writeln!(
        text,
        "\n{:<24}{:>10}{:>10}{:>12}{:>14}",
        "tool", "calls", "failed", "mean ms", "tokens out"
    )?;
    for (tool, figures) in &summary.tools {
        let mean = figures.duration_ms / figures.calls.max(1);
        let Figures { calls, failed, tokens_out, .. } = figures;
        writeln!(
            text,
            "{:<24}{:>10}{:>10}{:>12}{:>14}",
            plain(tool, 23),
            number(*calls),
            number(*failed),
            number(mean),
            number(*tokens_out)
        )?;
    }
    if !summary.failures.is_empty() {
        writeln!(text, "\nfailures")?;
        let mut failures: Vec<_> = summary.failures.iter().collect();
        failures.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (kind, count) in failures {
            writeln!(text, "{:>12}  {}", number(*count), plain(kind, 40))?;
        }
    }
    writeln!(text, "\nslowest calls")?;
    for slow in &summary.slowest {
        let (ms, tool) = (number(slow.duration_ms), plain(&slow.tool, 24));
        writeln!(text, "{ms:>12} ms  {tool}  {}", plain(&slow.arguments, ARGUMENTS))?;
    }
    if summary.unreadable > 0 {
        writeln!(
            text,
            "\n{} lines of the log cannot be read: see --verify-audit",
            summary.unreadable
        )?;
    }
    Ok(text)
}

fn bars<'a>(
    text: &mut String,
    title: &str,
    rows: impl IntoIterator<Item = (&'a String, &'a Figures)>,
) -> std::fmt::Result {
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, figures)| (name, figures.saved()))
        .filter(|(_, saved)| *saved != 0)
        .collect();
    let Some(most) = rows.iter().map(|(_, saved)| saved.unsigned_abs()).max() else {
        return Ok(());
    };
    writeln!(text, "\n{title}")?;
    for (name, saved) in rows {
        let length = (saved.unsigned_abs() * BAR).div_ceil(most);
        let bar = if saved > 0 { "█" } else { "░" }.repeat(usize::try_from(length).unwrap_or(0));
        writeln!(text, "{:<18} {bar} {}", plain(name, 18), signed(saved))?;
    }
    Ok(())
}

/// A text from the log, safe for a terminal.
fn plain(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().flat_map(char::escape_debug).take(most).collect();
    shown = shown.replace("\\\"", "\"").replace("\\'", "'");
    shown
}

fn day(time: &str) -> String {
    plain(time, 10)
}

fn percent(figures: &Figures) -> String {
    if figures.raw_tokens == 0 {
        return String::new();
    }
    let percent = i128::from(figures.saved()) * 100 / i128::from(figures.raw_tokens);
    format!(" ({percent} %)")
}

fn signed(number_: i64) -> String {
    let sign = if number_ < 0 { "-" } else { "" };
    format!("{sign}{}", number(number_.unsigned_abs()))
}

/// Digits in groups of three.
fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(signed(-1000), "-1,000");
    }

    #[test]
    fn what_the_log_holds_cannot_drive_a_terminal() {
        assert_eq!(plain("a\u{1b}[2J\"b\"\n", 40), "a\\u{1b}[2J\"b\"\\n");
    }
}
