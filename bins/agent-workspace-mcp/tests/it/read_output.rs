//! `read_output`: what an answer omits can be had back, byte for byte.

use serde_json::json;

use crate::harness::Session;

const NUMBERS: &str =
    "for i in $(seq 1 9000); do echo \"row $i $((i * 7919 % 10007)) $RANDOM\"; done | tee all.txt";

#[test]
fn every_omitted_line_comes_back() {
    let session = Session::new("//- a\n");
    let answer = session.call("run_bash", json!({"command": NUMBERS}));
    let id = answer.facts["output_id"].as_str().expect("an id for what is omitted").to_owned();
    assert!(answer.text.contains(&id), "{}", answer.text);
    let mut all = String::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let page =
            session.call("read_output", json!({"output_id": id, "offset": offset, "limit": 2500}));
        let text = page.text.split("[lines ").next().unwrap().to_owned();
        all.push_str(&text);
        offset = page.facts["next_offset"].clone();
        assert_eq!(page.facts["total_lines"], 9000);
    }
    assert!(all == session.fixture.read("all.txt"));
}

#[test]
fn a_pattern_finds_lines_by_number() {
    let session = Session::new("//- a\n");
    let answer = session.call("run_bash", json!({"command": NUMBERS}));
    let id = answer.facts["output_id"].clone();
    let found = session.call("read_output", json!({"output_id": id, "pattern": "^row 4321 "}));
    assert!(found.text.starts_with("4320:row 4321 "), "{found:?}");
    let none = session.ok("read_output", json!({"output_id": id, "pattern": "absent"}));
    assert_eq!(none, "[no line matches]\n");
    session.refused("read_output", json!({"output_id": id, "pattern": "("}), "invalid_args");
}

#[test]
fn an_id_that_names_nothing_is_refused() {
    let session = Session::new("//- a\n");
    for id in ["0123456789ab", "../../audit", "x"] {
        session.refused("read_output", json!({"output_id": id}), "unknown_id");
    }
}

#[test]
fn a_short_output_is_whole_and_needs_no_id() {
    let session = Session::new("//- a\n");
    let answer = session.call("run_bash", json!({"command": "echo all of it"}));
    assert_eq!((&answer.facts["truncated"], answer.facts.get("output_id")), (&json!(false), None));
}
