//! The page of `stats --html`: sums, bars, and the last calls of each run in order, their changes folded.
//!
//! Everything that the log holds was written by a model and may be hostile. Each text goes through [`Text`] into an
//! element or a quoted attribute; the page has no script, and its own policy forbids a browser to run or load any.
//! Its links lead to its own parts. Non-goal: a page that changes by itself.

mod change;
mod text;
mod timeline;

use std::fmt::{self, Write as _};

use self::text::Text;
use self::timeline::{Placed, about, name};
use super::words::{beginning, length, number, percent, signed, subject};
use crate::stats::{Figures, Slow, Summary};

const HEAD: &str = concat!(
    r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>What the agents did here</title><style>
"#,
    include_str!("page/page.css"),
    "</style></head><body><h1>What the agents did here</h1>\n"
);

/// Runs that are unfolded at once.
const OPEN: usize = 3;
/// Refusals that are listed, the last ones.
const REFUSALS: usize = 8;

/// The page about `summary`.
pub(super) fn page(summary: &Summary) -> Result<String, fmt::Error> {
    let mut page = HEAD.to_owned();
    let total = summary.total();
    if let (Some(from), Some(to)) = (&summary.from, &summary.to) {
        let minute = |time: &str| beginning(&time.replace('T', " "), 16).replace('…', "");
        let (from, to) = (minute(from), minute(to));
        writeln!(page, "<p class=\"dim\">{} to {} (UTC)</p>", Text(&from), Text(&to))?;
    } else {
        page.push_str("<p>No calls yet.</p>\n");
    }
    page.push_str("<div class=\"cards\">");
    for (value, name) in [
        (number(total.calls), "calls".to_owned()),
        (number(total.failed), "failed".to_owned()),
        (number(summary.refusals), "refused".to_owned()),
        (signed(total.saved()), format!("tokens saved{}", percent(&total))),
    ] {
        write!(page, "<div><b>{value}</b>{name}</div>")?;
    }
    page.push_str("</div>\n");
    days(&mut page, summary)?;
    tools(&mut page, summary)?;
    slowest(&mut page, summary)?;
    refusals(&mut page, summary)?;
    failures(&mut page, summary)?;
    for (at, run) in timeline::runs(summary.timeline.iter()).iter().enumerate() {
        timeline::run(&mut page, run, at < OPEN)?;
    }
    if summary.unreadable > 0 {
        let lines = number(summary.unreadable);
        writeln!(page, "<p class=\"bad\">{lines} lines of the log cannot be read.</p>")?;
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

/// Each figure's part of the largest one, in percent.
fn part(saved: i64, most: u64) -> u128 {
    u128::from(saved.unsigned_abs()) * 100 / u128::from(most.max(1))
}

/// A column for each day; one alone would say no more than the sums.
fn days(page: &mut String, summary: &Summary) -> fmt::Result {
    let saved = || summary.days.iter().map(|(day, figures)| (day, figures.saved()));
    let Some((best, most)) = saved().max_by_key(|(_, saved)| saved.unsigned_abs()) else {
        return Ok(());
    };
    let ends = summary.days.first_key_value().zip(summary.days.last_key_value());
    let Some(((first, _), (last, _))) = ends.filter(|_| most != 0 && summary.days.len() > 1) else {
        return Ok(());
    };
    writeln!(
        page,
        "<h2>Tokens saved by day</h2><div class=\"dim\">most: {} on {}</div><div class=\"days\">",
        signed(most),
        Text(best)
    )?;
    for (day, saved) in saved() {
        let class = if saved < 0 { " class=\"bad\"" } else { "" };
        let (height, day, saved) = (part(saved, most.unsigned_abs()), Text(day), signed(saved));
        write!(page, "<i{class} style=\"height:{height}%\" title=\"{day}: {saved}\"></i>")?;
    }
    page.push_str("</div><div class=\"ends dim\">");
    for day in [first, last] {
        write!(page, "<span>{}</span>", Text(day))?;
    }
    page.push_str("</div>\n");
    Ok(())
}

/// A row for each tool.
fn tools(page: &mut String, summary: &Summary) -> fmt::Result {
    if summary.tools.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>Tools</h2><div class=\"wide\"><table><tr class=\"dim\"><th>tool</th>");
    for title in ["calls", "failed", "tokens saved"] {
        write!(page, "<th class=\"n\">{title}</th>")?;
    }
    page.push_str("<th></th><th class=\"n\">mean</th><th class=\"n\">tokens out</th></tr>\n");
    let most = summary.tools.values().map(|it| it.saved().unsigned_abs()).max().unwrap_or(0);
    for (tool, figures) in &summary.tools {
        let Figures { calls, failed, duration_ms, tokens_out, .. } = figures;
        let saved = figures.saved();
        write!(page, "<tr><th>{}</th><td class=\"n\">{}</td>", Text(tool), number(*calls))?;
        let class = if *failed > 0 { "n bad" } else { "n" };
        write!(page, "<td class=\"{class}\">{}</td>", number(*failed))?;
        write!(page, "<td class=\"n\">{}</td><td class=\"bars\">", signed(saved))?;
        if saved != 0 {
            let class = if saved < 0 { "bar bad" } else { "bar" };
            write!(page, "<div class=\"{class}\" style=\"width:{}%\"></div>", part(saved, most))?;
        }
        let (mean, out) = (length(duration_ms / calls.max(&1)), number(*tokens_out));
        writeln!(page, "</td><td class=\"n\">{mean}</td><td class=\"n\">{out}</td></tr>")?;
    }
    page.push_str("</table></div>\n");
    Ok(())
}

/// One line of a list that leads to a call, where that is still among the last ones.
fn entry(
    page: &mut String,
    call: Option<usize>,
    left: &str,
    middle: &str,
    about: &str,
) -> fmt::Result {
    let link = call.map_or_else(String::new, |number| format!(" href=\"#c{number}\""));
    writeln!(
        page,
        "<a{link}><span class=\"n\">{}</span><span>{}</span><code>{}</code></a>",
        Text(left),
        Text(middle),
        Text(about)
    )
}

fn slowest(page: &mut String, summary: &Summary) -> fmt::Result {
    if summary.slowest.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>Slowest calls</h2><div class=\"list\">\n");
    for slow in &summary.slowest {
        let Slow { duration_ms, tool, time, arguments } = slow;
        let call = summary.timeline.iter().position(|it| {
            it.time == *time && it.duration_ms == *duration_ms && it.tool.as_ref() == Some(tool)
        });
        let about =
            serde_json::from_str(arguments).map_or_else(|_| arguments.clone(), |it| subject(&it));
        entry(page, call, &length(*duration_ms), tool, &beginning(&about, 200))?;
    }
    page.push_str("</div>\n");
    Ok(())
}

