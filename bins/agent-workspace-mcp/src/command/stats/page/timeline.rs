//! The calls of one server in time: a lane for each tool, then each call to unfold.
//!
//! A pause in which nothing ran is drawn short and named, so that the calls of an hour's work stay wide enough to see.
//! Positions are whole hundredths of a percent of the track; a browser never gets one beyond 100 %.

use std::fmt::{self, Write as _};

use chrono::DateTime;

use super::change;
use super::text::Text;
use crate::command::stats::words::{beginning, length, signed, subject};
use crate::stats::Moment;

/// The whole width of a track.
const WHOLE: u64 = 10_000;
/// A pause is drawn no wider than this.
const PAUSE: u64 = 400;
/// All pauses together.
const PAUSES: u64 = 4_000;
/// A pause that is shorter than this part of the busy time is drawn as long as it was.
const SHORT: u64 = 25;
/// Characters of a call's subject.
const SUBJECT: usize = 160;

/// A moment with its place in the log, which names it in the page.
#[derive(Clone, Copy)]
pub(super) struct Placed<'m> {
    pub(super) number: usize,
    pub(super) moment: &'m Moment,
}

impl Placed<'_> {
    fn end(self) -> i64 {
        millis(&self.moment.time)
    }

    fn start(self) -> i64 {
        self.end().saturating_sub_unsigned(self.moment.duration_ms)
    }
}

/// Milliseconds since 1970; 0 for a time that is none.
fn millis(time: &str) -> i64 {
    DateTime::parse_from_rfc3339(time).map_or(0, |time| time.timestamp_millis())
}

/// Whether it failed or was refused.
fn is_bad(moment: &Moment) -> bool {
    moment.event != "call" || moment.error_kind.is_some()
}

/// How it is coloured: a command that ended with another code than 0 is no failure, and worth a look.
fn colour(moment: &Moment) -> &'static str {
    match moment.exit_code {
        _ if is_bad(moment) => "bad",
        None | Some(0) => "good",
        Some(_) => "odd",
    }
}

/// The tool, or what happened where there is none.
pub(super) fn name(moment: &Moment) -> &str {
    match &moment.tool {
        Some(tool) if moment.event == "call" => tool,
        _ => &moment.event,
    }
}

/// What a call about something is shown as.
pub(super) fn about(moment: &Moment) -> String {
    beginning(&subject(&moment.arguments), SUBJECT)
}

/// Splits the moments into the runs of single servers, the one that began last first: their lines may be mixed in one
/// log, and a process number comes again.
pub(super) fn runs<'m>(moments: impl Iterator<Item = &'m Moment>) -> Vec<Vec<Placed<'m>>> {
    let mut runs: Vec<(u64, Vec<Placed<'m>>)> = Vec::new();
    for (number, moment) in moments.enumerate() {
        let run = runs.iter_mut().rev().find(|(pid, _)| *pid == moment.pid);
        match run {
            _ if moment.event == "start" => runs.push((moment.pid, Vec::new())),
            Some((_, run)) => run.push(Placed { number, moment }),
            None => runs.push((moment.pid, vec![Placed { number, moment }])),
        }
    }
    runs.into_iter().rev().map(|(_, run)| run).filter(|run| !run.is_empty()).collect()
}

/// A stretch of time in which something ran, or nothing did.
struct Stretch {
    from: i64,
    to: i64,
    /// Where it is drawn.
    at: u64,
    width: u64,
    is_pause: bool,
}

/// Where each time of a run is drawn.
struct Scale(Vec<Stretch>);

