//! The answer as it is written: lines, markers for the gaps between them, and the receipt of what is missing.
//!
//! Neighbouring omissions share one marker. Invariant: a marker and its entry in the receipt are made together.

use std::ops::Range;

use crate::marker;
use crate::meta::Policy;
use crate::receipt::{Omission, OmissionKind, Stage};
use crate::stage::names::Naming;

/// The answer as it is written, with the gap that is still open.
pub(crate) struct Page<'p> {
    /// What the rows of the open gap start with.
    pub(crate) names: Vec<&'p str>,
    naming: Option<Naming>,
    policy: &'p Policy,
    pub(crate) text: String,
    pub(crate) omitted: Vec<Omission>,
    gap: Option<Range<u64>>,
    /// Trimmed rows that no marker names yet: how many, and between which.
    trimmed: Option<(u64, Range<u64>)>,
}

impl<'p> Page<'p> {
    pub(crate) fn new(policy: &'p Policy, naming: Option<Naming>) -> Self {
        Self {
            names: Vec::new(),
            naming,
            policy,
            text: String::new(),
            omitted: Vec::new(),
            gap: None,
            trimmed: None,
        }
    }

    pub(crate) fn close(&mut self) {
        self.close_gap();
        self.close_trimmed();
    }

    pub(crate) fn trim(&mut self, lines: Range<u64>) {
        if self.gap.is_some() {
            self.omit(lines, OmissionKind::Gap, Stage::Window);
            return;
        }
        let count = lines.end - lines.start;
        match &mut self.trimmed {
            Some((sum, within)) => {
                *sum += count;
                within.end = lines.end;
            }
            None => self.trimmed = Some((count, lines.clone())),
        }
        self.note(lines, OmissionKind::Similar, Stage::Fold);
    }

    fn close_trimmed(&mut self) {
        if let Some((count, within)) = self.trimmed.take() {
            marker::trimmed(count, &within, &self.policy.recovery, &mut self.text);
            self.text.push('\n');
        }
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(crate) fn omit(&mut self, lines: Range<u64>, kind: OmissionKind, stage: Stage) {
        if lines.is_empty() {
            return;
        }
        if self.gap.is_none() {
            self.close_trimmed();
        }
        match &mut self.gap {
            Some(gap) => gap.end = lines.end,
            None => self.gap = Some(lines.clone()),
        }
        self.note(lines, kind, stage);
    }

    /// Puts omitted lines into the receipt.
    pub(crate) fn note(&mut self, lines: Range<u64>, kind: OmissionKind, stage: Stage) {
        match self.omitted.last_mut() {
            Some(last)
                if last.raw_lines.end == lines.start
                    && last.kind == kind
                    && last.stage == stage =>
            {
                last.raw_lines.end = lines.end;
            }
            _ => self.omitted.push(Omission { raw_lines: lines, kind, stage }),
        }
    }

    pub(crate) fn close_gap(&mut self) {
        let Some(gap) = self.gap.take() else { return };
        let similar = self
            .omitted
            .iter()
            .rev()
            .take_while(|part| part.raw_lines.start >= gap.start)
            .map(|part| part.kind)
            .reduce(|a, b| if a == b { a } else { OmissionKind::Gap })
            .unwrap_or(OmissionKind::Gap);
        marker::gap(&gap, similar, &self.policy.recovery, &mut self.text);
        self.text.push('\n');
        if let Some(names) = self.naming.and_then(|naming| naming.write(&self.names)) {
            marker::names(&names, &mut self.text);
            self.text.push('\n');
        }
        self.names.clear();
    }
}
