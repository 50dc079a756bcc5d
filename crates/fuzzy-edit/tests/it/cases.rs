//! The edit cases: each is a file, edits and the outcome that is right.

use std::path::Path;

use fuzzy_edit::{Edit, EditError, Options, Plan, Validate, plan};
use serde::Deserialize;
use serde_json::Value;

/// Cases that do not pass yet, with the reason; each must really fail, so that the list can only shrink.
const NOT_YET: &[(&str, &str)] = &[];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct EditCase {
    id: String,
    title: String,
    #[serde(rename = "source")]
    _source: String,
    #[serde(rename = "why")]
    _why: String,
    file: Option<String>,
    file_b64: Option<String>,
    path: String,
    edits: Vec<GivenEdit>,
    options: GivenOptions,
    expect: Expect,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenEdit {
    search: Option<String>,
    replace: Option<String>,
    #[serde(default)]
    replace_all: bool,
    expected_count: Option<usize>,
    at_line: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenOptions {
    #[serde(default, rename = "dry_run")]
    _dry_run: bool,
    validate: Option<String>,
    min_similarity: Option<f32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    ok: bool,
    after: Option<String>,
    #[serde(rename = "written")]
    _written: Option<bool>,
    levels: Option<Vec<String>>,
    count: Option<usize>,
    stats: Option<Value>,
    changed: Option<bool>,
    warnings: Option<Vec<String>>,
    error_kind: Option<String>,
    edit_index: Option<usize>,
    lines: Option<Vec<usize>>,
    line: Option<usize>,
    #[serde(default, deserialize_with = "given")]
    closest_line: Option<Option<usize>>,
    first_diff_line: Option<usize>,
    hint: Option<String>,
    overlaps_edit: Option<usize>,
}

/// Tells `null` from a field that is not there.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<usize>>, D::Error> {
    Option::<usize>::deserialize(from).map(Some)
}

/// The feature a case needs beyond the crate itself, if it is left out of this build.
fn missing_feature(case: &EditCase) -> Option<&'static str> {
    let ending = Path::new(&case.path).extension()?.to_str()?.to_lowercase();
    let (feature, built) = match ending.as_str() {
        "py" | "pyi" => ("python", cfg!(feature = "python")),
        "json" | "jsonc" | "jsonl" | "ndjson" | "ipynb" => ("json", cfg!(feature = "json")),
        "toml" => ("toml", cfg!(feature = "toml")),
        "yaml" | "yml" => ("yaml", cfg!(feature = "yaml")),
        _ => return None,
    };
    let verdict = case.expect.error_kind.as_deref() == Some("syntax_invalid")
        || case.expect.warnings.is_some();
    (verdict && !built).then_some(feature)
}

fn bytes(case: &EditCase) -> Vec<u8> {
    match (&case.file, &case.file_b64) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(encoded)) => base64(encoded),
        other => panic!("{}: file and file_b64: {other:?}", case.id),
    }
}

fn base64(encoded: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut bits, mut held) = (Vec::new(), 0_u32, 0);
    for byte in encoded.bytes().filter(|&byte| byte != b'=') {
        let value = ALPHABET.iter().position(|&letter| letter == byte).unwrap();
        bits = (bits << 6) | u32::try_from(value).unwrap();
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from((bits >> held) & 0xff).unwrap());
        }
    }
    out
}

fn run(case: &EditCase, file: &[u8]) -> Result<Plan, EditError> {
    let mut edits = Vec::new();
    for (index, edit) in case.edits.iter().enumerate() {
        let (Some(search), Some(replace)) = (&edit.search, &edit.replace) else {
            return Err(EditError::invalid_edit(Some(index), "search and replace are required"));
        };
        let mut made = Edit::new(search, replace);
        made.replace_all = edit.replace_all;
        made.expected_count = edit.expected_count;
        made.at_line = edit.at_line;
        edits.push(made);
    }
    let mut options = Options::default().min_similarity(case.options.min_similarity);
    if let Some(validate) = &case.options.validate {
        assert_eq!(validate, "off", "{}", case.id);
        options = options.validate(Validate::Off);
    }
    plan(file, Path::new(&case.path), &edits, &options)
}

