//! The screen as a terminal would have left it.
//!
//! Colours and titles go; carriage returns, backspaces, erasing and cursor-up overwrite as they do on a
//! terminal, so only the last state of a progress line remains. One deviation, because nothing an agent needs may
//! be lost: an overwritten state stays above the row that replaced it if its words are alarming, or if it was a whole
//! row that has nothing to do with its successor. Clearing the whole screen and jumping to absolute rows are ignored
//! for the same reason.
//!
//! Invariants: one row a raw line or fewer, linear time, a raw line never reaches further up than [`REACH`] rows.
//! Lines without control bytes are borrowed.

use std::borrow::Cow;

use crate::keyed::KeySet;
use crate::row::{Kind, Row};
use crate::salience::{Severity, severity};
use crate::shape;
use crate::stage::decode;

/// How many rows up a cursor can go.
const REACH: usize = 128;
/// Furthest column a cursor can be sent to.
const WIDEST: usize = 1024;
/// Overwritten states kept of one row.
const KEPT_STATES: usize = 8;
/// Longest row whose state is looked at each time another raw line writes over it, in characters.
const LOOKED_AT: usize = 240;
/// Shapes of states remembered, so that each is kept once.
const SHAPES: usize = 4096;

/// Turns raw lines into rows, `first` being the number of the first one.
pub(crate) fn rows(output: &[u8], first: u64, binary: bool) -> Vec<Row<'_>> {
    if !binary && let Some(text) = decode::plain(output) {
        return plain_rows(text, first);
    }
    let mut screen = Screen { rows: Vec::new(), at: 0, column: 0, shapes: KeySet::default() };
    let mut number = first;
    let mut rest = output;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest);
        let (line, after) = match end {
            Some(end) => rest.split_at(end),
            None => (rest, [].as_slice()),
        };
        rest = if end.is_some() { after.get(1..).unwrap_or_default() } else { after };
        screen.line(line, number, binary);
        number += 1;
    }
    screen.finish(number)
}

/// The rows of a text that no terminal would change: its lines, blank ones together.
fn plain_rows(text: &str, first: u64) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::with_capacity(text.len() / 64);
    let mut number = first;
    let mut start = 0;
    while start < text.len() {
        let rest = text.get(start..).unwrap_or_default();
        let bytes = rest.as_bytes();
        if bytes.first() == Some(&b'\n') {
            let count = bytes.iter().take_while(|&&byte| byte == b'\n').count();
            let lines = number..number + count as u64;
            number = lines.end;
            rows.push(Row::new(lines, Cow::Borrowed(rest.get(..count - 1).unwrap_or_default())));
            start += count;
        } else {
            let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
            let line = rest.get(..end).unwrap_or_default();
            rows.push(Row::new(number..number + 1, Cow::Borrowed(line)));
            number += 1;
            start += end + 1;
        }
    }
    rows
}

/// A row as it stands on the screen.
struct Live<'a> {
    first: u64,
    /// The raw line that wrote to it last.
    writer: u64,
    state: State<'a>,
    /// States that were overwritten and may be worth keeping.
    past: Vec<Past>,
}

struct Past {
    text: String,
    alarming: bool,
}

enum State<'a> {
    Text(Cow<'a, str>),
    Cells(Vec<char>),
    /// Blank lines, as many as that.
    Blanks(usize),
    Binary,
}

struct Screen<'a> {
    rows: Vec<Live<'a>>,
    /// Row of the cursor; their number when the cursor is below all of them.
    at: usize,
    column: usize,
    /// Templates of the overwritten rows so far.
    shapes: KeySet,
}

impl<'a> Screen<'a> {
    fn line(&mut self, line: &'a [u8], number: u64, binary: bool) {
        let line = trim_returns(line);
        let below = self.at == self.rows.len() && self.column == 0;
        if binary && !decode::is_readable(line) {
            self.at = self.rows.len();
            self.push(number, State::Binary);
        } else if below && line.is_empty() && self.extend_blanks() {
        } else if below && !has_control(line) {
            self.push(number, State::Text(decode::text(line)));
        } else if below && let Some(text) = without_colours(line) {
            self.push(number, State::Text(Cow::Owned(text)));
        } else {
            Writer { screen: self, number, segment: String::new() }.apply(&decode::text(line));
            return;
        }
        self.at = self.rows.len();
        self.column = 0;
    }

    /// Counts one more blank line into the last row if it is one; long runs need no row each.
    fn extend_blanks(&mut self) -> bool {
        let Some(Live { state, .. }) = self.rows.last_mut() else { return false };
        match state {
            State::Blanks(count) => *count += 1,
            State::Text(text) if text.is_empty() => *state = State::Blanks(2),
            _ => return false,
        }
        true
    }

