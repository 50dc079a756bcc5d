//! What is parsed before it is written: rows V1–V11 of the behaviour table.

use serde_json::json;

use crate::harness::Session;

fn check(file: &str, content: &str, refusal: Option<&str>) {
    let session = Session::new("//- a\n");
    let arguments = json!({"filepath": file, "content": content});
    match refusal {
        None => assert_eq!(
            session.ok("write_file", arguments),
            format!("Successfully wrote {} bytes to {file}", content.len())
        ),
        Some(words) => {
            let text = session.refused("write_file", arguments, "syntax_invalid");
            assert!(text.contains(words), "{text}");
        }
    }
}

#[test]
fn v1_v2_python() {
    check("f.py", "def f():\n    return 1\n", None);
    check("f.py", "def f(\n", Some("Python syntax error"));
}

#[test]
fn v3_v4_json() {
    check("f.json", "{\"a\": [1, 2]}\n", None);
    check("f.json", "{\"a\": 1", Some("JSON parse error"));
}

#[test]
fn v5_v6_jsonl() {
    check("f.jsonl", "{\"a\": 1}\n\n{\"b\": 2}\n", None);
    check("f.jsonl", "{\"a\": 1}\n{\"b\": \n", Some("JSONL parse error at line 2"));
}

#[test]
fn v7_v8_toml() {
    check("f.toml", "a = \"b\"\n", None);
    check("f.toml", "a = \"b\n", Some("TOML parse error"));
}

#[test]
fn v9_v10_yaml() {
    check("f.yaml", "a:\n  b: 1\n", None);
    check("f.yml", "a:\n\tb: 1\n", Some("YAML parse error"));
}

#[test]
fn v11_other_extensions_are_not_checked() {
    check("f.txt", "def (((", None);
}
