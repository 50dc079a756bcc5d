//! The row that says what a row belongs to: the file of a diff, the folder of a listing, the key above an indented block.
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
            if text.ends_with(':') {
                open.push((indent, index));
            }
        }
        after_blank = false;
    }
    found
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
    use super::headings;

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
        check("spec:\n  load:\n    cpu: 4\n  name: x", &[None, Some(0), Some(1), Some(0)]);
    }
}