    fn push(&mut self, number: u64, state: State<'a>) {
        self.rows.push(Live { first: number, writer: number, state, past: Vec::new() });
    }

    fn finish(self, end: u64) -> Vec<Row<'a>> {
        let mut rows: Vec<Row<'a>> = self.rows.into_iter().map(settle).collect();
        let mut next = end;
        for row in rows.iter_mut().rev() {
            row.raw.end = next;
            next = row.raw.start;
            // Blank lines are one row and lose nothing.
            let blank = row.text.bytes().all(|byte| byte == b'\n');
            let lines = row.raw.end - row.raw.start;
            row.drawn |= lines > 1 && !(blank && row.text.len() as u64 + 1 == lines);
        }
        if rows.iter().any(|row| row.text.contains('\n')) {
            rows = rows.into_iter().flat_map(split).collect();
        }
        rows
    }
}

/// A row and the states kept above it, each a row of its own if there are raw lines enough for them.
///
/// So they are rows to every later stage, as they would be if the answer were compacted again.
fn split(row: Row<'_>) -> Vec<Row<'_>> {
    let lines = row.text.split('\n').count() as u64;
    let blank = row.text.bytes().all(|byte| byte == b'\n');
    if lines == 1 || blank || row.kind != Kind::Text || row.raw.end - row.raw.start < lines {
        return vec![row];
    }
    let raw = row.raw.clone();
    let end = |number: u64| if number + 1 == lines { raw.end } else { raw.start + number + 1 };
    (0..)
        .zip(row.text.split('\n'))
        .map(|(number, line)| {
            let part = raw.start + number..end(number);
            Row { drawn: true, ..Row::new(part, Cow::Owned(line.to_owned())) }
        })
        .collect()
}

fn settle(live: Live<'_>) -> Row<'_> {
    let drawn = live.writer != live.first;
    let text = match live.state {
        State::Binary => return Row::without_text(live.first..live.first, Kind::Binary),
        State::Blanks(count) => Cow::Owned("\n".repeat(count - 1)),
        State::Text(text) if live.past.is_empty() => text,
        State::Text(text) => with_past(&live.past, &text),
        State::Cells(cells) => {
            let text: String = cells.into_iter().collect();
            with_past(&live.past, text.trim_end())
        }
    };
    Row { drawn, ..Row::new(live.first..live.first, text) }
}

/// The row's text below the states that it replaced and that still matter.
fn with_past<'a>(past: &[Past], text: &str) -> Cow<'a, str> {
    let opening = |text: &str| {
        let word = text.split_ascii_whitespace().next().unwrap_or_default();
        shape::template(word)
    };
    let mut whole = String::new();
    for state in past {
        let related = !state.alarming && opening(&state.text) == opening(text);
        if !related && !text.contains(state.text.as_str()) {
            whole.push_str(&state.text);
            whole.push('\n');
        }
    }
    whole.push_str(text);
    if text.is_empty() {
        whole.truncate(whole.trim_end_matches('\n').len());
    }
    Cow::Owned(whole)
}

fn trim_returns(mut line: &[u8]) -> &[u8] {
    while let Some(shorter) = line.strip_suffix(b"\r") {
        line = shorter;
    }
    line
}

/// Whether a byte of `line` may move the cursor or show nothing.
fn has_control(line: &[u8]) -> bool {
    decode::any(line, |byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f)
}

/// The text of a line whose only escapes are colours; `None` if there are others.
fn without_colours(line: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        let (before, escape) = rest.split_at(at);
        text.extend_from_slice(before);
        let inner = escape.strip_prefix(b"\x1b[")?;
        let length = inner.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'))?;
        rest = inner.get(length..)?.strip_prefix(b"m")?;
    }
    text.extend_from_slice(rest);
    (!has_control(&text)).then(|| String::from_utf8_lossy(&text).into_owned())
}

/// One raw line on its way to the screen.
struct Writer<'s, 'a> {
    screen: &'s mut Screen<'a>,
    number: u64,
    /// What was written since the cursor last jumped.
    segment: String,
}

impl Writer<'_, '_> {
    fn apply(mut self, line: &str) {
        let mut chars = line.chars().peekable();
        while let Some(char) = chars.next() {
            match char {
                '\u{1b}' => self.escape(&mut chars),
                '\u{9b}' => self.control_sequence(&mut chars),
                '\r' => self.jump(0),
                '\u{8}' => self.screen.column = self.screen.column.saturating_sub(1),
                '\t' => self.put('\t'),
                '\0' => self.put('\u{2400}'),
                '\u{1}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {}
                _ => self.put(char),
            }
        }
        self.note();
        // A raw line that wrote nothing is a blank row, unless it moved among rows that exist.
        if self.screen.at == self.screen.rows.len() {
            self.screen.push(self.number, State::Text(Cow::Borrowed("")));
            self.screen.at = self.screen.rows.len();
        } else {
            self.screen.at += 1;
        }
        self.screen.column = 0;
    }

    fn escape(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        match chars.next() {
            Some('[') => self.control_sequence(chars),
            // Titles, links, device strings: up to a bell or a string end.
            Some(']' | 'P' | '^' | '_' | 'X') => {
                while let Some(char) = chars.next() {
                    match char {
                        '\u{7}' | '\u{9c}' => return,
                        '\u{1b}' => {
                            chars.next_if_eq(&'\\');
                            return;
                        }
                        _ => {}
                    }
                }
            }
            // Character sets: one intermediate, one final.
            Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
                chars.next();
            }
            Some('M') => self.up(1),
            _ => {}
        }
    }

    fn control_sequence(&mut self, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        let mut number = None;
        let mut first = true;
        let last = loop {
            match chars.peek() {
                Some(&digit @ '0'..='9') if first => {
                    let digit = digit as usize - '0' as usize;
                    number =
                        Some(number.unwrap_or(0_usize).saturating_mul(10).saturating_add(digit));
                }
                Some(' '..='?') => first = false,
                Some(&last @ '@'..='~') => {
                    chars.next();
                    break last;
                }
                // Broken: what follows is text.
                _ => return,
            }
            chars.next();
        };
        let count = number.unwrap_or(1).max(1);
        match last {
            'A' => self.up(count),
            'F' => {
                self.up(count);
                self.jump(0);
            }
            'B' | 'E' => {
                self.note();
                self.screen.at = self.screen.at.saturating_add(count).min(self.screen.rows.len());
                if last == 'E' {
                    self.screen.column = 0;
                }
            }
            'C' => self.screen.column = self.screen.column.saturating_add(count).min(self.limit()),
            'D' => self.screen.column = self.screen.column.saturating_sub(count),
            'G' | '`' => self.jump((count - 1).min(self.limit())),
            'K' => self.erase(number.unwrap_or(0)),
            'J' if number.unwrap_or(0) == 0 => self.erase_below(),
            'P' => {
                let column = self.screen.column;
                if let Some(cells) = self.cells_if_any() {
                    let end = column.saturating_add(count).min(cells.len());
                    cells.drain(column.min(end)..end);
                }
            }
            _ => {}
        }
    }

    fn limit(&self) -> usize {
        WIDEST.max(self.screen.column)
    }

    fn up(&mut self, count: usize) {
        self.note();
        let highest = self.screen.rows.len().saturating_sub(REACH);
        self.screen.at = self.screen.at.saturating_sub(count).max(highest.min(self.screen.at));
    }

    fn jump(&mut self, column: usize) {
        self.note();
        self.screen.column = column;
    }

    /// Ends a segment: an alarming one is remembered in case it is overwritten.
    fn note(&mut self) {
        let segment = std::mem::take(&mut self.segment);
        if severity(&segment) < Severity::Error {
            return;
        }
        let segment = segment.trim();
        if let Some(row) = self.screen.rows.get_mut(self.screen.at) {
            remember(&mut row.past, segment, true);
        }
    }

    fn cells_if_any(&mut self) -> Option<&mut Vec<char>> {
        let Screen { rows, at, shapes, .. } = &mut *self.screen;
        let row = rows.get_mut(*at)?;
        if row.writer != self.number {
            row.writer = self.number;
            row.note_state(shapes);
        }
        if let State::Text(text) = &row.state {
            row.state = State::Cells(text.chars().collect());
        } else if let State::Blanks(_) = &row.state {
            row.state = State::Cells(Vec::new());
        }
        match &mut row.state {
            State::Cells(cells) => Some(cells),
            State::Text(_) | State::Blanks(_) | State::Binary => None,
        }
    }

    fn put(&mut self, char: char) {
        self.segment.push(char);
        if self.screen.at >= self.screen.rows.len() {
            self.screen.at = self.screen.rows.len();
            self.screen.push(self.number, State::Cells(Vec::new()));
            self.screen.at = self.screen.rows.len().saturating_sub(1);
        }
        let column = self.screen.column;
        if let Some(cells) = self.cells_if_any() {
            if column > cells.len() {
                cells.resize(column, ' ');
            }
            match cells.get_mut(column) {
                Some(cell) => *cell = char,
                None => cells.push(char),
            }
        }
        self.screen.column = column + 1;
    }

    fn erase(&mut self, part: usize) {
        let column = self.screen.column;
        if part != 1 {
            self.note();
        }
        if let Some(cells) = self.cells_if_any() {
            match part {
                0 => cells.truncate(column),
                1 => cells.iter_mut().take(column + 1).for_each(|cell| *cell = ' '),
                _ => cells.clear(),
            }
        }
    }

    fn erase_below(&mut self) {
        self.erase(0);
        let at = self.screen.at;
        for below in at + 1..self.screen.rows.len() {
            self.screen.at = below;
            if let Some(cells) = self.cells_if_any() {
                cells.clear();
            }
        }
        self.screen.at = at;
    }
}

