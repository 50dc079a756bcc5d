//! Every edit case of `fuzzy-edit`, as a client would send it: the file, the answer and its facts must agree.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::Session;

#[derive(Debug, Deserialize)]
struct Case {
    id: String,
    file: Option<String>,
    file_b64: Option<String>,
    path: String,
    edits: Vec<Value>,
    #[serde(default)]
    options: Value,
    expect: Value,
}

/// What the case expects beside the text, as facts of the same name.
const FACTS: [&str; 9] = [
    "levels",
    "count",
    "changed",
    "edit_index",
    "lines",
    "line",
    "closest_line",
    "first_diff_line",
    "hint",
];

#[test]
fn every_edit_case_holds_through_the_tool() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/fuzzy-edit/tests/cases");
    let session = Session::with("//- a\n", |config| config.protect = workspace_jail::Protect::Off);
    let mut ran = 0;
    let mut failed = Vec::new();
    for case in testkit::cases::<Case>(&cases) {
        ran += 1;
        if let Err(why) = check(&session, &case.body) {
            failed.push(format!("{} ({}): {why}", case.body.id, case.place));
        }
    }
    assert!(failed.is_empty(), "{} of {ran} failed:\n{}", failed.len(), failed.join("\n"));
}

fn check(session: &Session, case: &Case) -> Result<(), String> {
    let before = match (&case.file, &case.file_b64) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(coded)) => decode(coded),
        (None, None) => return Err("the case has no file".into()),
    };
    session.fixture.write(&case.path, &before);
    let mut arguments = json!({"filepath": case.path, "edits": case.edits});
    for name in ["dry_run", "validate", "min_similarity"] {
        if let Some(value) = case.options.get(name) {
            arguments[name] = value.clone();
        }
    }
    let answer = session.call("search_and_replace", arguments);
    let after = session.fixture.bytes(&case.path);
    let same = |what: &str, got: &Value, want: &Value| {
        if got == want {
            Ok(())
        } else {
            Err(format!("{what}: got {got}, want {want}; {}", answer.text))
        }
    };
    let expect = &case.expect;
    same("ok", &json!(!answer.is_error), &expect["ok"])?;
    let written = expect["ok"] == true && case.options.get("dry_run") != Some(&json!(true));
    let wanted = match expect["after"].as_str() {
        Some(text) if written => text.as_bytes().to_vec(),
        _ => before,
    };
    if after != wanted {
        return Err(format!(
            "file: got {:?}, want {:?}",
            String::from_utf8_lossy(&after),
            String::from_utf8_lossy(&wanted)
        ));
    }
    if let Some(kind) = expect["error_kind"].as_str() {
        let kind = if kind == "not_found" { "no_match" } else { kind };
        same("error_kind", &answer.facts["error_kind"], &json!(kind))?;
    }
    for name in FACTS {
        if let Some(want) = expect.get(name) {
            same(name, &answer.facts[name], want)?;
        }
    }
    let warnings = expect.get("warnings").and_then(Value::as_array);
    for want in warnings.into_iter().flatten() {
        let given = answer.facts["warnings"].as_array().is_some_and(|given| given.contains(want));
        if !given {
            return Err(format!("warnings: got {}, want {want}", answer.facts["warnings"]));
        }
    }
    Ok(())
}

/// Base64 as the case files have it: standard alphabet, padded.
fn decode(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(value).collect();
    let mut bytes = Vec::new();
    for group in digits.chunks(4) {
        let word = group.iter().fold(0_u32, |word, digit| (word << 6) | u32::from(*digit));
        let word = word << (6 * (4 - group.len()));
        bytes.extend(word.to_be_bytes().iter().skip(1).take(group.len() - 1));
    }
    bytes
}
