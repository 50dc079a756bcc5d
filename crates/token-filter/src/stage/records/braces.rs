//! Rows that differ in one word, written as a shell would: `src/{a.py b.py c.py}`.
//!
//! Paths of one folder, passed tests of one module, columns of a listing that are all the same. Words stay whole, so a name that is looked for
//! is found. Rows that hold braces take no part; a row without a neighbour stays as it is.

use crate::marker;
use crate::stage::records::counting;

/// Least rows of a run.
const LEAST: usize = 6;
/// Rows without a neighbour between two groups.
const LONERS: usize = 8;
/// Words on one line.
const WORDS: usize = 48;
/// Least bytes that rows share for the braces to pay.
const SHARED: usize = 6;

/// Rewrites the run that opens `lines`; returns its length and text.
pub(super) fn rewrite(lines: &[&str]) -> Option<(usize, String)> {
    // A run opens with a pair.
    Frame::of(lines.first()?, lines.get(1)?)?;
    let mut text = String::new();
    let mut rows = 0;
    let mut end = (0, 0);
    while let Some(line) = lines.get(rows).filter(|line| is_open(line)) {
        let frame = lines.get(rows + 1).and_then(|next| Frame::of(line, next));
        let rest = lines.get(rows..).unwrap_or_default();
        let counts = counting::rewrite(rest).is_some_and(|(count, _)| count > WORDS);
        if counts || rows > end.0 + LONERS {
            break;
        }
        if let Some(frame) = frame {
            rows += frame.write(rest, &mut text);
            end = (rows, text.len());
        } else {
            text.push_str(line);
            rows += 1;
        }
        text.push('\n');
    }
    // Single rows after the last group are better as they are.
    let (rows, length) = end;
    if rows < LEAST {
        return None;
    }
    let mut whole = String::new();
    marker::braces(rows, &mut whole);
    whole.push('\n');
    whole.push_str(text.get(..length)?);
    Some((rows, whole))
}

fn is_open(line: &str) -> bool {
    !line.is_empty() && !line.contains(['{', '}'])
}

/// What the rows of a group share.
struct Frame<'l> {
    prefix: &'l str,
    suffix: &'l str,
}

impl<'l> Frame<'l> {
    /// The longest frame of two rows, whole words around one word.
    fn of(a: &'l str, b: &str) -> Option<Self> {
        if !is_open(a) || !is_open(b) || a == b {
            return None;
        }
        let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        let prefix = a.as_bytes().get(..same)?;
        let prefix =
            prefix.iter().rposition(|byte| b" /\t:=".contains(byte)).map_or(0, |at| at + 1);
        let room = a.len().min(b.len()) - prefix;
        let same =
            a.bytes().rev().zip(b.bytes().rev()).take(room).take_while(|(a, b)| a == b).count();
        let tail = a.as_bytes().get(a.len() - same..)?;
        let suffix = tail.iter().position(|byte| *byte == b' ').map_or(0, |at| same - at);
        let frame = Self { prefix: a.get(..prefix)?, suffix: a.get(a.len() - suffix..)? };
        let fits = frame.word(a).is_some() && frame.word(b).is_some();
        (fits && prefix + suffix >= SHARED).then_some(frame)
    }

    /// The word of `line` in this frame.
    fn word<'w>(&self, line: &'w str) -> Option<&'w str> {
        let word = line.strip_prefix(self.prefix)?.strip_suffix(self.suffix)?;
        let one = !word.is_empty() && !word.contains([' ', '\t', '{', '}']);
        // A deeper path belongs to a frame of its own.
        (one && !(self.prefix.ends_with('/') && word.trim_end_matches('/').contains('/')))
            .then_some(word)
    }

    /// Writes the group that opens `lines`; returns its length.
    fn write(&self, lines: &[&str], text: &mut String) -> usize {
        text.push_str(self.prefix);
        text.push('{');
        let mut count = 0;
        for word in lines.iter().take(WORDS).map_while(|line| self.word(line)) {
            if count > 0 {
                text.push(' ');
            }
            text.push_str(word);
            count += 1;
        }
        text.push('}');
        text.push_str(self.suffix);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    /// Writes the rows of a rewriting down again.
    fn expand(text: &str) -> Vec<String> {
        text.lines()
            .filter(|line| !line.starts_with('['))
            .flat_map(|line| match line.split_once('{') {
                None => vec![line.to_owned()],
                Some((prefix, rest)) => {
                    let (words, suffix) = rest.split_once('}').unwrap();
                    words.split(' ').map(|word| format!("{prefix}{word}{suffix}")).collect()
                }
            })
            .collect()
    }

    #[test]
    fn rows_are_written_once_for_their_shared_part() {
        let lines = [
            "test bulk::case_1 ... ok",
            "test bulk::case_2 ... ok",
            "test bulk::reads ... ok",
            "test other::alone ... ok",
            "src/a/x.py",
            "src/a/y.py",
            "src/b/x.py",
            "src/b/y.py",
            "README.md",
        ];
        let (count, text) = rewrite(&lines).unwrap();
        assert_eq!(count, 8);
        assert_eq!(
            text,
            "[… rewritten: 8 lines, one for each word in braces]\n\
             test bulk::{case_1 case_2 reads} ... ok\n\
             test other::alone ... ok\n\
             src/a/{x.py y.py}\n\
             src/b/{x.py y.py}"
        );
        assert_eq!(expand(&text), lines[..count]);
    }

    #[test]
    fn rows_with_braces_or_blanks_in_the_word_take_no_part() {
        assert_eq!(rewrite(&["let a = {1};", "let a = {2};", "let a = {3};"]), None);
        assert_eq!(rewrite(&["same", "same", "same", "same", "same", "same", "same"]), None);
    }
}
