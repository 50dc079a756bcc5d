//! In what the places stand that a refusal names.

use std::path::Path;

use fuzzy_edit::{Edit, EditError, ErrorKind, Limits, Options, plan};
use proptest::prelude::*;

/// A refusal for more than one place.
#[track_caller]
fn refusal(path: &str, file: &str, search: &str) -> EditError {
    let edit = Edit::new(search, "other");
    let error = plan(file.as_bytes(), Path::new(path), &[edit], &Options::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Ambiguous, "{file:?}");
    error
}

/// Checks the scope of every place; `-` is none.
#[track_caller]
fn check(path: &str, file: &str, search: &str, expected: &[&str]) {
    let error = refusal(path, file, search);
    let scopes = &error.detail.scopes;
    let told: Vec<&str> = scopes.iter().map(|scope| scope.as_deref().unwrap_or("-")).collect();
    assert_eq!(told, expected, "{path} {file:?}");
    assert_eq!(told.len(), error.detail.candidates.len());
}

#[test]
fn without_a_grammar_there_are_none() {
    check("a.txt", "class A:\n  x\n  x\n", "x", &[]);
    for (path, built) in [
        ("a.py", cfg!(feature = "python")),
        ("a.json", cfg!(feature = "json")),
        ("a.jsonc", cfg!(feature = "json")),
        ("a.jsonl", cfg!(feature = "json")),
        ("a.toml", cfg!(feature = "toml")),
        ("a.yaml", cfg!(feature = "yaml")),
    ] {
        let scopes = refusal(path, "1\n1\n", "1").detail.scopes;
        assert_eq!(scopes.len(), if built { 2 } else { 0 }, "{path}");
    }
}

#[cfg(feature = "python")]
#[test]
fn python() {
    let file = "class Greeter:\n    def greet(self):\n        return 1\n\nasync def greet():\n    return 1\nreturn 1\n";
    check("a.py", file, "return 1", &["class Greeter > def greet", "def greet", "-"]);
    check("a.py", file, "def greet", &["class Greeter > def greet", "def greet"]);
    // Blanks before the text, other line endings and a byte-order mark do not matter.
    let dos = format!("\u{feff}{}", file.replace('\n', "\r\n"));
    check("a.py", &dos, "\n        return 1", &["class Greeter > def greet"; 0].as_slice().into_iter().copied().collect::<Vec<_>>().as_slice());
}
