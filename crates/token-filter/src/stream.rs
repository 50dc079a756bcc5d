//! The streaming form: the same answer in bounded memory.
//!
//! Input is kept whole while it fits [`WINDOW`] and [`LINES`]; then the batch form decides, so both agree. Beyond
//! either the beginning and the end are kept, and of the lines between them those that are alarming or unlike all
//! others, up to a bound. Memory stays below a small multiple of the window, whatever comes (a line costs more than
//! its bytes, so short ones are bounded by their number); line numbers stay exact.

use std::borrow::Cow;

use crate::compact::{Source, blind_tokens, compact, compact_explained, from_rows};
use crate::explain::Explanation;
use crate::marker;
use crate::meta::{Meta, Policy, Recovery};
use crate::receipt::Compacted;
use crate::row::{Kind, Row};
use crate::stage::{decode, screen};
use crate::stream::gap::Gap;
use crate::tokens::estimate_tokens;

mod gap;

/// Bytes up to which an output is kept whole.
const WINDOW: usize = 2 << 20;
/// Bytes kept of the beginning and of the end of a longer one.
const END: usize = WINDOW / 2;
/// Lines up to which an output is kept whole.
const LINES: usize = 64 * 1024;
/// Lines kept of the beginning and of the end of one with more.
const LINES_END: usize = LINES / 2;

/// Takes a command's output piece by piece.
///
/// Memory is bounded: an output of up to 2 MiB and 65,536 lines gives the answer of [`compact`](crate::compact()); of a
/// longer one, its first and last 1 MiB or 32,768 lines and the most telling lines between them take part, the rest is
/// a gap with exact line numbers.
///
/// ```
/// use token_filter::{Meta, Policy, Stream};
///
/// let mut stream = Stream::new(&Policy::default());
/// stream.push(b"half a li");
/// stream.push(b"ne\n");
/// assert_eq!(stream.finish(&Meta::new("printf", Some(0))).text, "half a line\n");
/// ```
#[derive(Debug)]
pub struct Stream {
    policy: Policy,
    bytes: u64,
    /// The whole output while it fits, then its beginning.
    head: Vec<u8>,
    /// Line ends in `head`.
    lines: usize,
    spill: Option<Spill>,
}

/// What a stream keeps once its input is beyond the window.
#[derive(Debug)]
struct Spill {
    gap: Gap,
    tail: Vec<u8>,
    /// Line ends in `tail`.
    lines: usize,
}

impl Stream {
    /// Starts an output.
    pub fn new(policy: &Policy) -> Self {
        Self { policy: policy.clone(), bytes: 0, head: Vec::new(), lines: 0, spill: None }
    }

    /// Takes the next bytes; they may end anywhere, within a character too.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for part in bytes.chunks(END) {
            if let Some(spill) = &mut self.spill {
                spill.push(part);
            } else {
                self.head.extend_from_slice(part);
                self.lines += count_lines(part);
                self.overflow();
            }
        }
    }

    /// Splits the head once it is beyond the window.
    fn overflow(&mut self) {
        if self.head.len() <= WINDOW && self.lines <= LINES {
            return;
        }
        let end =
            memchr::memchr_iter(b'\n', &self.head).nth(LINES_END - 1).map_or(END, |at| at + 1);
        let end = end.min(END).min(self.head.len());
        let start = self.head.get(..end).unwrap_or_default();
        let cut = memchr::memrchr(b'\n', start).map_or(end, |at| at + 1);
        let tail = self.head.split_off(cut);
        let lines = count_lines(&tail);
        let mut spill = Spill { gap: Gap::after(&self.head), tail, lines };
        spill.trim();
        self.spill = Some(spill);
    }

    /// Says how an omission can be made good, once that is known: after the output was stored, at the latest
    /// right before [`Stream::finish`].
    pub fn recover_by(&mut self, recovery: Recovery) {
        self.policy.recovery = recovery;
    }

    /// Ends the output and compacts it.
    pub fn finish(self, meta: &Meta<'_>) -> Compacted {
        match self.spill {
            None => compact(meta, &self.head, &self.policy),
            Some(spill) => joined(meta, &self.policy, self.bytes, &self.head, spill, false).0,
        }
    }

    /// Ends the output and compacts it, and tells which stage took which raw lines.
    pub fn finish_explained(self, meta: &Meta<'_>) -> (Compacted, Explanation) {
        match self.spill {
            None => compact_explained(meta, &self.head, &self.policy),
            Some(spill) => joined(meta, &self.policy, self.bytes, &self.head, spill, true),
        }
    }
}

