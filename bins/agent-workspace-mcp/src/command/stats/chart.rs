//! The chart for a terminal, at most 80 columns wide.
//!
//! Whatever the log holds is shown in characters that cannot drive a terminal.

use std::fmt::{self, Write as _};

use super::words::{length, number, percent, signed, subject};
use crate::stats::{Figures, Summary};

/// Columns of the longest bar.
const BAR: u64 = 44;
/// Columns of a name, of a day or a tool.
const NAME: usize = 20;
/// Columns of what a slow call was about.
const ABOUT: usize = 44;

/// The chart of `summary`.
pub(super) fn chart(summary: &Summary) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let total = summary.total();
    let (Some(from), Some(to)) = (&summary.from, &summary.to) else {
        return Ok("no calls yet".to_owned());
    };
    let day = |time: &str| plain(time.get(..10).unwrap_or(time), 10);
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
    if !summary.tools.is_empty() {
        writeln!(
            text,
            "\n{:<24}{:>12}{:>12}{:>14}{:>16}",
            "tool", "calls", "failed", "mean", "tokens out"
        )?;
    }
    for (tool, figures) in &summary.tools {
        let Figures { calls, failed, duration_ms, tokens_out, .. } = figures;
        let mean = length(duration_ms / calls.max(&1));
        let [calls, failed, out] = [calls, failed, tokens_out].map(|it| number(*it));
        writeln!(text, "{:<24}{calls:>12}{failed:>12}{mean:>14}{out:>16}", plain(tool, 23))?;
    }
    if !summary.failures.is_empty() {
        writeln!(text, "\nfailures")?;
        let mut failures: Vec<_> = summary.failures.iter().collect();
        failures.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (kind, count) in failures {
            writeln!(text, "{:>12}  {}", number(*count), plain(kind, 40))?;
        }
    }
    if !summary.slowest.is_empty() {
        writeln!(text, "\nslowest calls")?;
    }
    for slow in &summary.slowest {
        let about = serde_json::from_str(&slow.arguments);
        let about = about.map_or_else(|_| slow.arguments.clone(), |it| subject(&it));
        let (duration, name) = (length(slow.duration_ms), plain(&slow.tool, NAME));
        writeln!(text, "{duration:>12}  {name:<NAME$}  {}", plain(&about, ABOUT))?;
    }
    if summary.unreadable > 0 {
        let lines = number(summary.unreadable);
        writeln!(text, "\n{lines} lines of the log cannot be read: see --verify-audit")?;
    }
    Ok(text)
}

fn bars<'a>(
    text: &mut String,
    title: &str,
    rows: impl IntoIterator<Item = (&'a String, &'a Figures)>,
) -> fmt::Result {
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
        let length =
            (u128::from(saved.unsigned_abs()) * u128::from(BAR)).div_ceil(u128::from(most));
        let bar = if saved > 0 { "█" } else { "░" }.repeat(usize::try_from(length).unwrap_or(0));
        writeln!(text, "{:<NAME$}{:>14} {bar}", plain(name, NAME), signed(saved))?;
    }
    Ok(())
}

/// A text from the log, safe for a terminal, at most so many columns wide.
fn plain(text: &str, most: usize) -> String {
    // Quotes need no escape here; whole escapes alone are shown.
    let shown = |letter: char| match letter {
        '"' | '\'' => letter.to_string(),
        _ => letter.escape_debug().to_string(),
    };
    let (mut line, mut width) = (String::new(), 0);
    let mut letters = text.chars().map(shown).peekable();
    while let Some(letter) = letters.next() {
        // The last column is the ellipsis's, where something follows.
        width += letter.chars().count();
        if width > most || (width == most && letters.peek().is_some()) {
            line.push('…');
            break;
        }
        line.push_str(&letter);
    }
    line
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;
    use cap_std::fs::Dir;
    use insta::assert_snapshot;

    use super::*;

    /// The chart of a log of these lines; no line of it is wider than 80 columns.
    fn check(lines: &[String]) -> String {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        dir.write(crate::audit::FILE, lines.join("\n")).unwrap();
        let text = chart(&Summary::of(&dir).unwrap()).unwrap();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        text
    }

    fn call(day: u32, command: &str, raw: u64) -> String {
        let (month, day) = (day / 28 + 1, day % 28 + 1);
        format!(
            r#"{{"time":"2026-{month:02}-{day:02}T10:00:00.000Z","event":"call","tool":"run_bash","outcome":"ok","duration_ms":{raw},"tokens_out":60,"raw_tokens":{raw},"out_tokens":50,"arguments":{{"command":"{command}"}}}}"#
        )
    }

    #[test]
    fn nothing_and_a_start_alone() {
        assert_snapshot!(check(&[]), @"no calls yet");
        let start = r#"{"time":"2026-11-30T10:00:00.000Z","event":"start"}"#.to_owned();
        assert_snapshot!(check(&[start]), @r"
        2026-11-30 to 2026-11-30 (UTC)

                   0 calls, 0 failed, 0 refused
                   0 tokens printed by commands
                   0 tokens saved
        ");
    }

    #[test]
    fn one_call() {
        assert_snapshot!(check(&[call(0, "make", 1_050)]), @r"
        2026-01-01 to 2026-01-01 (UTC)

                   1 calls, 0 failed, 0 refused
               1,050 tokens printed by commands
               1,000 tokens saved (95 %)

        tokens saved by day
        2026-01-01                   1,000 ████████████████████████████████████████████

        tokens saved by tool
        run_bash                     1,000 ████████████████████████████████████████████

        tool                           calls      failed          mean      tokens out
        run_bash                           1           0         1.1 s              60

        slowest calls
               1.1 s  run_bash              make
        ");
    }

    #[test]
    fn a_year_of_days_is_its_last_month() {
        let lines: Vec<_> =
            (0..336).map(|day| call(day, &"long ".repeat(90), u64::from(day * 400))).collect();
        let text = check(&lines);
        assert_eq!(text.matches("2026-").count(), 31 + 2, "{text}");
    }

    #[test]
    fn what_the_log_holds_cannot_drive_a_terminal() {
        assert_eq!(plain("a\u{1b}[2J\"b\"\n", 40), "a\\u{1b}[2J\"b\"\\n");
        assert_eq!(plain("12345", 5), "12345");
        assert_eq!(plain("123456", 5), "1234…");
        assert_eq!(plain("123\u{1b}", 5), "123…");
    }
}