impl Scale {
    fn of(run: &[Placed<'_>]) -> Self {
        let mut busy: Vec<(i64, i64)> = run.iter().map(|it| (it.start(), it.end())).collect();
        busy.sort_unstable();
        let mut parts: Vec<(i64, i64, bool)> = Vec::new();
        for (from, to) in busy {
            match parts.last_mut() {
                Some((_, last, _)) if from <= *last => *last = to.max(*last),
                Some((_, last, _)) => {
                    let pause = (*last, from, true);
                    parts.extend([pause, (from, to, false)]);
                }
                None => parts.push((from, to, false)),
            }
        }
        let span = |from: i64, to: i64| to.abs_diff(from);
        let worked: u64 =
            parts.iter().filter(|it| !it.2).map(|it| span(it.0, it.1)).sum::<u64>().max(1);
        let is_long = |from, to| span(from, to) > (worked / SHORT).max(1);
        // What is drawn as long as it was shares the width that the long pauses leave.
        let long = parts.iter().filter(|it| it.2 && is_long(it.0, it.1)).count() as u64;
        let pause = PAUSES.checked_div(long).map_or(0, |share| share.min(PAUSE));
        let left = WHOLE - pause * long;
        let true_to_size: u64 = parts
            .iter()
            .filter(|it| !(it.2 && is_long(it.0, it.1)))
            .map(|it| span(it.0, it.1))
            .sum::<u64>()
            .max(1);
        let mut at = 0;
        let stretches = parts.into_iter().map(|(from, to, is_gap)| {
            let is_pause = is_gap && is_long(from, to);
            let part = u128::from(span(from, to)) * u128::from(left) / u128::from(true_to_size);
            let width = if is_pause { pause } else { u64::try_from(part).unwrap_or(left) };
            let stretch = Stretch { from, to, at, width, is_pause };
            at += width;
            stretch
        });
        Self(stretches.collect())
    }

    fn place(&self, time: i64) -> u64 {
        let Some(stretch) = self.0.iter().find(|it| time <= it.to) else { return WHOLE };
        let (inside, whole) =
            (time.abs_diff(stretch.from), stretch.to.abs_diff(stretch.from).max(1));
        let part = u128::from(inside) * u128::from(stretch.width) / u128::from(whole);
        stretch.at + u64::try_from(part).unwrap_or(0)
    }
}

/// One server's calls.
pub(super) fn run(page: &mut String, run: &[Placed<'_>], is_open: bool) -> fmt::Result {
    let Some(first) = run.first() else { return Ok(()) };
    let scale = Scale::of(run);
    let began = first.moment.time.get(..16).unwrap_or(&first.moment.time).replace('T', " ");
    let lasted = run.iter().map(|it| it.end()).max().unwrap_or(0).abs_diff(first.start());
    let open = if is_open { " open" } else { "" };
    let count = run.iter().filter(|it| it.moment.event == "call").count();
    let bad = run.iter().filter(|it| is_bad(it.moment)).count();
    let failed = if bad > 0 { format!(", {bad} failed or refused") } else { String::new() };
    writeln!(
        page,
        "<details class=\"run\"{open}><summary><h2>{}</h2><span class=\"dim\">{count} calls in {}{failed}; process {}</span></summary>",
        Text(&began),
        length(lasted),
        first.moment.pid
    )?;
    lanes(page, run, &scale)?;
    for placed in run {
        call(page, *placed)?;
    }
    page.push_str("</details>\n");
    Ok(())
}

fn percent(hundredths: u64) -> String {
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

fn lanes(page: &mut String, run: &[Placed<'_>], scale: &Scale) -> fmt::Result {
    page.push_str("<div class=\"lanes\"><div class=\"pauses\">");
    for pause in scale.0.iter().filter(|it| it.is_pause) {
        let nothing = length(pause.to.abs_diff(pause.from));
        let (left, width) = (percent(pause.at), percent(pause.width));
        write!(
            page,
            "<i style=\"left:{left};width:{width}\" title=\"nothing ran for {nothing}\"></i>"
        )?;
    }
    page.push_str("</div>\n");
    let mut names: Vec<&str> = Vec::new();
    for placed in run {
        let name = name(placed.moment);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for lane in names {
        write!(
            page,
            "<div class=\"lane\"><span>{}</span><div class=\"track\">",
            Text(&beginning(lane, 40))
        )?;
        for Placed { number, moment } in run.iter().filter(|it| name(it.moment) == lane) {
            let placed = Placed { number: *number, moment };
            let (from, to) = (scale.place(placed.start()), scale.place(placed.end()));
            let class = colour(moment);
            write!(
                page,
                "<a class=\"{class}\" href=\"#c{number}\" style=\"left:min({},100% - 4px);width:{}\" title=\"{}, {}: {}\"></a>",
                percent(from),
                percent(to.saturating_sub(from)),
                Text(lane),
                length(moment.duration_ms),
                Text(&about(moment)),
            )?;
        }
        page.push_str("</div></div>\n");
    }
    let (first, last) = (scale.0.first(), scale.0.last());
    if let Some((first, last)) = first.zip(last) {
        let whole = length(last.to.abs_diff(first.from));
        writeln!(
            page,
            "<div class=\"lane axis\"><span></span><div><span>0</span><span>{whole}</span></div></div>"
        )?;
    }
    page.push_str("</div>\n");
    Ok(())
}

fn call(page: &mut String, Placed { number, moment }: Placed<'_>) -> fmt::Result {
    let class = colour(moment);
    let clock: String = moment.time.chars().skip(11).take(8).collect();
    let said = match (&moment.error_kind, moment.exit_code) {
        (Some(kind), _) if moment.is_refused => format!("refused: {kind}"),
        (Some(kind), _) => kind.clone(),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => String::new(),
    };
    let saved = match moment.saved {
        0 => String::new(),
        saved => format!("{} saved", signed(saved)),
    };
    writeln!(
        page,
        "<details class=\"call\"><summary><span class=\"dim\">{}</span><span class=\"tool\">{}</span><code>{}</code><span class=\"n\">{}</span><span class=\"{class}\">{}</span><span class=\"n dim\">{saved}</span></summary><pre id=\"c{number}\">",
        Text(&clock),
        Text(name(moment)),
        Text(&about(moment)),
        length(moment.duration_ms),
        Text(&said),
    )?;
    change::arguments(page, &moment.arguments)?;
    page.push_str("</pre></details>\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(time: &str, duration_ms: u64, pid: u64, event: &str) -> Moment {
        Moment {
            time: format!("2026-11-30T{time}Z"),
            pid,
            event: event.to_owned(),
            is_refused: false,
            tool: Some("run_bash".to_owned()),
            error_kind: None,
            duration_ms,
            saved: 0,
            exit_code: None,
            arguments: serde_json::Value::Null,
        }
    }

    /// Where the calls are drawn, in percent: from and to.
    fn check(calls: &[(&str, u64)], expected: &[(u64, u64)]) {
        let moments: Vec<_> = calls.iter().map(|(time, ms)| moment(time, *ms, 1, "call")).collect();
        let run: Vec<_> = moments.iter().map(|moment| Placed { number: 0, moment }).collect();
        let scale = Scale::of(&run);
        let place = |time| scale.place(time).div_ceil(100);
        let drawn: Vec<_> = run.iter().map(|it| (place(it.start()), place(it.end()))).collect();
        assert_eq!(drawn, expected);
    }

    #[test]
    fn calls_without_a_pause_are_true_to_size() {
        check(&[("10:00:01", 1_000), ("10:00:04", 3_000)], &[(0, 25), (25, 100)]);
    }

    #[test]
    fn a_long_pause_is_drawn_short() {
        check(&[("10:00:01", 1_000), ("11:00:00", 1_000)], &[(0, 48), (52, 100)]);
    }

    #[test]
    fn many_pauses_leave_room_for_the_calls() {
        let times: Vec<String> = (10..60).map(|minute| format!("10:{minute}:00")).collect();
        let moments: Vec<_> = times.iter().map(|time| moment(time, 1_000, 1, "call")).collect();
        let run: Vec<_> = moments.iter().map(|moment| Placed { number: 0, moment }).collect();
        let scale = Scale::of(&run);
        let calls = scale.0.iter().filter(|it| !it.is_pause).map(|it| it.width).sum::<u64>();
        assert!((5_900..=7_000).contains(&calls), "{calls}");
        assert!(scale.0.iter().all(|it| it.at + it.width <= WHOLE));
    }

    #[test]
    fn calls_at_one_time_and_without_a_time_have_a_place() {
        check(&[("10:00:02", 2_000), ("10:00:01", 0)], &[(0, 100), (50, 50)]);
        check(&[("x", 5)], &[(0, 100)]);
        check(&[("10:00:01", 0), ("10:00:01", 0)], &[(0, 0), (0, 0)]);
        check(&[("10:00:01", u64::MAX)], &[(0, 100)]);
    }

    #[test]
    fn a_start_begins_a_run_of_its_own_even_with_the_same_process_number() {
        let moments = [
            moment("10:00:00", 0, 1, "call"),
            moment("10:00:01", 0, 1, "start"),
            moment("10:00:02", 0, 2, "start"),
            moment("10:00:03", 0, 1, "call"),
            moment("10:00:04", 0, 3, "start"),
        ];
        let runs: Vec<Vec<usize>> = runs(moments.iter())
            .into_iter()
            .map(|run| run.iter().map(|it| it.number).collect())
            .collect();
        assert_eq!(runs, [[3], [0]]);
    }
}