/// What differs from the expectation, one line a fact.
fn differences(case: &EditCase) -> Vec<String> {
    let file = bytes(case);
    let expect = &case.expect;
    let mut wrong = Vec::new();
    let mut check = |what: &str, expected: Option<Value>, got: Value| {
        if let Some(expected) = expected
            && expected != got
        {
            wrong.push(format!("{what}: expected {expected}, got {got}"));
        }
    };
    let value = |given: Option<Value>| given.unwrap_or(Value::Null);
    match run(case, &file) {
        Ok(plan) => {
            check("ok", Some(expect.ok.into()), true.into());
            let got = String::from_utf8_lossy(&plan.text).into_owned();
            check("after", expect.after.clone().map(Value::from), got.into());
            let levels: Vec<&str> = plan.applied.iter().map(|done| done.level.name()).collect();
            check("levels", expect.levels.clone().map(Value::from), levels.into());
            check("count", expect.count.map(Value::from), plan.stats.replacements.into());
            check("changed", expect.changed.map(Value::from), plan.changed.into());
            let stats = serde_json::json!({"exact": plan.stats.exact, "fuzzy": plan.stats.fuzzy});
            check("stats", expect.stats.clone(), stats);
            let names: Vec<&str> = plan.warnings.iter().map(fuzzy_edit::Warning::name).collect();
            for warning in expect.warnings.iter().flatten() {
                let there = names.contains(&warning.as_str());
                check(&format!("warning {warning} in {names:?}"), Some(true.into()), there.into());
            }
            check("changed against bytes", Some((plan.text != file).into()), plan.changed.into());
        }
        Err(error) => {
            check(&format!("ok ({error})"), Some(expect.ok.into()), false.into());
            check(
                "error_kind",
                expect.error_kind.clone().map(Value::from),
                error.kind.name().into(),
            );
            let detail = &error.detail;
            let index = value(error.edit_index.map(Value::from));
            check("edit_index", expect.edit_index.map(Value::from), index);
            check("count", expect.count.map(Value::from), detail.count.into());
            let lines: Vec<usize> = detail.candidates.iter().map(|span| span.first).collect();
            check("lines", expect.lines.clone().map(Value::from), lines.into());
            let line = value(detail.syntax.as_ref().map(|issue| issue.line.into()));
            check("line", expect.line.map(Value::from), line);
            let closest = detail.closest.as_ref();
            let first = value(closest.map(|closest| closest.lines.first.into()));
            check(
                "closest_line",
                expect.closest_line.map(|line| value(line.map(Value::from))),
                first,
            );
            let diff = closest.and_then(|closest| closest.first_diff.as_ref());
            let diff = value(diff.map(|diff| diff.line.into()));
            check("first_diff_line", expect.first_diff_line.map(Value::from), diff);
            let hints: Vec<&str> = detail.hints.iter().map(|hint| hint.name()).collect();
            if let Some(hint) = &expect.hint {
                let first = hints.first().copied().unwrap_or_default();
                check("hint", Some(hint.clone().into()), first.into());
            }
            let overlaps = value(detail.overlaps_edit.map(Value::from));
            check("overlaps_edit", expect.overlaps_edit.map(Value::from), overlaps);
        }
    }
    wrong
}

#[test]
fn every_case_ends_as_it_should() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let cases = testkit::cases::<EditCase>(&dir);
    assert_eq!(cases.len(), 261);
    let mut report = String::new();
    for case in &cases {
        let case = &case.body;
        if let Some(feature) = missing_feature(case) {
            println!("left out {}: needs the feature {feature}", case.id);
            continue;
        }
        let wrong = differences(case);
        let known = NOT_YET.iter().find(|(id, _)| *id == case.id);
        match (wrong.is_empty(), known) {
            (true, Some((id, _))) => report = format!("{report}{id} passes: take it off NOT_YET\n"),
            (false, None) => {
                let wrong = wrong.join("\n  ");
                report = format!("{report}{} {}\n  {wrong}\n", case.id, case.title);
            }
            _ => {}
        }
    }
    for (id, _) in NOT_YET {
        assert!(cases.iter().any(|case| case.body.id == *id), "{id} in NOT_YET is no case");
    }
    assert!(report.is_empty(), "\n{report}");
}
