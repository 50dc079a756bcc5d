//! `indent`: whole lines equal at `trim` whose indentation differs in one consistent way.

use super::anchor::Anchors;
use super::whole::each_block;
use crate::hits::Hits;
use crate::indent::mapping;
use crate::text::{View, cut, indent_of, trim};

/// Lines compared for their indentation in one search; beyond that all places count as `trim` only.
const MAX_COMPARED: usize = 2_000_000;

/// The places of the levels `indent` and `trim`; the first are among the second.
pub(super) fn indent_and_trim(
    view: &View<'_>,
    given: &[&str],
    anchors: &Anchors,
    empty: &Hits,
) -> (Hits, Hits) {
    let (mut indent, mut all) = (empty.fresh(), empty.fresh());
    let mut compared = 0_usize;
    each_block(view, given, anchors, trim, |place| {
        compared = compared.saturating_add(given.len());
        if compared <= MAX_COMPARED {
            let pairs: Vec<(&str, &str)> = given
                .iter()
                .zip(cut(&view.text, place.range.clone()).split('\n'))
                .filter(|(line, _)| !trim(line).is_empty())
                .map(|(line, found)| (indent_of(line), indent_of(found)))
                .collect();
            if mapping(&pairs, None, &[]).is_some() {
                indent.push(place.clone());
            }
        }
        all.push(place);
    });
    // A count of some of the places would be no count.
    if compared > MAX_COMPARED { (empty.fresh(), all) } else { (indent, all) }
}
