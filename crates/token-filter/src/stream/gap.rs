//! The part of a stream that is let go: counted to the line, its most telling lines kept.
//!
//! A line is telling if it is alarming or its template was not seen before; of those the most novel are kept,
//! [`KEPT`] at most, each cut at [`LINE`] bytes. All maps are bounded: past their bound new shapes are judged by their words
//! alone. Invariant: line numbers are exact.

use crate::keyed::KeySet;
use crate::salience::{Severity, severity};
use crate::shape::Census;

/// Lines kept of a gap.
const KEPT: usize = 400;
/// Bytes kept of a line.
const LINE: usize = 600;
/// Times a shape may come before it is no longer telling.
const RARE: u32 = 3;

/// A line kept from the gap.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) text: Vec<u8>,
    template: u64,
    score: u32,
}

/// Reads what is let go.
#[derive(Debug)]
pub(super) struct Gap {
    census: Census,
    kept: Vec<Kept>,
    /// The templates in `kept`.
    places: KeySet,
    /// Lowest score in `kept` when it is full.
    floor: u32,
    /// Number of the line being read.
    line: u64,
    /// The beginning of that line.
    partial: Vec<u8>,
    /// Bytes of that line that were let go.
    length: u64,
    opens_mid_line: bool,
    lost_of_first: u64,
    first_open: bool,
}

/// What a gap leaves behind.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) kept: Vec<Kept>,
    /// Number of the line that the tail starts with, or is within.
    pub(super) next_line: u64,
    pub(super) opens_mid_line: bool,
    pub(super) ends_mid_line: bool,
    /// Bytes of the line cut by the beginning, or by the end, of the gap.
    pub(super) lost_of_first: u64,
    pub(super) lost_of_last: u64,
}

impl Gap {
    /// Starts a gap after `head`, whose shapes are no news.
    pub(super) fn after(head: &[u8]) -> Self {
        let opens_mid_line = !head.ends_with(b"\n");
        let mut gap = Self {
            census: Census::default(),
            kept: Vec::new(),
            places: KeySet::default(),
            floor: 0,
            line: memchr::memchr_iter(b'\n', head).count() as u64,
            partial: Vec::new(),
            length: 0,
            opens_mid_line,
            lost_of_first: 0,
            first_open: opens_mid_line,
        };
        let mut words = Vec::new();
        for line in head.split(|&byte| byte == b'\n') {
            let line = line.get(..LINE.min(line.len())).unwrap_or_default();
            words.clear();
            gap.census.add_bounded(&String::from_utf8_lossy(line), &mut words);
        }
        gap
    }

    /// Lets `bytes` go.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE.saturating_sub(self.partial.len()).min(part.len());
            self.partial.extend_from_slice(part.get(..room).unwrap_or_default());
            self.length += part.len() as u64;
            if part.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        if self.first_open {
            // The head shows the beginning of this line.
            self.first_open = false;
            self.lost_of_first = self.length;
        } else {
            self.judge();
        }
        self.partial.clear();
        self.length = 0;
        self.line += 1;
    }

    fn judge(&mut self) {
        let text = String::from_utf8_lossy(&self.partial);
        let mut words = Vec::new();
        let shape = self.census.add_bounded(&text, &mut words);
        let times = self.census.alike(shape);
        if times > RARE {
            if self.places.remove(&shape.template) {
                self.kept.retain(|kept| kept.template != shape.template || kept.score >= 100);
            }
            return;
        }
        let alarm = severity(&text);
        let score = self.census.novelty(shape, &words).0
            + if alarm >= Severity::Error { 100 + alarm as u32 } else { 0 };
        if score <= self.floor {
            return;
        }
        self.places.insert(shape.template);
        self.kept.push(Kept {
            number: self.line,
            text: self.partial.clone(),
            template: shape.template,
            score,
        });
        if self.kept.len() >= KEPT * 2 {
            self.prune();
        }
    }

    /// Halves what is kept, the least telling first.
    fn prune(&mut self) {
        self.kept.sort_by_key(|kept| std::cmp::Reverse(kept.score));
        self.kept.truncate(KEPT);
        self.floor = self.kept.last().map_or(0, |kept| kept.score);
        self.places = self.kept.iter().map(|kept| kept.template).collect();
    }

    pub(super) fn finish(mut self) -> Found {
        self.prune();
        self.kept.sort_by_key(|kept| kept.number);
        let lost = if self.first_open { self.length } else { self.lost_of_first };
        Found {
            kept: self.kept,
            next_line: self.line,
            opens_mid_line: self.opens_mid_line,
            ends_mid_line: self.length > 0,
            lost_of_first: lost,
            lost_of_last: self.length,
        }
    }
}
