//! The pipeline: rows from bytes, a fate for every row, text from fates.
//!
//! The order of the stages and the conditions under which each may run stand here and nowhere else.

use std::borrow::Cow;
use std::ops::Range;

use crate::explain::{Explanation, LineFate, Taken};
use crate::mark::Mark;
use crate::marker;
use crate::meta::{Meta, Policy};
use crate::page::Page;
use crate::receipt::{Compacted, Omission, OmissionKind, Stage, StageSaving, Stats};
use crate::row::{Fate, Kind, Row};
use crate::salience;
use crate::shape::Census;
use crate::stage::names::Naming;
use crate::stage::window::Traits;
use crate::stage::{decode, diagnostics, fold, long_line, records, screen, window};
use crate::tokens::{estimate_tokens, line_tokens};

/// Outputs below this many tokens are cleaned and left alone.
const SMALL: u64 = 300;
/// A saving below this many tokens is not taken.
const LEAST_WIN: u64 = 16;

/// Compacts the output of a command.
///
/// `output` is stdout and stderr as they arrived, any bytes. The answer depends on the arguments alone.
///
/// # Security
///
/// `meta.command` is only compared with known names. The output is untrusted and may be hostile: time is linear in its length, memory
/// a small multiple of it; [`Stream`](crate::Stream) bounds that.
///
/// ```
/// use token_filter::{Meta, Policy, compact};
///
/// let raw = b"copied 10%\rcopied 99%\n\x1b[31merror\x1b[0m: disk full\n";
/// let answer = compact(&Meta::new("./backup", Some(1)), raw, &Policy::default());
/// assert_eq!(answer.text, "copied 99%\nerror: disk full\n");
/// assert!(!answer.truncated);
/// ```
pub fn compact(meta: &Meta<'_>, output: &[u8], policy: &Policy) -> Compacted {
    from_bytes(meta, output, policy, false).0
}

/// Compacts like [`compact()`], and tells which stage took which raw lines.
///
/// # Security
///
/// As for [`compact()`]; the account names no text of the output.
pub fn compact_explained(
    meta: &Meta<'_>,
    output: &[u8],
    policy: &Policy,
) -> (Compacted, Explanation) {
    from_bytes(meta, output, policy, true)
}

/// The text that `output` leaves on a screen: escapes, carriage returns, backspaces and cursor movements applied.
///
/// The second stage of [`compact()`] on its own. Linear time; invalid UTF-8 becomes U+FFFD. Overwritten states that are alarming
/// stay above what replaced them.
///
/// ```
/// assert_eq!(token_filter::clean_screen(b"10%\r99%\x1b[K\n\x1b[1mdone\x1b[0m\n"), "99%\ndone\n");
/// ```
pub fn clean_screen(output: &[u8]) -> String {
    joined(&screen::rows(output, 0, false), output.ends_with(b"\n"))
}

fn from_bytes(
    meta: &Meta<'_>,
    output: &[u8],
    policy: &Policy,
    explain: bool,
) -> (Compacted, Explanation) {
    let binary = decode::is_binary(output);
    let rows = screen::rows(output, 0, binary);
    let source = Source {
        bytes: output.len() as u64,
        lines: rows.last().map_or(0, |row| row.raw.end),
        tokens: None,
        blind_tokens: blind_tokens(output),
        ends_in_newline: output.ends_with(b"\n"),
        nature: binary.then(|| decode::nature(output)),
        explain,
    };
    let raw_text = || decode::text(output);
    from_rows(meta, rows, &source, policy, raw_text)
}

/// What is known of the raw output beside its rows.
pub(crate) struct Source {
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    /// Estimated tokens, where the raw text is no longer there to count.
    pub(crate) tokens: Option<u64>,
    /// Estimated tokens of what a blind cut would leave, where it would cut.
    pub(crate) blind_tokens: Option<u64>,
    pub(crate) ends_in_newline: bool,
    /// The format, if the output is no text.
    pub(crate) nature: Option<&'static str>,
    /// Whether to tell which stage took what.
    pub(crate) explain: bool,
}

/// Estimated tokens of the first [`Stats::BLIND_CUT`] characters, if there are more.
pub(crate) fn blind_tokens(output: &[u8]) -> Option<u64> {
    if output.len() <= Stats::BLIND_CUT {
        return None;
    }
    let longest = output.len().min(Stats::BLIND_CUT * 4 + 4);
    let text = decode::text(output.get(..longest).unwrap_or_default());
    let (end, _) = text.char_indices().nth(Stats::BLIND_CUT)?;
    Some(estimate_tokens(text.get(..end).unwrap_or_default()))
}

