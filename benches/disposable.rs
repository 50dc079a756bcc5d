//! A disposable sandbox from its opening to its end, native against a container of an engine: `initialize_sandbox`,
//! `execute_code` with one line of shell, `stop_sandbox`, through the server over stdio.
//!
//! Prints the medians and their ratio, the figure to read; a native one should cost at most a twentieth. Samples of the
//! two alternate, so that a busy machine slows both. `.ci/engine` names an engine and an image in two variables; without
//! them the native one is measured alone. Run it with `cargo bench -p benches --bench disposable`, after
//! `cargo build --release`.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench makes the folder it works in, and prints"
)]

use std::path::PathBuf;
use std::time::Duration;

use benches::figures::median;
use benches::session::{Server, Session, built};
use serde_json::{Value, json};

/// Sandboxes of each kind.
const SAMPLES: usize = 15;
/// The most that a native one may cost of a container.
const TARGET: f64 = 1.0 / 20.0;
/// How an answer names the sandbox that it opened.
const ID: &str = "\"sandbox_id\":\"";

/// One sandbox, opened, used and stopped; the time for that.
fn dispose(session: &mut Session<'_>, opening: &Value) -> Duration {
    let opened = session.call("initialize_sandbox", opening);
    let (_, rest) = session.answer().split_once(ID).expect("an id");
    let id = rest.split('"').next().expect("an id").to_owned();
    let code = json!({"language": "sh", "code": "echo $((6 * 7))", "sandbox_id": id});
    let ran = session.call("execute_code", &code);
    let answer = session.answer();
    assert!(answer.contains("[Exit code: 0]\\n42\\n"), "{answer}");
    opened + ran + session.call("stop_sandbox", &json!({"sandbox_id": id}))
}

/// An engine's address, and an image with a shell.
fn engine() -> Option<(String, String)> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some((variable("AGENT_WORKSPACE_TEST_ENGINE")?, variable("AGENT_WORKSPACE_TEST_IMAGE")?))
}

fn main() {
    let base = tempfile::tempdir().expect("a folder");
    let (root, state): (PathBuf, PathBuf) = (base.path().join("ws"), base.path().join("state"));
    std::fs::create_dir(&root).expect("a workspace");
    let engine = engine();
    let words = ["serve", "--log-level", "error", "--workspace"].map(PathBuf::from);
    let address = engine.iter().map(|(address, _)| ("DOCKER_HOST", address.clone()));
    let server = Server {
        name: "agent-workspace-mcp",
        program: built(),
        arguments: words.into_iter().chain([root.clone()]).collect(),
        variables: address.collect(),
        calls: |_, _| None,
    };
    let (mut session, _) = Session::start(&server, &root, &state);
    let opening = engine.as_ref().map(|(_, image)| json!({ "image": image }));
    if opening.is_none() {
        println!("SKIPPED the comparison: AGENT_WORKSPACE_TEST_ENGINE and _IMAGE are not set");
    }
    let nothing = json!({});
    // The first of each finds things cold.
    dispose(&mut session, &nothing);
    if let Some(opening) = &opening {
        dispose(&mut session, opening);
    }
    let (mut native, mut contained) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        native.push(dispose(&mut session, &nothing));
        contained.extend(opening.iter().map(|opening| dispose(&mut session, opening)));
    }
    // Its end removes what it still has; it is waited for.
    session.leave();
    let native = median(native).expect("samples");
    if let Some(contained) = median(contained) {
        let ratio = native.as_secs_f64() / contained.as_secs_f64();
        let held = if ratio <= TARGET { "held" } else { "MISSED" };
        println!(
            "disposable sandbox   native {native:>10.2?}  engine {contained:>10.2?}  ratio {ratio:.4} (at most {TARGET}: {held})"
        );
    } else {
        println!("disposable sandbox   native {native:>10.2?}");
    }
}
