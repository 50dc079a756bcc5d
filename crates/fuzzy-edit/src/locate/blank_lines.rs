//! `blank_lines`: the lines with text are equal and in order, whatever blank lines stand between them.

use crate::emit::given_lines;
use crate::hits::{Hits, Place, Runs};
use crate::text::{lines, trim, trim_end};

/// Blocks whose lines with text equal the search's; at least two.
pub(super) fn blank_lines(text: &str, search: &str, mut hits: Hits) -> Hits {
    let wanted: Vec<&str> = given_lines(search)
        .into_iter()
        .filter(|line| !trim(line).is_empty())
        .map(trim_end)
        .collect();
    if wanted.len() < 2 {
        return hits;
    }
    let mut runs = Runs::new(&wanted);
    for (number, (start, line)) in lines(text).enumerate() {
        if trim(line).is_empty() {
            continue;
        }
        if let Some((from, first)) = runs.next(&trim_end(line), (start, number)) {
            hits.push(Place::whole(from..start + line.len(), first));
        }
    }
    hits
}
