//! The budget: which rows are shown when not all can be.
//!
//! Rows are chosen by worth, not by place: the first and last, then the names of all files and folders where they stand above
//! their parts and are not too many, then rare rows, then alarming ones by
//! shape, then those that recipes want shown, then their surroundings, then one row of each shape, then as much of the end and of the beginning as
//! fits. Each pass may spend up to its share, so no kind crowds out the next. A marker's price is part of every choice, and a gap
//! too small to be worth one is filled. Invariants: deterministic, `O(n log n)`, the sum stays within the budget.

use std::collections::HashSet;

use crate::keyed::{KeyMap, KeySet};
use crate::mark::Mark;
use crate::row::{Fate, Row};
use crate::salience::Severity;
use crate::shape::{self, Shape};

mod heading;
mod magnitude;

/// What is known of a row when rows compete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Traits {
    /// Price of showing it, line end included.
    pub(crate) tokens: u64,
    pub(crate) severity: Severity,
    pub(crate) shape: Shape,
    /// How unlike the other rows it is.
    pub(crate) novelty: u32,
    /// How many of its words no other row has.
    pub(crate) new_words: u8,
    /// What a recipe says of it.
    pub(crate) mark: Mark,
    /// How many rows share its template.
    pub(crate) alike: u32,
    /// Whether it is, or holds, a marker.
    pub(crate) marker: bool,
    /// Whether it shows nothing.
    pub(crate) blank: bool,
}

/// Rare rows without alarming words that are shown at most.
const RARE: usize = 64;
/// What it adds to a row's novelty that its numbers are of another size.
const OUTLIER: u32 = 16;
/// Rows that open alike before the first of them is shown for all.
const OPENING: u32 = 8;
/// Rows at both ends that are always shown.
const FIRST: usize = 2;
const LAST: usize = 5;

/// The orders in which rows are taken; they do not depend on the budget.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The rows that may be shown, and those that cannot but count as neighbours. Trimmed rows are nobody's
    /// neighbours: their blocks stand together, or go together.
    places: Vec<usize>,
    traits: Vec<Traits>,
    barred: Vec<bool>,
    /// For every place the place of its heading.
    headings: Vec<Option<usize>>,
    /// The names of files and folders that stand above their parts: a table of contents.
    sections: Vec<usize>,
    marker: u64,
    rare: Vec<usize>,
    alarming: Vec<usize>,
    /// Rows that recipes want shown, summaries first.
    wanted: Vec<usize>,
    firsts: Vec<usize>,
}