impl Spill {
    fn push(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        self.lines += count_lines(bytes);
        self.trim();
    }

    /// Moves what is too much of the tail into the gap, now and then.
    fn trim(&mut self) {
        if self.tail.len() > WINDOW || self.lines > LINES {
            self.cut();
        }
    }

    /// Moves all of the tail but its end into the gap, whole lines where there are some.
    fn cut(&mut self) {
        let by_lines =
            memchr::memrchr_iter(b'\n', &self.tail).nth(LINES_END).map_or(0, |at| at + 1);
        let by_bytes = self.tail.len().saturating_sub(END);
        let cut = if by_bytes > by_lines {
            let rest = self.tail.get(by_bytes..).unwrap_or_default();
            memchr::memchr(b'\n', rest).map_or(by_bytes, |at| by_bytes + at + 1)
        } else {
            by_lines
        };
        let gone = self.tail.get(..cut).unwrap_or_default();
        self.lines -= count_lines(gone);
        self.gap.take(gone);
        self.tail.drain(..cut);
    }
}

fn count_lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Compacts beginning, telling lines and end as one output.
fn joined(
    meta: &Meta<'_>,
    policy: &Policy,
    bytes: u64,
    head: &[u8],
    mut spill: Spill,
    explain: bool,
) -> (Compacted, Explanation) {
    // Where the tail was cut last depends on the pieces that came; what is shown does not.
    spill.cut();
    let Spill { gap, tail, .. } = spill;
    let binary = decode::is_binary(head);
    let mut rows = screen::rows(head, 0, binary);
    let found = gap.finish();
    let mut tail_rows = screen::rows(&tail, found.next_line, binary);
    // Of a line that is longer than what is kept, its two ends are shown.
    let end = usize::try_from(policy.budget() / 2).unwrap_or(END).min(END);
    if found.opens_mid_line
        && let Some(row) = rows.last_mut()
    {
        // Its two ends are one row if no line end is between them.
        let same = found.next_line == row.raw.start && !tail_rows.is_empty();
        let after = if same { tail_rows.remove(0).text.into_owned() } else { String::new() };
        cut_middle(row, found.lost_of_first, &after, end, &policy.recovery);
    }
    if found.ends_mid_line
        && let Some(row) = tail_rows.first_mut()
        && row.raw.start == found.next_line
    {
        let after = std::mem::take(&mut row.text);
        cut_middle(row, found.lost_of_last, &after, end, &policy.recovery);
    }
    let mut next = rows.last().map_or(0, |row| row.raw.end);
    let middle: Vec<Row<'_>> = found
        .kept
        .iter()
        .flat_map(|line| screen::rows(&line.text, line.number, binary))
        .filter(|row| row.kind == Kind::Text)
        .collect();
    for row in middle.into_iter().chain(tail_rows) {
        if row.raw.start < next {
            continue;
        }
        if row.raw.start > next {
            rows.push(Row::without_text(next..row.raw.start, Kind::Hole));
        }
        next = row.raw.end;
        rows.push(row);
    }
    let sample = estimate_tokens(&decode::text(head));
    let source = Source {
        bytes,
        lines: next,
        tokens: Some(sample.saturating_mul(bytes / 1024) / (head.len() as u64 / 1024).max(1)),
        blind_tokens: blind_tokens(head),
        ends_in_newline: tail.ends_with(b"\n"),
        nature: binary.then(|| decode::nature(head)),
        explain,
    };
    from_rows(meta, rows, &source, policy, || decode::text(head))
}

/// Writes the two ends of a line that was partly let go, `end` bytes each, around their marker.
fn cut_middle(row: &mut Row<'_>, lost: u64, after: &str, end: usize, recovery: &Recovery) {
    let before = row.text.get(..row.text.floor_char_boundary(end)).unwrap_or_default();
    let after_start = after.ceil_char_boundary(after.len().saturating_sub(end));
    let hidden = row.text.len() - before.len() + after_start;
    let mut text = before.to_owned();
    marker::cut(lost + hidden as u64, row.raw.start, recovery, &mut text);
    text.push_str(after.get(after_start..).unwrap_or_default());
    row.text = Cow::Owned(text);
    row.cut = true;
}
