//! Compiler findings: the first ones of a kind whole, of the others their message and their place.
//!
//! A block opens with a finding (`warning: …`, `error[E0425]: …`, `src/a.c:12:5: warning: …`) and goes on with its
//! snippet. Two findings are of a kind if their messages agree but for numbers and what stands in quotes. Recognised line by
//! line, so the blocks may stand inside any other output. Nothing but snippets of repeats is left out.

use crate::keyed::KeyMap;
use crate::row::{Fate, Row};
use crate::shape;

/// Blocks of a kind that stay whole.
const WHOLE: u32 = 2;

/// Marks the snippets of repeated findings in `fates`.
pub(crate) fn trim(rows: &[Row<'_>], fates: &mut [Fate]) {
    let mut kinds: KeyMap<u32> = KeyMap::default();
    let mut at = 0;
    while at < rows.len() {
        let text = |index: usize| rows.get(index).map(|row| row.text.as_ref()).unwrap_or_default();
        let Some(kind) = kind(text(at)) else {
            at += 1;
            continue;
        };
        let mut end = at + 1;
        while end < rows.len() && is_body(text(end)) {
            end += 1;
        }
        let seen = kinds.entry(kind).or_insert(0);
        *seen += 1;
        if *seen > WHOLE && end > at + 2 {
            let blank = usize::from(end < rows.len() && text(end).is_empty());
            for index in at..end + blank {
                let headline = index == at || (index == at + 1 && is_place(text(index)));
                if let Some(fate) = fates.get_mut(index).filter(|fate| **fate == Fate::Shown) {
                    *fate = if headline { Fate::Headline } else { Fate::Trimmed };
                }
            }
        }
        at = end;
    }
}

/// What kind of finding a line opens, if it opens one.
fn kind(line: &str) -> Option<u64> {
    let message = message(line).or_else(|| {
        // Behind `path:12:5: `.
        let (place, rest) = line.split_at_checked(memchr::memchr(b' ', line.as_bytes())?)?;
        let place = place.strip_suffix(':')?;
        place.ends_with(|char: char| char.is_ascii_digit()).then(|| message(rest.get(1..)?))?
    })?;
    let mut bare = String::with_capacity(message.len());
    let mut quoted = false;
    for char in message.chars() {
        if matches!(char, '`' | '\'' | '"' | '‘' | '’') {
            quoted = !quoted;
        } else if !quoted {
            bare.push(char);
        }
    }
    Some(shape::template(&bare))
}

/// What stands behind the level that `text` opens with.
fn message(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("warning").or_else(|| text.strip_prefix("error"))?;
    (rest.starts_with(": ") || rest.starts_with('[')).then_some(rest)
}

/// Whether a line is part of a snippet or a note below a finding; anything else ends the block.
fn is_body(line: &str) -> bool {
    let inner = line.trim_start();
    if ["-->", ":::", "= ", "|", "...", "note: ", "help: "]
        .iter()
        .any(|open| inner.starts_with(open))
    {
        return true;
    }
    // `12 |  code`, `12 +  code`, or nothing but marks below it.
    let rest = inner.trim_start_matches(|char: char| char.is_ascii_digit());
    let numbered = rest.len() < inner.len()
        && [" |", " +", " -", " ~"].iter().any(|mark| rest.starts_with(mark));
    numbered || (inner.len() < line.len() && inner.bytes().all(|byte| b"^~-+|_ ".contains(&byte)))
}

/// `  --> src/lib.rs:4:9`
fn is_place(line: &str) -> bool {
    line.trim_start().starts_with("--> ")
}

#[cfg(test)]
mod tests {
    use super::trim;
    use crate::row::{Fate, Row};

    #[test]
    fn repeats_keep_message_and_place() {
        let block =
            "warning: unused variable: `N`\n --> src/N.rs:4:9\n  |\n4 | let N = 1;\n  |\n\n";
        let mut text: String = ["a", "b", "c"].map(|name| block.replace('N', name)).concat();
        text += "error[E0425]: cannot find `d`\n --> src/d.rs:1:1\n  |\n1 | d\n\n";
        let rows: Vec<Row<'_>> =
            (0..).zip(text.lines()).map(|(n, line)| Row::new(n..n + 1, line.into())).collect();
        let mut fates = vec![Fate::Shown; rows.len()];
        trim(&rows, &mut fates);
        let shown: Vec<&str> = rows
            .iter()
            .zip(&fates)
            .filter(|(_, fate)| **fate == Fate::Headline)
            .map(|(row, _)| row.text.as_ref())
            .collect();
        assert_eq!(shown, ["warning: unused variable: `c`", " --> src/c.rs:4:9"]);
        assert_eq!(fates.iter().filter(|fate| **fate == Fate::Trimmed).count(), 4);
    }
}
