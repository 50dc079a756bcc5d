//! Hits of a search, `path:line:text`, under their path as `rg --heading` prints them.
//!
//! Neighbouring files with the same hits share them. Below a heading, every row opens with its line number, and no heading does, so the rows
//! can be written down again: each heading before each of its rows.

use crate::marker;

/// Least rows of a run.
const LEAST: usize = 6;

/// Rewrites the run of hits that opens `lines`; returns its length and text.
pub(super) fn rewrite(lines: &[&str]) -> Option<(usize, String)> {
    let hits: Vec<(&str, &str)> = lines.iter().map_while(|line| hit(line)).collect();
    if hits.len() < LEAST {
        return None;
    }
    let mut text = String::new();
    marker::headings(hits.len(), &mut text);
    let files: Vec<&[(&str, &str)]> = hits.chunk_by(|a, b| a.0 == b.0).collect();
    for group in files.chunk_by(|a, b| same_hits(a, b)) {
        let paths: Vec<&str> =
            group.iter().filter_map(|file| file.first()).map(|hit| hit.0).collect();
        for folder in paths.chunk_by(|a, b| folder(a) == folder(b)) {
            text.push('\n');
            write_heading(folder, &mut text);
        }
        for (_, rest) in group.first().copied().unwrap_or_default() {
            text.push('\n');
            text.push_str(rest);
        }
    }
    Some((hits.len(), text))
}

fn same_hits(a: &[(&str, &str)], b: &[(&str, &str)]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.1 == b.1)
}

fn folder(path: &str) -> &str {
    path.rfind('/').and_then(|at| path.get(..=at)).unwrap_or_default()
}

/// `src/{a.py b.py}:`, or the path as it is.
fn write_heading(paths: &[&str], text: &mut String) {
    let folder = paths.first().map(|path| folder(path)).unwrap_or_default();
    text.push_str(folder);
    let names: Vec<&str> = paths.iter().filter_map(|path| path.strip_prefix(folder)).collect();
    if let [name] = names.as_slice() {
        text.push_str(name);
    } else {
        text.push('{');
        text.push_str(&names.join(" "));
        text.push('}');
    }
    text.push(':');
}

/// The path of a hit, and the rest from its line number on.
fn hit(line: &str) -> Option<(&str, &str)> {
    let at = line.find(':')?;
    let path = line.get(..at)?;
    let rest = line.get(at + 1..)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_hit = digits > 0 && rest.as_bytes().get(digits) == Some(&b':');
    let is_path = path.contains(['/', '.'])
        && !path.contains([' ', '\t', '{', '}'])
        && !path.starts_with(|char: char| char.is_ascii_digit() || char == '[');
    (is_hit && is_path).then_some((path, rest))
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn hits_stand_under_their_files() {
        let lines = [
            "src/a.py:6: # TODO one",
            "src/a.py:9: # TODO two",
            "src/b.py:6: # TODO one",
            "src/b.py:9: # TODO two",
            "lib/c.py:1:x",
            "lib/c.py:12:y",
            "The end",
        ];
        let (count, text) = rewrite(&lines).unwrap();
        assert_eq!(count, 6);
        assert_eq!(
            text,
            "[… rewritten: 6 lines, each under the path it starts with]\n\
             src/{a.py b.py}:\n6: # TODO one\n9: # TODO two\n\
             lib/c.py:\n1:x\n12:y"
        );
    }
}