impl Plan {
    /// Ranks the rows; `marker` is the price of a marker in tokens.
    pub(crate) fn new(rows: &[Row<'_>], traits: &[Traits], fates: &[Fate], marker: u64) -> Self {
        let standing = || {
            let rows = fates.iter().zip(traits).enumerate();
            rows.filter(|(_, (fate, _))| **fate != Fate::Trimmed)
        };
        let places: Vec<usize> = standing().map(|(index, _)| index).collect();
        let texts: Vec<&str> = places
            .iter()
            .map(|&place| rows.get(place).map(|row| row.text.as_ref()).unwrap_or_default())
            .collect();
        let barred = standing().map(|(_, (fate, _))| !fate.is_shown()).collect();
        let traits: Vec<Traits> = standing().map(|(_, (_, it))| *it).collect();
        let outliers = magnitude::outliers(&texts, &traits);
        let (rare, alarming) = (by_rarity(&traits, &outliers), by_alarm(&texts, &traits, marker));
        let firsts = first_of_each_shape(&texts, &traits);
        let headings = heading::headings(texts.iter().copied());
        let sections = heading::sections(&texts);
        let wanted = by_recipe(&traits);
        Self { places, traits, barred, headings, sections, marker, rare, alarming, wanted, firsts }
    }

    /// Lowers the shown rows of `fates` to `budget` tokens.
    pub(crate) fn choose(&self, budget: u64, fates: &mut [Fate]) {
        let mut choice = Choice::new(self);
        let share = |percent: u64| budget * percent / 100;
        let count = self.traits.len();
        for index in (0..FIRST.min(count)).chain(count.saturating_sub(LAST)..count).rev() {
            choice.take(index, share(12));
        }
        let sections = self.sections.iter().filter_map(|&index| self.traits.get(index));
        let contents: u64 = sections.map(|it| it.tokens + self.marker).sum();
        if choice.spent + contents <= share(45) {
            for &index in &self.sections {
                choice.take(index, share(45));
            }
        }
        let rare = share(50).max(choice.spent + share(20));
        for &index in &self.rare {
            choice.take_with_heading(index, rare, rare + share(6));
        }
        for &index in &self.alarming {
            choice.take_with_heading(index, share(62), share(66));
        }
        for &index in &self.wanted {
            choice.take_with_heading(index, share(70), share(72));
        }
        surroundings(&self.traits, &mut choice, share(74));
        for &index in &self.firsts {
            choice.take(index, share(84));
        }
        choice.fill_ends(share(96));
        choice.bridge(share(100));
        for (&index, &kept) in self.places.iter().zip(&choice.kept) {
            if let Some(fate) = fates.get_mut(index).filter(|fate| fate.is_shown() && !kept) {
                *fate = Fate::Dropped;
            }
        }
    }
}

/// Rare rows, the most unlike first.
fn by_rarity(traits: &[Traits], outliers: &[bool]) -> Vec<usize> {
    let is_outlier = |index: usize| outliers.get(index).copied().unwrap_or(false);
    let score = |index: usize| {
        let extra = if is_outlier(index) { OUTLIER } else { 0 };
        traits.get(index).map(|it| it.novelty + 12 * it.severity as u32 + extra)
    };
    let mut rare: Vec<usize> = (0..traits.len())
        .filter(|&index| {
            let it = traits.get(index);
            it.is_some_and(|it| (it.alike <= 2 || is_outlier(index)) && !it.blank)
        })
        .collect();
    rare.sort_by_key(|&index| std::cmp::Reverse(score(index)));
    let mut plain = 0;
    rare.retain(|&index| {
        let alarming = traits.get(index).is_some_and(|it| it.severity >= Severity::Error);
        plain += usize::from(!alarming);
        alarming || plain <= RARE
    });
    rare
}

/// The first row of each alarming shape, then the last, then all rows of the shape that costs least in all, and so on:
/// one list that is complete, as that of the failed tests, is worth more than the beginnings of two. Rows that say again
/// word for word what one above says come at the end.
fn by_alarm(texts: &[&str], traits: &[Traits], marker: u64) -> Vec<usize> {
    let mut first: KeySet = KeySet::default();
    let mut last: KeyMap<usize> = KeyMap::default();
    let mut prices: KeyMap<u64> = KeyMap::default();
    let mut said: HashSet<&str> = HashSet::new();
    let mut order = Vec::new();
    let alarming = |it: &&Traits| it.severity >= Severity::Error;
    for (index, it) in traits.iter().enumerate().filter(|(_, it)| alarming(it)) {
        let again = texts.get(index).is_some_and(|text| !said.insert(text));
        last.insert(it.shape.template, index);
        if !again {
            *prices.entry(it.shape.template).or_insert(0) += it.tokens + marker;
        }
        order.push((index, first.insert(it.shape.template), again, it));
    }
    order.sort_by_key(|&(index, first, again, it)| {
        let end = last.get(&it.shape.template) == Some(&index);
        let round = match (first, end) {
            (true, _) => 0,
            (_, true) => 1,
            _ if !again => 2,
            _ => 3,
        };
        let price =
            if round < 2 { 0 } else { prices.get(&it.shape.template).copied().unwrap_or(0) };
        (round, price, std::cmp::Reverse(it.severity), it.alike)
    });
    order.into_iter().map(|(index, ..)| index).collect()
}

/// Rows that recipes want shown, summaries before others.
fn by_recipe(traits: &[Traits]) -> Vec<usize> {
    let marked = |summary: bool| {
        traits.iter().enumerate().filter_map(move |(index, it)| match it.mark {
            Mark::Summary(_) if summary => Some(index),
            Mark::Keep(_) if !summary => Some(index),
            _ => None,
        })
    };
    // The last of the summaries says most.
    let mut wanted: Vec<usize> = marked(true).collect();
    wanted.reverse();
    wanted.extend(marked(false));
    wanted
}

/// The rows before and after those that are alarming and taken.
fn surroundings(traits: &[Traits], choice: &mut Choice<'_>, limit: u64) {
    let alarming =
        |index: usize| traits.get(index).is_some_and(|it| it.severity >= Severity::Error);
    let taken: Vec<usize> =
        (0..traits.len()).filter(|&index| choice.is_kept(index) && alarming(index)).collect();
    for reach in [1, 2] {
        for &index in &taken {
            choice.take(index + reach, limit);
            if let Some(before) = index.checked_sub(reach) {
                choice.take(before, limit);
            }
        }
    }
}

/// The first row of each common shape, and of each common opening among rows that share no shape.
fn first_of_each_shape(texts: &[&str], traits: &[Traits]) -> Vec<usize> {
    let mut openings: KeyMap<u32> = KeyMap::default();
    let opening = |index: usize| {
        let alone = traits.get(index).is_some_and(|it| !it.blank && it.alike <= 2);
        texts.get(index).filter(|_| alone).map(|text| shape::opening(text))
    };
    for key in (0..traits.len()).filter_map(opening) {
        *openings.entry(key).or_insert(0) += 1;
    }
    openings.retain(|_, count| *count >= OPENING);
    let mut seen = KeySet::default();
    let mut firsts: Vec<usize> = (0..traits.len())
        .filter(|&index| {
            traits
                .get(index)
                .is_some_and(|it| !it.blank && it.alike > 2 && seen.insert(it.shape.template))
        })
        .collect();
    firsts.sort_by_key(|&index| std::cmp::Reverse(traits.get(index).map(|it| it.alike)));
    firsts.truncate(RARE);
    firsts.extend(
        (0..traits.len())
            .filter(|&index| opening(index).is_some_and(|key| openings.remove(&key).is_some())),
    );
    firsts
}

/// A set of kept rows and its price, markers included.
struct Choice<'p> {
    plan: &'p Plan,
    kept: Vec<bool>,
    spent: u64,
}