/// Compacts rows; `raw_text` is asked for where the raw output is the best answer.
pub(crate) fn from_rows<'r>(
    meta: &Meta<'_>,
    rows: Vec<Row<'_>>,
    source: &Source,
    policy: &Policy,
    raw_text: impl Fn() -> Cow<'r, str>,
) -> (Compacted, Explanation) {
    let raw_tokens = source.tokens.unwrap_or_else(|| estimate_tokens(&raw_text()));
    let mut work = Work::new(rows, source, policy, raw_tokens);
    if work.is_settled() {
        let whole = work.render();
        return work.finish(whole, &raw_text);
    }
    let over = work.tokens > policy.budget();
    if over || !meta.failed() {
        work.cut_long_lines(over);
        work.fold(meta);
    }
    let fitted = work.fit();
    work.finish(fitted, &raw_text)
}

/// An output on its way through the stages.
struct Work<'a, 'p> {
    rows: Vec<Row<'a>>,
    traits: Vec<Traits>,
    fates: Vec<Fate>,
    rewrites: Vec<records::Rewrite>,
    /// How rows left out by the budget are named.
    naming: Option<Naming>,
    source: &'p Source,
    policy: &'p Policy,
    /// Price of a typical marker of this output.
    marker: u64,
    /// Estimated tokens of the cleaned text.
    cleaned: u64,
    /// Estimated tokens of what is shown now.
    tokens: u64,
    stats: Stats,
}

impl<'a, 'p> Work<'a, 'p> {
    fn new(rows: Vec<Row<'a>>, source: &'p Source, policy: &'p Policy, raw_tokens: u64) -> Self {
        let mut sample = String::new();
        let lines = source.lines.max(10);
        marker::gap(&(lines / 3..lines), OmissionKind::Similar, &policy.recovery, &mut sample);
        let fates = rows.iter().map(fate).collect();
        let traits = survey(&rows);
        let mut work = Self {
            rows,
            traits,
            fates,
            rewrites: Vec::new(),
            naming: None,
            source,
            policy,
            marker: line_tokens(&sample) + 2,
            cleaned: raw_tokens,
            tokens: raw_tokens,
            stats: Stats {
                raw_bytes: source.bytes,
                raw_lines: source.lines,
                raw_tokens,
                blind_tokens: source.blind_tokens.unwrap_or(raw_tokens),
                ..Stats::default()
            },
        };
        let (stage, after) = match source.nature {
            Some(_) => (Stage::Decode, work.price()),
            None => (Stage::Screen, work.price_plain()),
        };
        work.cleaned = after;
        work.account_as(stage, raw_tokens, after);
        work
    }

    /// Whether the cleaned text is the answer.
    fn is_settled(&self) -> bool {
        let whole = self.source.nature.is_none() && !self.has_holes();
        let done = self.tokens <= self.policy.budget() && self.traits.iter().any(|it| it.marker);
        whole && (self.tokens < SMALL || done)
    }

    fn has_holes(&self) -> bool {
        self.rows.iter().any(|row| row.kind == Kind::Hole)
    }

    /// Notes what `stage` did to the tokens shown.
    fn account(&mut self, stage: Stage) {
        let after = self.price();
        self.account_as(stage, self.tokens, after);
    }

    /// Estimated tokens of what is shown, markers included.
    fn price(&self) -> u64 {
        self.price_of(Fate::is_shown)
    }

    fn price_of(&self, is_shown: impl Fn(Fate) -> bool) -> u64 {
        let mut total = 0;
        let mut gap = false;
        for (it, &fate) in self.traits.iter().zip(&self.fates) {
            let shown = is_shown(fate);
            total += if shown { it.tokens } else { 0 };
            let hidden = !shown && fate != Fate::Trimmed;
            total += if hidden && !gap { self.marker } else { 0 };
            gap = hidden;
        }
        total
    }

    fn cut_long_lines(&mut self, over: bool) {
        let recovery = &self.policy.recovery;
        let mut any = long_line::cut_blobs(&mut self.rows, recovery);
        if over {
            any |= long_line::cut_wide(&mut self.rows, self.policy.budget(), recovery);
        }
        if any {
            self.traits = survey(&self.rows);
            self.account(Stage::LongLine);
        }
    }

