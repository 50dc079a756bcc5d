//! The arguments of a call to read: edits and contents as changes, the rest as it is.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

use super::text::Text;
use crate::command::stats::words::shown;

/// What an edit's texts are called by the models that send it.
const OLD: [&str; 6] = ["old", "old_str", "old_string", "oldText", "old_text", "search"];
const NEW: [&str; 6] = ["new", "new_str", "new_string", "newText", "new_text", "replace"];

/// Writes the arguments into an element that keeps line ends.
pub(super) fn arguments(page: &mut String, given: &Value) -> fmt::Result {
    let Value::Object(object) = given else {
        return if given.is_null() { Ok(()) } else { write!(page, "{}", Text(&shown(given))) };
    };
    // What is changed stands below what says where.
    let is_change = |name: &str| matches!(name, "edits" | "content" | "code");
    for (name, value) in object.iter().filter(|(name, _)| !is_change(name)) {
        writeln!(page, "<b>{}</b> {}", Text(name), Text(&shown(value)))?;
    }
    for (name, value) in object.iter().filter(|(name, _)| is_change(name)) {
        match value {
            Value::Array(edits) if name == "edits" => {
                for edit in edits {
                    match edit {
                        Value::Object(fields) => change(page, fields)?,
                        other => writeln!(page, "{}", Text(&shown(other)))?,
                    }
                }
            }
            Value::String(text) => lines(page, "ins", '+', text.lines())?,
            other => writeln!(page, "<b>{}</b> {}", Text(name), Text(&shown(other)))?,
        }
    }
    Ok(())
}

/// One edit: the lines that both texts begin and end with stand once.
fn change(page: &mut String, fields: &Map<String, Value>) -> fmt::Result {
    let (old, new) = (text(fields, &OLD), text(fields, &NEW));
    let taken = [old, new].map(|text| text.map(|(name, _)| name));
    for (name, value) in fields.iter().filter(|(name, _)| !taken.contains(&Some(name.as_str()))) {
        writeln!(page, "<b>{}</b> {}", Text(name), Text(&shown(value)))?;
    }
    let [old, new] =
        [old, new].map(|it| it.map_or("", |(_, text)| text).lines().collect::<Vec<_>>());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - before;
    let ends = old.iter().rev().zip(new.iter().rev());
    let after = ends.take(most).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - after, new.len() - after);
    for (element, sign, part) in [
        ("span", ' ', old.get(..before)),
        ("del", '-', old.get(before..old_end)),
        ("ins", '+', new.get(before..new_end)),
        ("span", ' ', old.get(old_end..)),
    ] {
        lines(page, element, sign, part.unwrap_or_default().iter().copied())?;
    }
    Ok(())
}

/// The text under the first of these names that is there, with that name.
fn text<'f>(
    fields: &'f Map<String, Value>,
    names: &[&'static str],
) -> Option<(&'static str, &'f str)> {
    names.iter().find_map(|name| Some((*name, fields.get(*name)?.as_str()?)))
}

/// Each line as an element of its own.
fn lines<'t>(
    page: &mut String,
    element: &str,
    sign: char,
    lines: impl Iterator<Item = &'t str>,
) -> fmt::Result {
    for line in lines {
        write!(page, "<{element}>{sign}{}</{element}>", Text(line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(given: &Value, expected: &str) {
        let mut page = String::new();
        arguments(&mut page, given).unwrap();
        assert_eq!(page, expected);
    }

    #[test]
    fn an_edit_is_shown_as_a_change() {
        check(
            &json!({"filepath": "a.py", "edits": [{"old": "x = 1\ny", "new": "x = 2"}]}),
            "<b>filepath</b> a.py\n<del>-x = 1</del><del>-y</del><ins>+x = 2</ins>",
        );
    }

    #[test]
    fn what_stays_stands_once() {
        check(
            &json!({"edits": [{"old_string": "a\nb\nb\nc", "new_string": "a\nb\nc", "at_line": 3}]}),
            "<b>at_line</b> 3\n<span> a</span><span> b</span><del>-b</del><span> c</span>",
        );
        check(&json!({"edits": [{"old": "same", "new": "same"}]}), "<span> same</span>");
    }

    #[test]
    fn a_content_is_new_and_odd_values_are_shown() {
        check(
            &json!({"content": "a\nb", "filepath": "f"}),
            "<b>filepath</b> f\n<ins>+a</ins><ins>+b</ins>",
        );
        check(&json!({"edits": [1], "content": [2]}), "<b>content</b> [2]\n1\n");
        check(&json!("cut"), "cut");
    }
}
