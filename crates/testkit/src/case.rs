//! Case files: one JSON object a line, read as data so that one harness runs them all.

use std::path::Path;

use serde::de::DeserializeOwned;

/// One line of a case file, with the place it came from for failure messages.
#[derive(Debug, Clone)]
pub struct Case<T> {
    /// `file.jsonl:line`, 1-based.
    pub place: String,
    /// The parsed line.
    pub body: T,
}

/// Reads every `*.jsonl` below `dir` (one level), in file name and line order.
///
/// # Panics
///
/// If a file cannot be read, a line does not parse as `T`, or there is no case at all: a harness that
/// runs nothing must not pass.
pub fn cases<T: DeserializeOwned>(dir: &Path) -> Vec<Case<T>> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap_or_else(|error| panic!("case directory {}: {error}", dir.display()))
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", dir.display())).path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("case file {}: {error}", file.display()));
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let place = format!("{name}:{}", index + 1);
            let body =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{place}: {error}"));
            found.push(Case { place, body });
        }
    }
    assert!(!found.is_empty(), "no case below {}", dir.display());
    found
}
