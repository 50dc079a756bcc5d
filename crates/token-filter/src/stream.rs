//! The streaming form: the same answer in bounded memory.
//!
//! Input is kept whole while it fits [`WINDOW`]; then the batch form decides, so both agree. Beyond it the
//! beginning and the end are kept, and of the lines between them those that are alarming or unlike all
//! others, up to a bound. Memory stays below a small multiple of the window, whatever comes; line numbers stay exact.

use std::borrow::Cow;

use crate::compact::{Source, compact, from_rows};
use crate::marker;
use crate::meta::{Meta, Policy, Recovery};
use crate::receipt::Compacted;
use crate::row::{Kind, Row};
use crate::stage::{decode, screen};
use crate::stream::gap::Gap;
use crate::tokens::estimate_tokens;

mod gap;

/// Bytes up to which an output is kept whole.
const WINDOW: usize = 4 << 20;
/// Bytes kept of the beginning, and at least of the end, of a longer one.
const END: usize = WINDOW / 2;

/// Takes a command's output piece by piece.
///
/// Memory is bounded: an output of up to 4 MiB gives the answer of [`compact`](crate::compact()); of a longer one, its
/// first and last 2 MiB and the most telling lines between them take part, the rest is a gap with exact line numbers.
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
    spill: Option<Spill>,
}

/// What a stream keeps once its input is beyond the window.
#[derive(Debug)]
struct Spill {
    gap: Gap,
    tail: Vec<u8>,
}

impl Stream {
    /// Starts an output.
    pub fn new(policy: &Policy) -> Self {
        Self { policy: policy.clone(), bytes: 0, head: Vec::new(), spill: None }
    }

    /// Takes the next bytes; they may end anywhere, within a character too.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for part in bytes.chunks(END) {
            if let Some(spill) = &mut self.spill {
                spill.push(part);
            } else {
                self.head.extend_from_slice(part);
                self.overflow();
            }
        }
    }

    /// Splits the head once it is beyond the window.
    fn overflow(&mut self) {
        if self.head.len() <= WINDOW {
            return;
        }
        let start = self.head.get(..END).unwrap_or_default();
        let cut = memchr::memrchr(b'\n', start).map_or(END, |at| at + 1);
        let tail = self.head.split_off(cut);
        let mut spill = Spill { gap: Gap::after(&self.head), tail };
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
            Some(spill) => joined(meta, &self.policy, self.bytes, &self.head, spill),
        }
    }
}

impl Spill {
    fn push(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        self.trim();
    }

    /// Moves what is too much of the tail into the gap, whole lines where there are some.
    fn trim(&mut self) {
        if self.tail.len() <= WINDOW {
            return;
        }
        let excess = self.tail.len() - END;
        let rest = self.tail.get(excess..).unwrap_or_default();
        let cut = memchr::memchr(b'\n', rest).map_or(excess, |at| excess + at + 1);
        self.gap.take(self.tail.get(..cut).unwrap_or_default());
        self.tail.drain(..cut);
    }
}

/// Compacts beginning, telling lines and end as one output.
fn joined(meta: &Meta<'_>, policy: &Policy, bytes: u64, head: &[u8], spill: Spill) -> Compacted {
    let Spill { gap, tail } = spill;
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
    let sample = estimate_tokens(&String::from_utf8_lossy(head));
    let source = Source {
        bytes,
        lines: next,
        tokens: Some(sample.saturating_mul(bytes / 1024) / (head.len() as u64 / 1024).max(1)),
        ends_in_newline: tail.ends_with(b"\n"),
        nature: binary.then(|| decode::nature(head)),
    };
    from_rows(meta, rows, &source, policy, || String::from_utf8_lossy(head).into_owned())
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
