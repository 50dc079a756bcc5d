//! `trailing_ws` and `trim`: whole lines, blanks at one or both ends ignored.

use crate::emit::given_lines;
use crate::hits::{Hits, Place, Runs};
use crate::text::{lines, trim as trim_line, trim_end};

/// Windows of whole lines equal to the search's, as `key` sees them.
pub(super) fn windows<'t, K, F>(text: &'t str, search: &'t str, mut hits: Hits, key: F) -> Hits
where
    K: PartialEq,
    F: Fn(&'t str) -> K,
{
    each_window(text, search, key, |place| hits.push(place));
    hits
}

/// Gives each window of whole lines equal to the search's.
pub(super) fn each_window<'t, K, F>(
    text: &'t str,
    search: &'t str,
    key: F,
    mut found: impl FnMut(Place),
) where
    K: PartialEq,
    F: Fn(&'t str) -> K,
{
    let wanted: Vec<K> = given_lines(search).into_iter().map(&key).collect();
    if wanted.is_empty() {
        return;
    }
    let mut runs = Runs::new(&wanted);
    for (number, (start, line)) in lines(text).enumerate() {
        if let Some((from, first)) = runs.next(&key(line), (start, number)) {
            found(Place::whole(from..start + line.len(), first));
        }
    }
}

/// Blanks at the ends of lines ignored.
pub(super) fn trailing_ws(text: &str, search: &str, hits: Hits) -> Hits {
    windows(text, search, hits, trim_end)
}

/// Blanks at both ends of lines ignored.
pub(super) fn trim(text: &str, search: &str, hits: Hits) -> Hits {
    windows(text, search, hits, trim_line)
}