    fn fold(&mut self, meta: &Meta<'_>) {
        self.classify(meta);
        diagnostics::trim(&self.rows, &mut self.fates);
        for (fate, it) in self.fates.iter_mut().zip(&self.traits) {
            if *fate == Fate::Trimmed && it.mark.is_kept() {
                *fate = Fate::Headline;
            }
        }
        fold::fold(&self.rows, &self.traits, self.marker, &mut self.fates);
        let alone = self.price_of(|fate| fate.is_shown() || fate.is_by_recipe());
        self.account_as(Stage::Fold, self.tokens, alone);
        self.account(Stage::Recipe);
    }

    /// Asks the recipes what the rows are.
    #[cfg(feature = "recipes")]
    fn classify(&mut self, meta: &Meta<'_>) {
        self.policy.recipes.classify(meta, &self.rows, &mut self.traits);
    }

    #[cfg(not(feature = "recipes"))]
    #[expect(clippy::unused_self, reason = "there are no recipes to ask")]
    fn classify(&self, _meta: &Meta<'_>) {}

    /// Rewrites records and, if that is not enough, drops rows until the text is within the budget.
    fn fit(&mut self) -> Rendered {
        let budget = self.policy.budget();
        let before = self.tokens;
        self.rewrites = self.rewrite();
        let mut rendered = self.render();
        let rewritten = rendered.tokens;
        if rewritten <= budget {
            self.account_as(Stage::Records, before, rewritten);
            return rendered;
        }
        // What rewriting will save again is spent on more rows; if it saves less there, on fewer.
        let mut target = budget * before.clamp(rewritten, rewritten * 4) / rewritten.max(1);
        // Rows that have names are named where they are left out, if that leaves room for whole ones.
        self.naming = Naming::new(&self.rows, &self.fates, budget);
        if let Some(naming) = self.naming {
            target = budget.saturating_sub(naming.price);
        }
        let plan = window::Plan::new(&self.rows, &self.traits, &self.fates, self.marker);
        let fates = self.fates.clone();
        for _ in 0..12 {
            self.fates.clone_from(&fates);
            plan.choose(target, &mut self.fates);
            self.rewrites = if target > budget { self.rewrite() } else { Vec::new() };
            rendered = self.render();
            if rendered.tokens <= budget {
                break;
            }
            target = (target * budget / rendered.tokens.max(1) * 95 / 100).max(target / 2);
        }
        if rendered.tokens > budget {
            // Rows so wide that not one of them fits.
            self.rewrites.clear();
            self.naming = None;
            for fate in self.fates.iter_mut().filter(|fate| fate.is_shown()) {
                *fate = Fate::Dropped;
            }
            rendered = self.render();
        }
        self.account_as(Stage::Window, before, rendered.tokens);
        rendered
    }

    fn account_as(&mut self, stage: Stage, before: u64, after: u64) {
        if after != before {
            self.stats.stages.push(StageSaving {
                stage,
                tokens_before: before,
                tokens_after: after,
            });
        }
        self.tokens = after;
    }

    fn rewrite(&self) -> Vec<records::Rewrite> {
        let mut found = Vec::new();
        let mut start = 0;
        while start < self.fates.len() {
            let shown = |fate: &&Fate| **fate == Fate::Shown;
            let end = start + self.fates.iter().skip(start).take_while(shown).count();
            if end > start {
                found.extend(records::rewrite(&self.rows, &self.traits, start..end));
            }
            start = end + 1;
        }
        found
    }

    fn render(&self) -> Rendered {
        let mut page = Page::new(self.policy, self.naming);
        if let Some(nature) = self.source.nature {
            marker::binary(self.source.bytes, nature, &mut page.text);
            page.text.push('\n');
        }
        let mut rewrites = self.rewrites.iter().peekable();
        let mut skip = 0;
        for (index, (row, &fate)) in self.rows.iter().zip(&self.fates).enumerate() {
            if index < skip {
                continue;
            }
            match fate {
                Fate::Shown => {
                    page.close();
                    if row.cut {
                        page.omitted.push(Omission {
                            raw_lines: row.raw.clone(),
                            kind: OmissionKind::Cut,
                            stage: Stage::LongLine,
                        });
                    }
                    match rewrites.next_if(|rewrite| rewrite.rows.start == index) {
                        Some(rewrite) => {
                            page.line(&rewrite.text);
                            skip = rewrite.rows.end;
                        }
                        None => page.line(&row.text),
                    }
                }
                Fate::Headline => {
                    page.close_gap();
                    page.line(&row.text);
                }
                Fate::Trimmed => page.trim(row.raw.clone()),
                Fate::Folded => page.omit(row.raw.clone(), OmissionKind::Similar, Stage::Fold),
                Fate::Grouped => page.omit(row.raw.clone(), OmissionKind::Similar, Stage::Recipe),
                Fate::Left => page.omit(row.raw.clone(), OmissionKind::Gap, Stage::Recipe),
                Fate::Dropped => {
                    page.omit(row.raw.clone(), OmissionKind::Gap, Stage::Window);
                    page.names.extend(self.naming.and_then(|naming| naming.name(&row.text)));
                }
                Fate::Spilled => page.omit(row.raw.clone(), OmissionKind::Gap, Stage::Spill),
                Fate::Binary => page.omit(row.raw.clone(), OmissionKind::Binary, Stage::Decode),
            }
        }
        page.close();
        let mut text = page.text;
        if !self.source.ends_in_newline && text.ends_with('\n') {
            text.pop();
        }
        Rendered { tokens: estimate_tokens(&text), text, omitted: page.omitted }
    }

    fn finish<'r>(
        self,
        mut rendered: Rendered,
        raw_text: &impl Fn() -> Cow<'r, str>,
    ) -> (Compacted, Explanation) {
        let mut stats = self.stats.clone();
        let cut = self.rows.iter().any(|row| row.cut);
        let mut form = Form::Fitted;
        if self.source.nature.is_none() && !self.has_holes() && !cut {
            let cleaned = self.cleaned;
            // Near equality the estimate cannot tell who wins, and a small win is not worth a gap.
            let margin = LEAST_WIN.max(cleaned / 50);
            if rendered.tokens + margin > cleaned && cleaned <= self.policy.budget() {
                rendered = Rendered::whole(self.plain());
                stats.stages.retain(|saving| saving.stage == Stage::Screen);
                form = Form::Cleaned;
            }
        }
        let worse = rendered.tokens > stats.raw_tokens && !self.has_holes();
        if worse || (rendered.text.is_empty() && self.source.bytes > 0) {
            let (text, cleaned) = least(raw_text().into_owned());
            rendered = Rendered::whole(text);
            stats.stages.clear();
            form = if cleaned { Form::Cleaned } else { Form::Raw };
        }
        stats.out_tokens = rendered.tokens;
        let compacted = Compacted {
            truncated: !rendered.omitted.is_empty(),
            text: rendered.text,
            stats,
            omitted: rendered.omitted,
        };
        let explanation = if self.source.explain {
            self.explain(&compacted, form)
        } else {
            Explanation::default()
        };
        (compacted, explanation)
    }

