//! The row that says what a row belongs to: the file of a diff or of a linter's findings, the folder of a listing, the key above
//! an indented block.
//!
//! A rare row torn from its heading is a change without its file. Invariants: a heading stands above its rows; linear time.

/// For every row the nearest heading above it, if there is one.
pub(super) fn headings<'a>(rows: impl Iterator<Item = &'a str>) -> Vec<Option<usize>> {
    let mut section = None;
    // Keys of indented blocks that are open, the innermost last, each with its indentation.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut after_blank = true;
    let mut found = Vec::new();
    for (index, row) in rows.enumerate() {
        let text = row.trim_ascii_start();
        let indent = row.len() - text.len();
        if text.is_empty() {
            found.push(None);
            after_blank = true;
            continue;
        }
        while open.last().is_some_and(|&(above, _)| above >= indent) {
            open.pop();
        }
        if indent == 0 && opens_section(text, after_blank) {
            section = Some(index);
            found.push(None);
        } else {
            found.push(open.last().map(|&(_, key)| key).or(section));
            if text.ends_with(':') || (after_blank && is_path(text)) {
                open.push((indent, index));
            }
        }
        after_blank = false;
    }
    found
}

/// The rows that name a file or a folder whose rows follow, one for each.
pub(super) fn sections(rows: &[&str]) -> Vec<usize> {
    let begins = |start: &str| -> Vec<usize> {
        let rows = rows.iter().enumerate().filter(|(_, row)| row.starts_with(start));
        rows.map(|(index, _)| index).collect()
    };
    // A renamed file has no `+++`, and some diffs have nothing else.
    let diffs = begins("diff ");
    let mut found = if diffs.is_empty() { begins("+++ ") } else { diffs };
    found.extend(begins("==> "));
    let named = |&index: &usize| {
        let after_blank = index.checked_sub(1).is_none_or(|above| rows.get(above) == Some(&""));
        let name = rows.get(index).copied().unwrap_or_default();
        let has_parts = || rows.get(index + 1).is_some_and(|row| row.starts_with([' ', '\t']));
        after_blank
            && is_path(name.strip_suffix(':').unwrap_or(name))
            && (name.ends_with(':') || has_parts())
    };
    found.extend((0..rows.len()).filter(named));
    found.sort_unstable();
    found
}

/// Whether a row is the name of a file or a folder and nothing else, as linters put it above what they found there.
fn is_path(text: &str) -> bool {
    text.contains('/') && !text.contains([' ', '\t', '<', '"'])
}

fn opens_section(text: &str, after_blank: bool) -> bool {
    match text.as_bytes().first() {
        Some(b'+') => text.starts_with("+++ "),
        Some(b'=') => text.starts_with("==> "),
        Some(b'd') if text.starts_with("diff ") => true,
        Some(b'c') if text.starts_with("commit ") => text.len() >= "commit ".len() + 7,
        _ => after_blank && text.ends_with(':'),
    }
}

#[cfg(test)]
mod tests {
    use super::{headings, sections};

    fn check(text: &str, expected: &[Option<usize>]) {
        assert_eq!(headings(text.lines()), expected, "{text}");
    }

    #[test]
    fn rows_have_the_file_folder_or_key_above_them() {
        check(
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two",
            &[None, Some(0), None, Some(2), Some(2), Some(2)],
        );
        check("src:\na.rs\n\nsrc/odd:\nb.rs", &[None, Some(0), None, None, Some(3)]);
        check(
            "\n/src/a.ts\n  1:3  error\n\n/src/b.ts\n  2:1  error",
            &[None, None, Some(1), None, None, Some(4)],
        );
        check("spec:\n  load:\n    cpu: 4\n  name: x", &[None, Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn sections_are_named_once() {
        let find = |text: &str| sections(&text.lines().collect::<Vec<_>>());
        assert_eq!(
            find("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\ndiff --git a/y b/z"),
            [0, 5]
        );
        assert_eq!(find("--- a.txt\n+++ b.txt\n@@ -1 +1 @@"), [1]);
        assert_eq!(
            find("/src/a.ts\n  1:3  error\n\n/src/b.ts\n  2:1  error\n\n/no/parts\n"),
            [0, 3]
        );
        assert_eq!(find("==> a.log <==\nx\n\n==> b.log <==\ny"), [0, 3]);
        assert_eq!(
            find("./src:\na.rs\n\n./src/odd:\nb.rs\n\nWhat went wrong:\nno/path here:"),
            [0, 3]
        );
    }
}