impl<'p> Choice<'p> {
    fn new(plan: &'p Plan) -> Self {
        Self { plan, kept: vec![false; plan.traits.len()], spent: plan.marker }
    }

    fn is_barred(&self, index: usize) -> bool {
        self.plan.barred.get(index).copied().unwrap_or(true)
    }

    fn is_kept(&self, index: usize) -> bool {
        self.kept.get(index).copied().unwrap_or(false)
    }

    /// Whether a row is kept or there is none.
    fn is_edge(&self, index: Option<usize>) -> bool {
        index.is_none_or(|index| self.kept.get(index).copied().unwrap_or(true))
    }

    /// Keeps a row if the price then stays within `limit`.
    fn take(&mut self, index: usize, limit: u64) -> bool {
        let Some(it) = self.plan.traits.get(index) else { return false };
        if self.is_kept(index) || self.is_barred(index) {
            return false;
        }
        let mut spent = self.spent + it.tokens;
        match (self.is_edge(index.checked_sub(1)), self.is_edge(Some(index + 1))) {
            (true, true) => spent = spent.saturating_sub(self.plan.marker),
            (false, false) => spent += self.plan.marker,
            _ => {}
        }
        if spent > limit {
            return false;
        }
        self.spent = spent;
        if let Some(kept) = self.kept.get_mut(index) {
            *kept = true;
        }
        true
    }

    /// Keeps a row, and its heading while that stays within `wider`.
    fn take_with_heading(&mut self, index: usize, limit: u64, wider: u64) {
        if self.take(index, limit)
            && let Some(heading) = self.plan.headings.get(index).copied().flatten()
        {
            self.take(heading, wider);
        }
    }

    /// Keeps rows from the end and from the beginning, three to two.
    fn fill_ends(&mut self, limit: u64) {
        let room = limit.saturating_sub(self.spent);
        let end = self.spent + room * 6 / 10;
        let fits = |choice: &mut Self, index: usize, limit: u64| {
            choice.is_kept(index) || choice.is_barred(index) || choice.take(index, limit)
        };
        let count = self.plan.traits.len();
        let _reached = (0..count).rev().find(|&index| !fits(self, index, end));
        let _reached = (0..count).find(|&index| !fits(self, index, limit));
    }

    /// Fills gaps that cost about as much as their marker.
    fn bridge(&mut self, limit: u64) {
        let mut start = 0;
        while start < self.kept.len() {
            let end = start + self.kept.iter().skip(start).take_while(|&&kept| !kept).count();
            let price: u64 = self
                .plan
                .traits
                .get(start..end)
                .unwrap_or_default()
                .iter()
                .map(|it| it.tokens)
                .sum();
            let free = !self.plan.barred.get(start..end).unwrap_or_default().contains(&true);
            if end > start
                && free
                && price <= self.plan.marker * 3 / 2
                && self.spent + price <= limit + self.plan.marker
            {
                self.spent = (self.spent + price).saturating_sub(self.plan.marker);
                self.kept.get_mut(start..end).unwrap_or_default().fill(true);
            }
            start = end + 1;
        }
    }
}