    /// Which stage took which raw lines on the way to `compacted`.
    fn explain(&self, compacted: &Compacted, form: Form) -> Explanation {
        let taken = |raw_lines, stage, fate| Taken { raw_lines, stage, fate, recipe: None };
        let mut changed: Vec<Taken> = Vec::new();
        let fitted = form == Form::Fitted;
        let mut rewrites = self.rewrites.iter().filter(|_| fitted).peekable();
        let mut skip = 0;
        for (index, (row, fate)) in self.rows.iter().zip(&self.fates).enumerate() {
            if index < skip || form == Form::Raw {
                continue;
            }
            if let Some(rewrite) = rewrites.next_if(|it| it.rows.start == index) {
                skip = rewrite.rows.end;
                let end = self.rows.get(skip - 1).map_or(row.raw.end, |last| last.raw.end);
                changed.push(taken(row.raw.start..end, Stage::Records, LineFate::Rewritten));
                continue;
            }
            let shown = !fitted || (fate.is_shown() && !row.cut);
            if shown && row.drawn {
                let next_to = |it: &&mut Taken| {
                    it.stage == Stage::Screen && it.raw_lines.end == row.raw.start
                };
                match changed.last_mut().filter(next_to) {
                    Some(last) => last.raw_lines.end = row.raw.end,
                    None => {
                        changed.push(taken(row.raw.clone(), Stage::Screen, LineFate::DrawnOver));
                    }
                }
            }
        }
        Explanation::new(compacted, changed, |lines| self.by_recipe(lines))
    }

