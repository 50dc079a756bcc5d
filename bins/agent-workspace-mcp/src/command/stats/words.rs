//! Numbers, times and calls as a person reads them, in a terminal and in a browser. What they give is not yet safe for
//! either: it may hold what a model wrote.

use serde_json::Value;

use crate::stats::Figures;

/// The part of the tokens that was saved, in brackets; nothing where nothing was printed.
pub(super) fn percent(figures: &Figures) -> String {
    if figures.raw_tokens == 0 {
        return String::new();
    }
    let percent = i128::from(figures.saved()) * 100 / i128::from(figures.raw_tokens);
    format!(" ({percent} %)")
}

/// Digits in groups of three, and a sign where it is below zero.
pub(super) fn signed(number_: i64) -> String {
    let sign = if number_ < 0 { "-" } else { "" };
    format!("{sign}{}", number(number_.unsigned_abs()))
}

/// Digits in groups of three.
pub(super) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The first `most` characters; an ellipsis stands for the rest.
pub(super) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A value as a person reads it: a text without its quotes, a list of texts as one.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) if parts.iter().all(Value::is_string) => {
            let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            parts.join(", ")
        }
        other => other.to_string(),
    }
}

/// How long something took.
pub(super) fn length(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms} ms"),
        1_000..=59_949 => {
            let tenths = ms.saturating_add(50) / 100;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        59_950..=3_599_999 => {
            let seconds = ms.saturating_add(500) / 1_000;
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// What a call was about, in one line: its file, command, pattern or whatever names it.
pub(super) fn subject(arguments: &Value) -> String {
    const NAMES: [&str; 9] = [
        "command",
        "filepath",
        "pattern",
        "path",
        "code",
        "output_id",
        "job_id",
        "network",
        "changes",
    ];
    let Value::Object(fields) = arguments else {
        return if arguments.is_null() { String::new() } else { shown(arguments) };
    };
    let named = NAMES.iter().find_map(|name| fields.get(*name));
    named.or_else(|| fields.values().next()).map_or_else(String::new, shown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lengths_are_read_at_once() {
        let cases = [0, 999, 1_000, 59_949, 59_950, 61_400, 3_599_999, 3_600_000, 90_000_000];
        assert_eq!(
            cases.map(length).join(", "),
            "0 ms, 999 ms, 1.0 s, 59.9 s, 1 min 0 s, 1 min 1 s, 60 min 0 s, 1 h 0 min, 25 h 0 min"
        );
    }

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        fn check(arguments: &Value, expected: &str) {
            assert_eq!(subject(arguments), expected);
        }
        check(&json!({"timeout": 5, "command": "make"}), "make");
        check(&json!({"edits": [], "filepath": "a.py"}), "a.py");
        check(&json!({"sandbox_id": "s-1"}), "s-1");
        check(&json!("cut … (40000 characters)"), "cut … (40000 characters)");
        check(
            &json!({"network": ["a.example:443", "b.example:80"]}),
            "a.example:443, b.example:80",
        );
        check(&json!({}), "");
        check(&Value::Null, "");
    }

    #[test]
    fn a_beginning_ends_between_characters() {
        assert_eq!(beginning("éèê", 3), "éèê");
        assert_eq!(beginning("éèêë", 3), "éèê…");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(signed(-1000), "-1,000");
    }
}
