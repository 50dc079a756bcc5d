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
    let blanks = blanks(lines.first()?);
    // Rows of one form have as many blanks, and that is seen without splitting them.
    if blanks == 0 || lines.get(..LEAST)?.iter().any(|line| self::blanks(line) != blanks) {
        return None;
    }
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
    // Both ends stand as they were printed: they show how to read the rest, and are found as they are.
    let last = lines.get(rows.len() - 1)?;
    let mut text = format!("{}\n", lines.first()?);
    marker::columns(rows.len() - 2, &mut text);
    text.push('\n');
    for ((word, gap), &varies) in rows.first()?.iter().zip(&varies) {
        text.push_str(if varies { "{}" } else { word });
        text.push_str(gap);
    }
    for row in rows.get(1..rows.len() - 1)? {
        text.push('\n');
        let words = row.iter().zip(&varies).filter(|(_, varies)| **varies).map(|(word, _)| word.0);
        for (index, word) in words.enumerate() {
            if index > 0 {
                text.push(' ');
            }
            text.push_str(word);
        }
    }
    text.push('\n');
    text.push_str(last);
    Some((rows.len(), text))
}

fn blanks(line: &str) -> usize {
    line.bytes().filter(|&byte| byte == b' ' || byte == b'\t').count()
}

/// The words of a line, each with what stands behind it; the first word may be empty.
fn split(line: &str) -> Option<Vec<(&str, &str)>> {
    if line.is_empty() || line.contains(['{', '}']) {
        return None;
    }
    let mut parts = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let word = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        let behind = rest.get(word..)?;
        let gap = behind.bytes().position(is_word).unwrap_or(behind.len());
        parts.push((rest.get(..word)?, behind.get(..gap)?));
        rest = behind.get(gap..)?;
    }
    (parts.len() <= WIDEST).then_some(parts)
}

fn is_word(byte: u8) -> bool {
    byte != b' ' && byte != b'\t'
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
            "asset c.0.js 0 KiB [emitted] [small] (page-0)\n\
             [… rewritten: 5 lines, the form below filled with the words of each row]\n\
             asset {} {} KiB [emitted] [small] {}\nc.1.js 37 (page-1)\nc.2.js 74 (page-2)\n"
        ));
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!((rows[0], rows[rows.len() - 1]), (lines[0], lines[6]));
        let form = rows[2];
        let filled: Vec<String> = rows[3..rows.len() - 1]
            .iter()
            .map(|row| {
                row.split(' ').fold(form.to_owned(), |form, word| form.replacen("{}", word, 1))
            })
            .collect();
        assert_eq!(filled, lines[1..6]);
    }
}
