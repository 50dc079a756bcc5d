//! What several modules need: a strict reader of unified diffs.

use fuzzy_edit::{Edit, EditError, Options, Plan, Validate, plan};

/// Plans on a plain text file, unvalidated.
pub(crate) fn plan_text(file: &str, edits: &[Edit]) -> Result<Plan, EditError> {
    let options = Options::default().validate(Validate::Off);
    plan(file.as_bytes(), std::path::Path::new("file.txt"), edits, &options)
}

/// The text of a plan.
pub(crate) fn text(plan: &Plan) -> &str {
    std::str::from_utf8(&plan.text).unwrap()
}

/// Applies a unified diff as strictly as it can be read: every context and removed line must be there, at
/// the line the hunk names, and the counts must add up.
pub(crate) fn patch(original: &str, diff: &str) -> String {
    if diff.is_empty() {
        return original.to_owned();
    }
    let old: Vec<&str> = original.split_inclusive('\n').collect();
    let mut at = 0;
    let mut out = String::new();
    let mut rows = diff.split_inclusive('\n').peekable();
    assert!(rows.next().unwrap().starts_with("--- a/"));
    assert!(rows.next().unwrap().starts_with("+++ b/"));
    while let Some(header) = rows.next() {
        let inner = header.strip_prefix("@@ -").and_then(|h| h.strip_suffix(" @@\n")).unwrap();
        let (from, to) = inner.split_once(" +").unwrap();
        let pair = |text: &str| {
            let (line, count) = text.split_once(',').unwrap();
            (line.parse::<usize>().unwrap(), count.parse::<usize>().unwrap())
        };
        let ((old_line, mut old_left), (new_line, mut new_left)) = (pair(from), pair(to));
        let start = if old_left == 0 { old_line } else { old_line - 1 };
        out.extend(old[at..start].iter().copied());
        at = start;
        let written = out.split_inclusive('\n').count();
        assert_eq!(written, if new_left == 0 { new_line } else { new_line - 1 }, "{diff}");
        while old_left + new_left > 0 {
            let row = rows.next().unwrap();
            let (sign, mut body) = row.split_at(1);
            if rows.peek().is_some_and(|next| next.starts_with('\\')) {
                rows.next();
                body = body.strip_suffix('\n').unwrap();
            }
            if sign != "+" {
                assert_eq!(old.get(at), Some(&body), "{diff}");
                at += 1;
                old_left -= 1;
            }
            if sign != "-" {
                out.push_str(body);
                new_left -= 1;
            }
        }
    }
    out.extend(old[at..].iter().copied());
    out
}
