//! Arbitrary text, arbitrary edits, every validator: no panic, and what the plan says about itself is true.
#![no_main]

use std::path::Path;

use arbitrary::Arbitrary;
use fuzzy_edit::{Edit, Options, Validate, plan, validate};
use libfuzzer_sys::fuzz_target;

const PATHS: [&str; 7] = ["f.txt", "f.py", "f.json", "f.jsonc", "f.jsonl", "f.toml", "f.yaml"];

#[derive(Debug, Arbitrary)]
struct Input {
    original: Vec<u8>,
    path: u8,
    edits: Vec<Fields>,
    similarity: Option<u8>,
    validate: bool,
}

#[derive(Debug, Arbitrary)]
struct Fields {
    search: String,
    replace: String,
    replace_all: bool,
    expected_count: Option<u8>,
    at_line: Option<u8>,
}

fuzz_target!(|input: Input| {
    let path = Path::new(PATHS[usize::from(input.path) % PATHS.len()]);
    let edits: Vec<Edit> = input
        .edits
        .into_iter()
        .take(4)
        .map(|fields| {
            let mut edit = Edit::new(fields.search, fields.replace);
            edit.replace_all = fields.replace_all;
            edit.expected_count = fields.expected_count.map(usize::from);
            edit.at_line = fields.at_line.map(usize::from);
            edit
        })
        .collect();
    let options = Options::default()
        .min_similarity(input.similarity.map(|share| f32::from(share) / 255.0))
        .validate(if input.validate { Validate::Auto } else { Validate::Off });
    let _verdict = validate(path, &input.original);
    let Ok(planned) = plan(&input.original, path, &edits, &options) else { return };
    assert_eq!(planned.changed, planned.text != input.original);
    assert_eq!(planned.applied.len(), edits.len());
    let mut rebuilt = Vec::new();
    let mut at = 0;
    for splice in &planned.splices {
        rebuilt.extend_from_slice(&input.original[at..splice.range.start]);
        rebuilt.extend_from_slice(splice.text.as_bytes());
        at = splice.range.end;
    }
    rebuilt.extend_from_slice(&input.original[at..]);
    assert!(rebuilt == planned.text, "the splices are not the change");
});