/// What was tried and not let through, the last one first.
fn refusals(page: &mut String, summary: &Summary) -> fmt::Result {
    let moments = summary.timeline.iter().enumerate().rev();
    let refused: Vec<_> = moments
        .filter(|(_, it)| {
            it.is_refused || matches!(it.event.as_str(), "escape" | "denied" | "protected")
        })
        .map(|(number, moment)| Placed { number, moment })
        .take(REFUSALS)
        .collect();
    if refused.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>Refused</h2><div class=\"list\">\n");
    for Placed { number, moment } in refused {
        let clock = beginning(&moment.time.replace('T', " "), 19).replace('…', "");
        let what = match (&moment.error_kind, moment.event.as_str()) {
            (Some(kind), _) => format!("{}: {kind}", name(moment)),
            (None, "denied") => "not in the network's list".to_owned(),
            (None, "protected") => "protected file changed".to_owned(),
            (None, event) => event.to_owned(),
        };
        entry(page, Some(number), &clock, &what, &about(moment))?;
    }
    page.push_str("</div>\n");
    Ok(())
}

fn failures(page: &mut String, summary: &Summary) -> fmt::Result {
    if summary.failures.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>Failed</h2><table>\n");
    let mut failures: Vec<_> = summary.failures.iter().collect();
    failures.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let most = failures.first().map_or(0, |(_, count)| **count);
    for (kind, count) in failures {
        let width = u128::from(*count) * 100 / u128::from(most.max(1));
        writeln!(
            page,
            "<tr><th>{}</th><td class=\"n\">{}</td><td class=\"bars\"><div class=\"bar bad\" style=\"width:{width}%\"></div></td></tr>",
            Text(kind),
            number(*count)
        )?;
    }
    page.push_str("</table>\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HOSTILE: &str = "</pre><script>alert(1)</script>\" onmouseover='x' \u{1b}[2J\u{202e}&lt;";

    /// A log in which every text that it can hold is hostile.
    fn hostile() -> Summary {
        let text = HOSTILE.to_owned();
        let line = json!({
            "time": HOSTILE, "event": "call", "tool": HOSTILE, "outcome": "error", "error_kind": HOSTILE,
            "duration_ms": 3, "pid": 7, "raw_tokens": 50, "out_tokens": 5, "exit_code": 1,
            "arguments": {HOSTILE: HOSTILE, "content": HOSTILE, "edits": [{"old": HOSTILE, "new": HOSTILE, HOSTILE: 1}, HOSTILE]},
        });
        let place = tempfile::tempdir().unwrap();
        let dir =
            cap_std::fs::Dir::open_ambient_dir(place.path(), cap_std::ambient_authority()).unwrap();
        let mut lines = line.to_string();
        for event in ["escape", "denied", "protected", "call"] {
            let mut other = line.clone();
            other["event"] = event.into();
            other["arguments"] = HOSTILE.into();
            lines.push('\n');
            lines.push_str(&other.to_string());
        }
        dir.write(crate::audit::FILE, lines).unwrap();
        let mut summary = Summary::of(&dir).unwrap();
        summary.slowest.push(Slow {
            duration_ms: 1,
            tool: text.clone(),
            time: text.clone(),
            arguments: text,
        });
        summary
    }

    #[test]
    fn nothing_that_the_log_holds_becomes_markup() {
        let page = page(&hostile()).unwrap();
        let body = page.strip_prefix(HEAD).unwrap();
        // Every tag is one of ours, with the attributes that we write.
        for tag in body.split('<').skip(1) {
            let tag = tag.split('>').next().unwrap();
            let name = tag.trim_start_matches('/').split([' ', '>']).next().unwrap();
            let ours = [
                "p", "div", "b", "h2", "table", "tr", "th", "td", "i", "a", "code", "details",
                "summary", "span", "pre", "del", "ins", "body", "html",
            ];
            assert!(ours.contains(&name), "<{tag}>");
            // Outside of quotes nothing but names of attributes is left.
            let bare: String = tag.split('"').step_by(2).collect();
            assert!(!bare.contains("onmouseover") && !bare.contains('\''), "<{tag}>");
        }
        assert!(body.contains("&lt;script&gt;alert(1)"), "the text itself is shown");
        assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    }

    #[test]
    fn the_page_asks_for_nothing_and_runs_nothing() {
        let page = page(&hostile()).unwrap();
        assert!(page.contains("default-src 'none'"));
        for word in ["<script", "<img", "<link", "<iframe", " src=", "url(", "@import"] {
            assert!(!page.contains(word), "{word}");
        }
        // A link leads to a part of the page.
        for link in page.split(" href=").skip(1) {
            assert!(link.starts_with("\"#c"), "{link:.40}");
        }
    }
}
