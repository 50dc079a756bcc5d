//! `similar`, opt-in: what the edit changes is there word for word, lines it leaves alone may have drifted.
//!
//! A three-way merge: base is the search, ours the file, theirs the replacement. A conflict is no hit, so
//! nothing is overwritten that the edit did not know.

use crate::emit::given_lines;
use crate::hits::{Hits, Place};
use crate::line_diff::{Origin, origins};
use crate::text::{lines, trim, trim_end};

/// Least likeness of a single context line.
const LEAST_LINE: f32 = 0.6;
/// How much less alike the second best place must be.
const MARGIN: f32 = 0.1;
/// Places compared in full.
const MAX_PLACES: usize = 1_000;
/// Characters of a line that are compared.
const MAX_CHARS: usize = 200;

/// The best block, if it is at least `least` alike and no other comes near.
pub(super) fn similar(text: &str, search: &str, replace: &str, least: f32, mut hits: Hits) -> Hits {
    let given = given_lines(search);
    let ends: Vec<&str> = given.iter().map(|line| trim_end(line)).collect();
    let written: Vec<&str> = given_lines(replace).into_iter().map(trim_end).collect();
    let mut context = vec![false; given.len()];
    for origin in origins(&ends, &written) {
        if let Origin::Kept(line) = origin
            && let Some(slot) = context.get_mut(line)
        {
            *slot = true;
        }
    }
    let (Some(head), Some(tail)) = (given.first(), given.last()) else {
        return hits;
    };
    let file: Vec<(usize, &str)> = lines(text).collect();
    let mut found: Vec<(f32, Place)> = Vec::new();
    let starts = file.windows(given.len()).enumerate().filter(|(_, window)| {
        let same = |end: Option<&(usize, &str)>, wanted: &str| {
            end.is_some_and(|(_, line)| trim(line) == trim(wanted))
        };
        same(window.first(), head) && same(window.last(), tail)
    });
    for (number, window) in starts.take(MAX_PLACES) {
        let Some(score) = score(&given, &context, window) else {
            continue;
        };
        if score >= least
            && let (Some((start, _)), Some((end, line))) = (window.first(), window.last())
        {
            let mut place = Place::whole(*start..end + line.len(), number);
            place.score = Some(score);
            found.push((score, place));
        }
    }
    let best = found.iter().map(|(score, _)| *score).fold(0.0, f32::max);
    for (score, place) in found {
        if score > best - MARGIN {
            hits.push(place);
        }
    }
    hits
}

/// Mean likeness of a window, if every changed line is there and no context line is too far off.
fn score(given: &[&str], context: &[bool], window: &[(usize, &str)]) -> Option<f32> {
    let mut sum = 0.0;
    for ((wanted, context), (_, found)) in given.iter().zip(context).zip(window) {
        let (wanted, found) = (trim(wanted), trim(found));
        if wanted == found {
            sum += 1.0;
            continue;
        }
        let alike = alike(wanted, found);
        if !context || alike < LEAST_LINE {
            return None;
        }
        sum += alike;
    }
    Some(sum / f32::from(u16::try_from(given.len()).ok()?))
}

/// How much alike two lines are, 0 to 1; of long ones the beginning is compared.
pub(crate) fn alike(a: &str, b: &str) -> f32 {
    if a == b {
        return 1.0;
    }
    let a: Vec<char> = a.chars().take(MAX_CHARS).collect();
    let b: Vec<char> = b.chars().take(MAX_CHARS).collect();
    let longer = u16::try_from(a.len().max(b.len())).unwrap_or(u16::MAX);
    if longer == 0 {
        return 1.0;
    }
    let away = u16::try_from(distance(&a, &b)).unwrap_or(u16::MAX);
    1.0 - f32::from(away) / f32::from(longer)
}

/// Edit distance of two short sequences.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (slot, y) in row.iter_mut().skip(1).zip(b) {
            let above = *slot;
            left = (diagonal + usize::from(x != y)).min(above + 1).min(left + 1);
            diagonal = above;
            *slot = left;
        }
        if let Some(slot) = row.first_mut() {
            *slot = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("kitten"), &chars("sitting")), 3);
        assert_eq!(distance(&[], &chars("ab")), 2);
        assert!((alike("abcd", "abce") - 0.75).abs() < f32::EPSILON);
    }
}