    /// The raw lines within `lines` with the recipe that took each.
    fn by_recipe(&self, lines: &Range<u64>) -> Vec<(Range<u64>, Option<String>)> {
        let start = self.rows.partition_point(|row| row.raw.start < lines.start);
        let mut pieces: Vec<(Range<u64>, Option<String>)> = Vec::new();
        let rows = self.rows.iter().zip(&self.traits).skip(start);
        for (row, it) in rows.take_while(|(row, _)| row.raw.end <= lines.end) {
            let name = self.recipe_name(it.mark);
            match pieces.last_mut().filter(|(_, last)| *last == name) {
                Some((range, _)) => range.end = row.raw.end,
                None => pieces.push((row.raw.clone(), name)),
            }
        }
        pieces
    }

    #[cfg(feature = "recipes")]
    fn recipe_name(&self, mark: Mark) -> Option<String> {
        self.policy.recipes.name(mark).map(str::to_owned)
    }

    #[cfg(not(feature = "recipes"))]
    #[expect(clippy::unused_self, reason = "there are no recipes to ask")]
    fn recipe_name(&self, _mark: Mark) -> Option<String> {
        None
    }

    /// Estimated tokens of the cleaned text; those of the raw one if cleaning changed nothing.
    fn price_plain(&self) -> u64 {
        let plain: usize = self.rows.iter().map(|row| row.text.len() + 1).sum();
        let ends = u64::from(!self.source.ends_in_newline);
        if plain as u64 == self.source.bytes + ends && !self.has_holes() {
            self.stats.raw_tokens
        } else {
            estimate_tokens(&self.plain())
        }
    }

    /// The cleaned text, whole.
    fn plain(&self) -> String {
        joined(&self.rows, self.source.ends_in_newline)
    }
}

/// What an answer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Rows, rewritings and markers.
    Fitted,
    /// Every row.
    Cleaned,
    /// The output as it came.
    Raw,
}

/// The text of all rows.
fn joined(rows: &[Row<'_>], ends_in_newline: bool) -> String {
    let mut text: String = rows.iter().flat_map(|row| [row.text.as_ref(), "\n"]).collect();
    if !ends_in_newline {
        text.pop();
    }
    text
}

/// The raw text, cleaned where that leaves something and makes it no longer; and whether it is.
fn least(raw: String) -> (String, bool) {
    let cleaned = clean_screen(raw.as_bytes());
    let better = !cleaned.is_empty() && estimate_tokens(&cleaned) <= estimate_tokens(&raw);
    if better { (cleaned, true) } else { (raw, false) }
}

/// The fate a row starts with.
fn fate(row: &Row<'_>) -> Fate {
    match row.kind {
        Kind::Text => Fate::Shown,
        Kind::Binary => Fate::Binary,
        Kind::Hole => Fate::Spilled,
    }
}

/// Text, its estimated tokens, and receipt.
struct Rendered {
    text: String,
    tokens: u64,
    omitted: Vec<Omission>,
}

impl Rendered {
    /// A text that leaves nothing out.
    fn whole(text: String) -> Self {
        Self { tokens: estimate_tokens(&text), text, omitted: Vec::new() }
    }
}

fn is_blank(text: &str) -> bool {
    // Most lines are told by their first byte.
    !text.as_bytes().first().is_some_and(u8::is_ascii_graphic) && text.trim().is_empty()
}

/// Measures every row against all of them.
pub(crate) fn survey(rows: &[Row<'_>]) -> Vec<Traits> {
    let mut census = Census::default();
    let mut words = Vec::new();
    let mut ranges: Vec<Range<usize>> = Vec::with_capacity(rows.len());
    let mut traits: Vec<Traits> = Vec::with_capacity(rows.len());
    let mut previous = "";
    for row in rows {
        let start = words.len();
        let shape = census.add(&row.text, &mut words);
        ranges.push(start..words.len());
        // Equal neighbours are measured once.
        let equal = traits.last().filter(|_| row.text == previous).copied();
        traits.push(equal.unwrap_or_else(|| Traits {
            tokens: line_tokens(&row.text),
            severity: salience::severity(&row.text),
            shape,
            novelty: 0,
            new_words: 0,
            mark: Mark::None,
            alike: 0,
            marker: marker::is_marker(&row.text),
            blank: is_blank(&row.text),
        }));
        previous = &row.text;
    }
    for (it, range) in traits.iter_mut().zip(ranges) {
        (it.novelty, it.new_words) = census.novelty(it.shape, words.get(range).unwrap_or_default());
        it.alike = census.alike(it.shape);
    }
    traits
}
