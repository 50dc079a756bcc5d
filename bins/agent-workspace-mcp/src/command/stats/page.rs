//! The page of `stats --html`: sums, bars, and the last calls of each run in order, their changes folded.
//!
//! Everything that the log holds was written by a model and may be hostile. Each text goes through [`Text`] into an
//! element or a quoted attribute; the page has no script, and its own policy forbids a browser to run or load any.
//! Non-goal: a page that changes by itself.

use std::fmt::{self, Display, Write as _};

use chrono::DateTime;
use serde_json::Value;

use super::{number, percent, signed};
use crate::stats::{Figures, Moment, Summary};

const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>agent-workspace-mcp</title><style>
:root{color-scheme:light dark;--b:#2a6fdb;--r:#c8372d;--g:#2c8a4b;--l:#8884}
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
td,th{padding:.15rem .6rem;text-align:left;font-weight:400;vertical-align:middle}td.n{text-align:right;font-variant-numeric:tabular-nums;width:7rem}
.bar{height:.8rem;border-radius:.2rem;background:var(--b)}.bar.more{background:var(--r)}
.big{display:flex;gap:2.5rem;flex-wrap:wrap}.big b{display:block;font-size:1.7rem}
.run{position:relative;height:1.6rem;background:var(--l);border-radius:.3rem;overflow:hidden;margin:.4rem 0}
.run i{position:absolute;top:0;bottom:0;min-width:2px;background:var(--g)}.run i.bad{background:var(--r)}
details{border-top:1px solid var(--l)}summary{display:grid;grid-template-columns:7rem 11rem 6rem 1fr 8rem;gap:.6rem;cursor:pointer;font-variant-numeric:tabular-nums}
.bad{color:var(--r)}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 1rem;font-size:13px}
del,ins{display:block;text-decoration:none}del{background:#c8372d22}ins{background:#2c8a4b22}
</style></head><body><h1>What the agents did here</h1>
"#;

/// A text of the log, inert in an element and in a quoted attribute; what cannot be seen is spelled out.
struct Text<'a>(&'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(letter)?,
                // Controls, and marks that turn the direction of what follows.
                '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                    write!(f, "{}", letter.escape_unicode())?;
                }
                _ if letter.is_control() => write!(f, "{}", letter.escape_default())?,
                _ => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// The page about `summary`.
