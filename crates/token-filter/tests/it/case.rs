//! The corpus: real outputs, each with the facts that a compacted form must still state.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// One output and its sidecar.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// `family/name`.
    pub(crate) id: String,
    pub(crate) raw: Vec<u8>,
    pub(crate) facts: Facts,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Facts {
    pub(crate) argv: String,
    pub(crate) exit_code: i32,
    #[serde(default)]
    pub(crate) must_keep: Vec<String>,
    #[serde(default)]
    pub(crate) must_keep_any: Vec<Vec<String>>,
}

impl Case {
    /// The facts that `text` does not state.
    pub(crate) fn lost(&self, text: &str) -> Vec<String> {
        let all = self.facts.must_keep.iter().filter(|fact| !text.contains(*fact)).cloned();
        let any = self
            .facts
            .must_keep_any
            .iter()
            .filter(|group| !group.is_empty() && !group.iter().any(|fact| text.contains(fact)));
        all.chain(any.map(|group| format!("one of {group:?}"))).collect()
    }
}

/// Reads the whole corpus, in order of id.
pub(crate) fn corpus() -> Vec<Case> {
    read_all("tests/corpus", 114)
}

/// Reads the second corpus, in order of id: its facts were written before any of its outputs had been compacted.
pub(crate) fn blind_corpus() -> Vec<Case> {
    read_all("tests/corpus_blind", 78)
}

/// Both.
pub(crate) fn all_cases() -> Vec<Case> {
    [corpus(), blind_corpus()].concat()
}

fn read_all(folder: &str, count: usize) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut cases: Vec<Case> = entries(&root)
        .into_iter()
        .filter(|path| path.is_dir())
        .flat_map(|family| entries(&family))
        .filter(|path| path.extension().is_some_and(|ending| ending == "raw"))
        .map(|path| read(&root, &path))
        .collect();
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(cases.len(), count, "{folder} is whole");
    cases
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect()
}

fn read(root: &Path, path: &Path) -> Case {
    let name = path.strip_prefix(root).unwrap().with_extension("");
    let sidecar = std::fs::read(path.with_extension("json")).unwrap();
    Case {
        id: name.to_string_lossy().into_owned(),
        raw: std::fs::read(path).unwrap(),
        facts: serde_json::from_slice(&sidecar)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    }
}

/// The real count.
pub(crate) fn real_tokens(text: &str) -> u64 {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len() as u64
}
