//! Arbitrary JSON as the arguments of every tool's table: a typed value or a refusal that says something.
#![no_main]

use agent_workspace_mcp::arguments::decode;
use agent_workspace_mcp::tools::ROWS;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Value::Object(given)) = serde_json::from_slice(bytes) else { return };
    for row in ROWS {
        match decode::<Map<String, Value>>(row.arguments, given.clone()) {
            Ok(straight) => {
                for name in straight.keys() {
                    assert!(row.arguments.iter().any(|argument| argument.name == name));
                }
                // What was straightened once stays as it is.
                let again = decode::<Map<String, Value>>(row.arguments, straight.clone());
                assert_eq!(again.ok(), Some(straight));
            }
            Err(failure) => assert!(!failure.to_string().is_empty()),
        }
    }
});
