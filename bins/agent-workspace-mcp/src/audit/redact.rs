//! What looks like a secret, and what stands for it in the log.
//!
//! A net, not a promise: it knows the usual names, schemes and prefixes. It may take a harmless word; it is applied
//! to the record alone.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// What is written in a secret's place.
pub(super) const REDACTED: &str = "[redacted]";

const NAME: &str = r"(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)";

/// Each keeps its groups and loses the rest of the match.
static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // NAME=value, "name": "value"
        &format!(r#"(?i)([a-z0-9_-]*{NAME}[a-z0-9_-]*["']?\s*[:=]\s*["']?)[^\s"'&;,()]{{4,}}"#),
        // --name value
        &format!(r#"(?i)(--[a-z0-9_-]*{NAME}\s+["']?)[^\s"'&;,()]{{4,}}"#),
        // Authorization: Bearer value
        r#"(?i)((?-u:\b)(?:authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)?|bearer)\s+)[a-z0-9._~+/=-]{8,}"#,
        // https://user:value@host
        r"(://[^\s/:@]*:)[^\s/@]+(@)",
        // Values that tell what they are.
        r"()(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{16,}|xox[abeprs]-[A-Za-z0-9_-]{10,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)",
        r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    ]
    .into_iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

static NAMES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("(?i)^[a-z0-9_-]*{NAME}$")).ok());

/// Whether an argument of this name holds a secret as a whole.
pub(super) fn is_secret_name(name: &str) -> bool {
    NAMES.as_ref().is_some_and(|names| names.is_match(name))
}

/// The text with what looks like a secret replaced.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    for pattern in PATTERNS.iter() {
        if pattern.is_match(&clean) {
            let replaced = pattern.replace_all(&clean, format!("${{1}}{REDACTED}${{2}}"));
            clean = Cow::Owned(replaced.into_owned());
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), 6);
        assert!(NAMES.is_some());
    }

    #[test]
    fn secrets_go_and_the_rest_stays() {
        fn check(text: &str, expected: &str) {
            assert_eq!(redact(text), expected);
        }
        check("export DB_PASSWORD=hunter2 && make", "export DB_PASSWORD=[redacted] && make");
        check(r#"{"api_key": "abcd1234"}"#, r#"{"api_key": "[redacted]"}"#);
        check("login --token abcd1234", "login --token [redacted]");
        check("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]");
        check(
            "git clone https://me:pw@example.net/x",
            "git clone https://me:[redacted]@example.net/x",
        );
        check(&format!("echo ghp_{}", "a".repeat(36)), "echo [redacted]");
        check(
            "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n",
            "-----BEGIN PRIVATE KEY-----[redacted]\n",
        );
        check("cargo test --workspace", "cargo test --workspace");
        check("the token stream of a parser", "the token stream of a parser");
    }
}