impl Live<'_> {
    /// Remembers what the row shows before another raw line writes over it.
    fn note_state(&mut self, shapes: &mut KeySet) {
        let text = match &self.state {
            State::Text(text) => Cow::Borrowed(text.as_ref()),
            State::Cells(cells) if cells.len() <= LOOKED_AT => Cow::Owned(cells.iter().collect()),
            State::Cells(_) | State::Blanks(_) | State::Binary => return,
        };
        let text = text.trim_end();
        if text.is_empty() || self.past.len() >= KEPT_STATES {
            return;
        }
        let alarming = severity(text) >= Severity::Error;
        let unseen = shapes.len() < SHAPES && shapes.insert(shape::template(text));
        if alarming || unseen {
            remember(&mut self.past, text, alarming);
        }
    }
}

/// Adds a state unless one of its shape is there.
fn remember(past: &mut Vec<Past>, text: &str, alarming: bool) {
    let shape = shape::template(text);
    if past.len() < KEPT_STATES && past.iter().all(|state| shape::template(&state.text) != shape) {
        past.push(Past { text: text.to_owned(), alarming });
    }
}

#[cfg(test)]
mod tests {
    use super::rows;

    fn check(raw: &str, expected: &[&str]) {
        let found = rows(raw.as_bytes(), 0, false);
        let texts: Vec<_> = found.iter().map(|row| row.text.as_ref()).collect();
        assert_eq!(texts, expected, "{raw:?}");
        let mut next = 0;
        for row in &found {
            assert_eq!(row.raw.start, next, "rows partition the raw lines of {raw:?}");
            next = row.raw.end;
        }
        assert_eq!(next, raw.split_inclusive('\n').count() as u64);
    }

