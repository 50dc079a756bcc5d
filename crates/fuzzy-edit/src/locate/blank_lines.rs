//! `blank_lines`: the lines with text are equal and in order, whatever blank lines stand between them.

use super::anchor::{Anchors, place};
use crate::hits::{Hits, Place, Runs};
use crate::text::{View, lines, trim, trim_end};

/// Blocks whose lines with text equal the search's; at least two.
pub(super) fn blank_lines(
    view: &View<'_>,
    given: &[&str],
    anchors: &Anchors,
    mut hits: Hits,
) -> Hits {
    let solid = given.iter().filter(|line| !trim(line).is_empty());
    let wanted: Vec<&str> = solid.map(|line| trim_end(line)).collect();
    if wanted.len() < 2 {
        return hits;
    }
    let mut places = Vec::new();
    let complete = anchors.blocks(&view.text, &wanted, true, |block| {
        if block.iter().zip(&wanted).all(|((_, line), wanted)| trim_end(line) == *wanted) {
            places.extend(place(view, block));
        }
    });
    if complete.is_some() {
        for place in places {
            hits.push(place);
        }
        return hits;
    }
    let mut runs = Runs::new(&wanted);
    for (number, (start, line)) in lines(&view.text).enumerate() {
        if trim(line).is_empty() {
            continue;
        }
        if let Some((from, first)) = runs.next(&trim_end(line), (start, number)) {
            hits.push(Place::whole(from..start + line.len(), first));
        }
    }
    hits
}
