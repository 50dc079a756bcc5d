//! `client-config`: each client's configuration names this binary and this workspace.

use crate::command_line::run;
use crate::harness::BINARY;

#[test]
fn every_client_has_a_configuration() {
    let fixture = testkit::Fixture::new("//- a\n");
    let clients = ["claude", "claude-code", "cursor", "vscode", "codex", "gemini", "openai-agents"];
    for client in clients {
        let done = run(&fixture, &["client-config", client], "");
        assert_eq!(done.code, 0, "{client}: {done:?}");
        assert!(done.stdout.contains(BINARY), "{client}: {done:?}");
        assert!(done.stdout.contains(fixture.root().to_str().unwrap()), "{client}: {done:?}");
    }
    assert_ne!(run(&fixture, &["client-config", "emacs"], "").code, 0);
}