pub(super) fn page(summary: &Summary) -> Result<String, fmt::Error> {
    let mut page = HEAD.to_owned();
    let total = summary.total();
    if let (Some(from), Some(to)) = (&summary.from, &summary.to) {
        writeln!(page, "<p>{} to {} (UTC)</p>", Text(from), Text(to))?;
    } else {
        page.push_str("<p>No calls yet.</p>\n");
    }
    page.push_str("<div class=\"big\">");
    for (value, name) in [
        (number(total.calls), "calls".to_owned()),
        (number(total.failed), "failed".to_owned()),
        (number(summary.refusals), "refused".to_owned()),
        (signed(total.saved()), format!("tokens saved{}", percent(&total))),
    ] {
        write!(page, "<div><b>{value}</b>{name}</div>")?;
    }
    page.push_str("</div>\n");
    bars(&mut page, "Tokens saved by day", &summary.days)?;
    bars(&mut page, "Tokens saved by tool", &summary.tools)?;
    tools(&mut page, summary)?;
    slowest(&mut page, summary)?;
    let mut moments: Vec<&Moment> = summary.timeline.iter().collect();
    // The runs of several servers may be mixed in one log.
    let mut pids: Vec<u64> = Vec::new();
    for moment in moments.iter().rev() {
        if !pids.contains(&moment.pid) {
            pids.push(moment.pid);
        }
    }
    for pid in pids {
        let (of_run, others) = moments.into_iter().partition(|moment| moment.pid == pid);
        moments = others;
        run(&mut page, pid, &of_run)?;
    }
    if summary.unreadable > 0 {
        let lines = number(summary.unreadable);
        writeln!(page, "<p class=\"bad\">{lines} lines of the log cannot be read.</p>")?;
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

fn bars<'a>(
    page: &mut String,
    title: &str,
    rows: impl IntoIterator<Item = (&'a String, &'a Figures)>,
) -> fmt::Result {
    let rows: Vec<_> = rows.into_iter().map(|(name, figures)| (name, figures.saved())).collect();
    let most = rows.iter().map(|(_, saved)| saved.unsigned_abs()).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    writeln!(page, "<h2>{title}</h2><table>")?;
    for (name, saved) in rows.into_iter().filter(|(_, saved)| *saved != 0) {
        let width = u128::from(saved.unsigned_abs()) * 100 / u128::from(most);
        let class = if saved < 0 { "bar more" } else { "bar" };
        writeln!(
            page,
            "<tr><th>{}</th><td class=\"n\">{}</td><td style=\"width:60%\"><div class=\"{class}\" style=\"width:{}%\"></div></td></tr>",
            Text(name),
            signed(saved),
            width.max(1)
        )?;
    }
    page.push_str("</table>\n");
    Ok(())
}

fn tools(page: &mut String, summary: &Summary) -> fmt::Result {
    page.push_str("<h2>Tools</h2><table><tr><th>tool</th><th>calls</th><th>failed</th><th>mean ms</th><th>tokens out</th></tr>\n");
    for (tool, figures) in &summary.tools {
        let mean = figures.duration_ms / figures.calls.max(1);
        write!(page, "<tr><th>{}</th>", Text(tool))?;
        for value in [figures.calls, figures.failed, mean, figures.tokens_out] {
            write!(page, "<td>{}</td>", number(value))?;
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
    if summary.failures.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>Failures</h2><table>\n");
    let mut failures: Vec<_> = summary.failures.iter().collect();
    failures.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (kind, count) in failures {
        writeln!(page, "<tr><th>{}</th><td class=\"n\">{}</td></tr>", Text(kind), number(*count))?;
    }
    page.push_str("</table>\n");
    Ok(())
}

fn slowest(page: &mut String, summary: &Summary) -> fmt::Result {
    if summary.slowest.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>Slowest calls</h2><table>\n");
    for slow in &summary.slowest {
        let (ms, tool) = (number(slow.duration_ms), Text(&slow.tool));
        let arguments: String = slow.arguments.chars().take(200).collect();
        writeln!(
            page,
            "<tr><td class=\"n\">{ms} ms</td><th>{tool}</th><td>{}</td></tr>",
            Text(&arguments)
        )?;
    }
    page.push_str("</table>\n");
    Ok(())
}

/// Milliseconds since 1970; 0 for a time that is none.
fn millis(time: &str) -> i64 {
    DateTime::parse_from_rfc3339(time).map_or(0, |time| time.timestamp_millis())
}

/// One server's calls: a strip with their places in time, then each of them to unfold.
fn run(page: &mut String, pid: u64, moments: &[&Moment]) -> fmt::Result {
    let began = |moment: &Moment| millis(&moment.time).saturating_sub_unsigned(moment.duration_ms);
    let first = moments.iter().map(|moment| began(moment)).min().unwrap_or(0);
    let last = moments.iter().map(|moment| millis(&moment.time)).max().unwrap_or(0);
    let span = last.saturating_sub(first).max(1);
    let start = moments.first().map_or("", |moment| moment.time.as_str());
    writeln!(page, "<h2>Run {pid}, {}</h2><div class=\"run\">", Text(start))?;
    for moment in moments {
        // In hundredths of a percent, in whole numbers.
        let left = i128::from(began(moment).saturating_sub(first)) * 10_000 / i128::from(span);
        let width = i128::from(moment.duration_ms) * 10_000 / i128::from(span);
        let class = if is_bad(moment) { " class=\"bad\"" } else { "" };
        let (name, ms) = (Text(name(moment)), number(moment.duration_ms));
        write!(
            page,
            "<i{class} style=\"left:calc({left}% / 100);width:calc({width}% / 100)\" title=\"{name}, {ms} ms\"></i>"
        )?;
    }
    page.push_str("</div>\n");
    for moment in moments {
        let class = if is_bad(moment) { "bad" } else { "" };
        let clock: String = moment.time.chars().skip(11).take(12).collect();
        let said = match (&moment.error_kind, moment.exit_code) {
            (Some(kind), _) => kind.clone(),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => String::new(),
        };
        let saved = if moment.saved == 0 { String::new() } else { signed(moment.saved) };
        writeln!(
            page,
            "<details><summary><span>{}</span><span>{}</span><span>{} ms</span><span class=\"{class}\">{}</span><span>{saved}</span></summary><pre>",
            Text(&clock),
            Text(name(moment)),
            number(moment.duration_ms),
            Text(&said),
        )?;
        arguments(page, &moment.arguments)?;
        page.push_str("</pre></details>\n");
    }
    Ok(())
}

fn name(moment: &Moment) -> &str {
    match &moment.tool {
        Some(tool) if moment.event == "call" => tool,
        _ => &moment.event,
    }
}

fn is_bad(moment: &Moment) -> bool {
    moment.event != "call" || moment.error_kind.is_some()
}

/// The arguments to read: edits and contents as changes, the rest as it is.
fn arguments(page: &mut String, given: &Value) -> fmt::Result {
    let Value::Object(object) = given else {
        return if given.is_null() { Ok(()) } else { write!(page, "{}", Text(&shown(given))) };
    };
    for (key, value) in object {
        match (key.as_str(), value) {
            ("edits", Value::Array(edits)) => {
                for edit in edits {
                    let Value::Object(fields) = edit else {
                        writeln!(page, "{}", Text(&shown(edit)))?;
                        continue;
                    };
                    for (name, element, sign) in [("old", "del", "-"), ("new", "ins", "+")] {
                        if let Some(Value::String(text)) = fields.get(name) {
                            lines(page, element, sign, text)?;
                        }
                    }
                    for (name, value) in fields.iter().filter(|(name, value)| {
                        !(value.is_string() && matches!(name.as_str(), "old" | "new"))
                    }) {
                        writeln!(page, "{}: {}", Text(name), Text(&shown(value)))?;
                    }
                }
            }
            ("content" | "code", Value::String(text)) => lines(page, "ins", "+", text)?,
            _ => writeln!(page, "{}: {}", Text(key), Text(&shown(value)))?,
        }
    }
    Ok(())
}

/// Each line as an element of its own.
fn lines(page: &mut String, element: &str, sign: &str, text: &str) -> fmt::Result {
    for line in text.lines() {
        write!(page, "<{element}>{sign}{}</{element}>", Text(line))?;
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::stats::Slow;

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
                "p", "div", "b", "h2", "table", "tr", "th", "td", "i", "details", "summary",
                "span", "pre", "del", "ins", "body", "html",
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
        for word in ["<script", "<img", "<link", "<iframe", " src=", " href=", "url(", "@import"] {
            assert!(!page.contains(word), "{word}");
        }
    }

    #[test]
    fn an_edit_is_shown_as_a_change() {
        let mut page = String::new();
        let given = json!({"filepath": "a.py", "edits": [{"old": "x = 1\ny", "new": "x = 2"}]});
        arguments(&mut page, &given).unwrap();
        assert_eq!(page, "<del>-x = 1</del><del>-y</del><ins>+x = 2</ins>filepath: a.py\n");
    }
}
