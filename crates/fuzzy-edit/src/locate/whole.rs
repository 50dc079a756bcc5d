//! `trailing_ws` and `trim`: whole lines, blanks at one or both ends ignored.

use super::anchor::{Anchors, place};
use crate::emit::given_lines;
use crate::hits::{Hits, Place, Runs};
use crate::text::{View, lines, trim as trim_line, trim_end};

/// Windows of whole lines equal to the search's, as `key` sees them.
pub(super) fn windows<'t, K, F>(text: &'t str, search: &'t str, mut hits: Hits, key: F) -> Hits
where
    K: PartialEq,
    F: Fn(&'t str) -> K,
{
    let wanted: Vec<K> = given_lines(search).into_iter().map(&key).collect();
    each_run(text, &wanted, key, |place| hits.push(place));
    hits
}

/// Looks at every line for blocks equal to `wanted`, whose items `key` makes of lines.
fn each_run<'t, K, F>(text: &'t str, wanted: &[K], key: F, mut found: impl FnMut(Place))
where
    K: PartialEq,
    F: Fn(&'t str) -> K,
{
    if wanted.is_empty() {
        return;
    }
    let mut runs = Runs::new(wanted);
    for (number, (start, line)) in lines(text).enumerate() {
        if let Some((from, first)) = runs.next(&key(line), (start, number)) {
            found(Place::whole(from..start + line.len(), first));
        }
    }
}

/// Gives each block of whole lines equal to `given` as `key` sees them, which takes off blanks at the ends.
pub(super) fn each_block(
    view: &View<'_>,
    given: &[&str],
    anchors: &Anchors,
    key: fn(&str) -> &str,
    found: impl FnMut(Place),
) {
    let wanted: Vec<&str> = given.iter().map(|line| key(line)).collect();
    let mut places = Vec::new();
    let complete = anchors.blocks(&view.text, given, false, |block| {
        if block.iter().zip(&wanted).all(|((_, line), wanted)| key(line) == *wanted) {
            places.extend(place(view, block));
        }
    });
    if complete.is_some() {
        places.into_iter().for_each(found);
    } else {
        each_run(&view.text, &wanted, key, found);
    }
}

/// Blanks at the ends of lines ignored.
pub(super) fn trailing_ws(
    view: &View<'_>,
    given: &[&str],
    anchors: &Anchors,
    mut hits: Hits,
) -> Hits {
    each_block(view, given, anchors, trim_end, |place| hits.push(place));
    hits
}

/// Blanks at both ends of lines ignored.
pub(super) fn trim(view: &View<'_>, given: &[&str], anchors: &Anchors, mut hits: Hits) -> Hits {
    each_block(view, given, anchors, trim_line, |place| hits.push(place));
    hits
}
