//! Rows of one form, written as that form once and the words that fill it: `asset {}.js {} KiB`, then `a 133`, `b 29`.
//!
//! Rows take part if the blanks between their words are equal, so a row is its form with the words put in. Words
//! are never split: a name that is looked for is found. Rows that hold braces take no part.

use crate::marker;

/// Least rows of a run.
const LEAST: usize = 6;
/// Most words of a row.
const WIDEST: usize = 40;

/// Rewrites the run that opens `lines`; returns its length and text.
pub(super) fn rewrite(lines: &[&str]) -> Option<(usize, String)> {
    // A form of one word shares nothing.
    lines.first().filter(|line| line.contains([' ', '\t']))?;
    let first = split(lines.first()?)?;
    let mut varies = vec![false; first.len()];
    let mut rows = vec![first];
    for line in lines.iter().skip(1) {
        let Some(row) =
            split(line).filter(|row| fits(row, rows.first().map_or(&[], Vec::as_slice)))
        else {
            break;
        };
        for ((slot, word), model) in varies.iter_mut().zip(&row).zip(rows.first()?) {
            *slot |= word.0 != model.0;
        }
        rows.push(row);
    }
    let slots = varies.iter().filter(|&&yes| yes).count();
    if rows.len() < LEAST {
        return None;
    }
    if slots == 0 {
        return Some((rows.len(), lines.get(..rows.len())?.join("\n")));
    }
    let mut text = String::new();
    marker::columns(rows.len(), &mut text);
    text.push('\n');
    for ((word, gap), &varies) in rows.first()?.iter().zip(&varies) {
        text.push_str(if varies { "{}" } else { word });
        text.push_str(gap);
    }
    for row in &rows {
        text.push('\n');
        let words = row.iter().zip(&varies).filter(|(_, varies)| **varies).map(|(word, _)| word.0);
        for (index, word) in words.enumerate() {
            if index > 0 {
                text.push(' ');
            }
            text.push_str(word);
        }
    }
    Some((rows.len(), text))
}

/// The words of a line, each with what stands behind it; the first word may be empty.
fn split(line: &str) -> Option<Vec<(&str, &str)>> {
    if line.is_empty() || line.contains(['{', '}']) {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let word = rest.find(|char| !is_word(char)).unwrap_or(rest.len());
        let behind = rest.get(word..)?;
        let gap = behind.find(is_word).unwrap_or(behind.len());
        parts.push((rest.get(..word)?, behind.get(..gap)?));
        rest = behind.get(gap..)?;
    }
    (parts.len() <= WIDEST).then_some(parts)
}

fn is_word(char: char) -> bool {
    char != ' ' && char != '\t'
}

/// Whether two rows have the same form. An empty first word stays empty.
fn fits(row: &[(&str, &str)], model: &[(&str, &str)]) -> bool {
    row.len() == model.len()
        && row.iter().zip(model).all(|(a, b)| a.1 == b.1 && a.0.is_empty() == b.0.is_empty())
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn rows_are_their_form_filled_in() {
        let lines: Vec<String> = (0..7)
            .map(|n| format!("asset c.{n}.js {} KiB [emitted] [small] (page-{n})", n * 37))
            .collect();
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.push("a line of another form");
        let (count, text) = rewrite(&lines).unwrap();
        assert_eq!(count, 7);
        assert!(text.starts_with(
            "[… rewritten: 7 lines, the form below filled with the words of each row]\n\
             asset {} {} KiB [emitted] [small] {}\nc.0.js 0 (page-0)\nc.1.js 37 (page-1)\n"
        ));
        let mut out = text.lines().skip(1);
        let form = out.next().unwrap();
        let filled: Vec<String> = out
            .map(|row| {
                row.split(' ').fold(form.to_owned(), |form, word| form.replacen("{}", word, 1))
            })
            .collect();
        assert_eq!(filled, lines[..7]);
    }
}
