//! What `docs/deploy` holds is what Kubernetes, Compose and systemd take: looked at with their own schemas and tools.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::{Missing, require};

use crate::harness::variable;

const MANIFESTS: [&str; 4] = [
    "compose.yaml",
    "kubernetes/agent-sandbox.yaml",
    "kubernetes/deployment.yaml",
    "kubernetes/namespace.yaml",
];
const UNIT: &str = "agent-workspace-mcp.service";

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/deploy")
}

/// A Python with the validators, and the schema of Compose.
fn validators() -> Result<(String, String), Missing> {
    Ok((variable("AGENT_WORKSPACE_TEST_PYTHON")?, variable("AGENT_WORKSPACE_TEST_COMPOSE_SCHEMA")?))
}

fn validate((python, schema): &(String, String), files: &[PathBuf]) -> Output {
    let script = place().join("validate.py");
    Command::new(python).arg(script).arg(schema).args(files).output().unwrap()
}

#[test]
fn every_manifest_is_what_its_schema_says() {
    let name = "every_manifest_is_what_its_schema_says";
    let Some(validators) = require(name, validators()) else { return };
    let done = validate(&validators, &MANIFESTS.map(|file| place().join(file)));
    insta::assert_snapshot!(String::from_utf8_lossy(&done.stdout), @r"
    compose.yaml: Compose
    agent-sandbox.yaml: SandboxTemplate agent-workspace
    agent-sandbox.yaml: SandboxWarmPool agent-workspace
    agent-sandbox.yaml: SandboxClaim session-example
    deployment.yaml: PersistentVolumeClaim agent-workspace
    deployment.yaml: Deployment agent-workspace
    deployment.yaml: Service agent-workspace
    namespace.yaml: Namespace agent-workspaces
    namespace.yaml: RuntimeClass gvisor
    namespace.yaml: NetworkPolicy default-deny
    namespace.yaml: NetworkPolicy from-gateway
    ");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_wrong_field_or_value_of_a_manifest_is_seen() {
    let name = "a_wrong_field_or_value_of_a_manifest_is_seen";
    let Some(validators) = require(name, validators()) else { return };
    let scratch = tempfile::TempDir::new().unwrap();
    let mut missed = Vec::new();
    for (file, right, wrong) in [
        ("compose.yaml", "read_only:", "readonly:"),
        ("compose.yaml", "cap_drop: [\"ALL\"]", "cap_drop: 1"),
        ("kubernetes/agent-sandbox.yaml", "warmPoolRef:", "sandboxTemplateRef:"),
        ("kubernetes/agent-sandbox.yaml", "replicas: 3", "replicas: three"),
        ("kubernetes/agent-sandbox.yaml", "OnReplenish", "Always"),
        ("kubernetes/agent-sandbox.yaml", "readOnlyRootFilesystem:", "readOnlyRoot:"),
        ("kubernetes/agent-sandbox.yaml", "accessModes:", "modes:"),
        ("kubernetes/agent-sandbox.yaml", "networkPolicyManagement:", "networkManagement:"),
        ("kubernetes/deployment.yaml", "runtimeClassName:", "runtimeClass:"),
        ("kubernetes/deployment.yaml", "periodSeconds: 60", "periodSeconds: often"),
        ("kubernetes/namespace.yaml", "policyTypes:", "types:"),
        ("kubernetes/namespace.yaml", "handler:", "handlers:"),
    ] {
        let text = std::fs::read_to_string(place().join(file)).unwrap();
        assert!(text.contains(right), "{file} has no {right}");
        let changed = scratch.path().join("changed.yaml");
        std::fs::write(&changed, text.replace(right, wrong)).unwrap();
        let done = validate(&validators, &[changed]);
        if done.status.success() || !String::from_utf8_lossy(&done.stdout).contains("WRONG") {
            missed.push(format!("{file}: {wrong}: {done:?}"));
        }
    }
    assert!(missed.is_empty(), "not seen: {missed:#?}");
}

#[test]
fn systemd_takes_the_unit() {
    let name = "systemd_takes_the_unit";
    if require(name, testkit::program("systemd-analyze")).is_none() {
        return;
    }
    let unit = std::fs::read_to_string(place().join(UNIT)).unwrap();
    let scratch = tempfile::TempDir::new().unwrap();
    let verify = |text: &str| {
        // The program need not be installed on a machine that tests.
        let text = text.replace("/usr/local/bin/agent-workspace-mcp", crate::harness::BINARY);
        let place = scratch.path().join(UNIT);
        std::fs::write(&place, text).unwrap();
        let done = Command::new("systemd-analyze").arg("verify").arg(&place).output().unwrap();
        String::from_utf8(done.stderr).unwrap()
    };
    // Units of the machine's own may have faults as well.
    let said = verify(&unit);
    assert!(!said.contains("agent-workspace-mcp"), "{said}");
    let said = verify(&unit.replace("ProtectHome=", "ProtectHouse="));
    assert!(said.contains("ProtectHouse"), "a wrong line is not seen: {said}");
}