    #[test]
    fn colours_titles_and_links_go() {
        check("\u{1b}[1;31merror\u{1b}[0m: x\r\n", &["error: x"]);
        check("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b\u{1b}]8;;\u{1b}\\\n", &["ab"]);
        check("\u{1b}(B\u{1b}[mx\n", &["x"]);
    }

    #[test]
    fn the_last_state_of_a_progress_line_remains() {
        check("10%\r50%\r100%\n", &["100%"]);
        check("long text\rok\n", &["okng text"]);
        check("long text\r\u{1b}[Kok\n", &["ok"]);
        check("\u{1b}[2K\u{1b}[1Gone\u{1b}[2K\u{1b}[1Gtwo\n", &["two"]);
        check("abc\u{8}\u{8}X\n", &["aXc"]);
    }

    #[test]
    fn cursor_up_rewrites_rows() {
        check("a 0%\nb 0%\n\u{1b}[2A\u{1b}[Ka 9%\n\u{1b}[Kb 9%\ndone\n", &["a 9%", "b 9%", "done"]);
    }

    #[test]
    fn an_alarming_state_survives_being_overwritten() {
        check(
            "1%\rdisk full, write failed\r\u{1b}[K2%\r\u{1b}[K3%\n",
            &["disk full, write failed\n3%"],
        );
    }

    #[test]
    fn a_row_survives_an_unrelated_successor() {
        check(
            "[bar] 1% of x\n\u{1b}[1A\u{1b}[2K[bar] 2% of x\nwater on the floor\n\u{1b}[1A\u{1b}[2K[bar] 3% of x\n",
            &["[bar] 2% of x", "water on the floor", "[bar] 3% of x"],
        );
    }

    #[test]
    fn broken_sequences_stay_text() {
        check("\u{1b}[12\n", &[""]);
        check("a\u{1b}\n", &["a"]);
        check("a\n\n\n\nb\n", &["a", "\n\n", "b"]);
        check("\u{1b}[9999Cx\n", &[format!("{}x", " ".repeat(1024)).as_str()]);
    }
}
