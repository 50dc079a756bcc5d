//! The image, started by exactly the line that the README tells: what is in it, what cannot be done in it, how it ends.
//!
//! `.ci/image` builds it from the binary under test. That every jail case holds in it is seen in `cases::jail`.

mod deploy;
mod started;

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Fixture, require};

use crate::harness::variable;
use started::{Container, hand_over};
pub(crate) use started::{Image, USER};

/// A server in a container, over a workspace of its own.
struct Session {
    image: Image,
    fixture: Fixture,
    container: Container,
    last_id: u64,
}

impl Session {
    fn start(test: &str, files: &str, options: &[String]) -> Option<Self> {
        let image = require(test, Image::built())?;
        let fixture = Fixture::new(files);
        hand_over(&fixture);
        let mut container = image.serve(&fixture, options, &[]);
        container.binary.hello("2025-11-25");
        Some(Self { image, fixture, container, last_id: 0 })
    }

    /// The answer of a command: its text, which holds the exit code.
    fn run(&mut self, command: &str) -> String {
        self.last_id += 1;
        let arguments = json!({"command": command, "timeout": 120});
        let answer = self.container.binary.call(self.last_id, "run_bash", arguments);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    fn check(&mut self, command: &str, expected: &str) {
        let text = self.run(command);
        let output = text.strip_prefix("[Exit code: 0]\n").unwrap_or_else(|| panic!("{text}"));
        // What a new repository is told with.
        let output = output.split("\n[").next().unwrap_or_default();
        assert_eq!(output.trim_end(), expected, "{command}");
    }

    fn tools(&mut self) -> usize {
        self.last_id += 1;
        let answer = self.container.binary.request(self.last_id, "tools/list", json!({}));
        answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).len()
    }
}

#[test]
fn c1_no_file_lends_the_rights_of_its_owner_or_group() {
    let name = "c1_no_file_lends_the_rights_of_its_owner_or_group";
    let Some(image) = require(name, Image::built()) else { return };
    let find = "find / -xdev -perm /6000 ! -type l; find /usr -maxdepth 0";
    assert_eq!(image.unprotected_shell(0, find), "/usr\n");
}

#[test]
fn c2_c3_the_server_cannot_be_tampered_with_and_goes_on() {
    let name = "c2_c3_the_server_cannot_be_tampered_with_and_goes_on";
    let Some(mut session) = Session::start(name, "//- a.txt\nx\n", &[]) else { return };
    let offered = session.tools();
    assert!(offered > 6);
    let place = "/usr/local/bin";
    let attempts = [
        format!("touch {place}/planted"),
        format!("echo x >> {place}/agent-workspace-mcp"),
        format!("sed -i s/a/b/ {place}/uv"),
        format!("rm -rf {place}/agent-workspace-mcp {place}/uv"),
        format!("chmod u+w {place}/agent-workspace-mcp"),
        format!("mv {place}/agent-workspace-mcp /workspace/"),
    ];
    for attempt in attempts {
        let text = session.run(&attempt);
        let refused = ["Read-only file system", "Permission denied", "Operation not permitted"];
        let said = refused.iter().any(|why| text.contains(why));
        assert!(said && !text.starts_with("[Exit code: 0]"), "{attempt}: {text}");
        // The same without a sandbox and on a root that can be written to: modes and owners alone have to do.
        let after = format!("{{ {attempt}; }} >&/dev/null && echo DONE; true");
        assert_eq!(session.image.unprotected_shell(USER, &after), "", "{attempt}");
    }
    session.check(&format!("ls {place}"), "agent-workspace-mcp\nfd\nuv\nuvx");
    assert_eq!(session.tools(), offered);
}

#[test]
fn c4_there_are_no_process_tools() {
    let name = "c4_there_are_no_process_tools";
    let Some(mut session) = Session::start(name, "//- a.txt\nx\n", &[]) else { return };
    session.check("for tool in pgrep pkill killall top; do which $tool; done; echo none", "none");
}

#[test]
fn the_root_is_read_only_and_the_user_an_ordinary_one() {
    let name = "the_root_is_read_only_and_the_user_an_ordinary_one";
    let Some(mut session) = Session::start(name, "//- a.txt\nx\n", &[]) else { return };
    session.check("id -u; cat a.txt; echo made > b.txt; cat b.txt", "1000\nx\nmade");
    assert_eq!(session.fixture.read("b.txt"), "made\n");
    let container = &session.container.name;
    let script = "for place in / /etc /usr /home/mcpuser; do touch $place/x && echo WROTE; done 2>&1; \
                  grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/1/status; cat /sys/fs/cgroup/pids/pids.max \
                  /sys/fs/cgroup/pids.max 2>/dev/null";
    let done = session.image.podman(&["exec", container, "bash", "-c", script]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(said.matches("Read-only file system").count(), 4, "{said}");
    for wanted in
        ["CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "\n256\n"]
    {
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn the_tools_of_the_image_are_there() {
    let name = "the_tools_of_the_image_are_there";
    let Some(mut session) = Session::start(name, "//- a.txt\nx\n", &[]) else { return };
    let missing = "for tool in bash curl fd git jq patch python3 rg tree unzip uv uvx zip; do \
                   $tool --version >/dev/null 2>&1 || $tool -v >/dev/null 2>&1 || echo $tool; done; echo all";
    session.check(missing, "all");
}

#[test]
fn p13_a_line_of_the_protocol_comes_within_ten_seconds() {
    let name = "p13_a_line_of_the_protocol_comes_within_ten_seconds";
    let Some(image) = require(name, Image::built()) else { return };
    let fixture = Fixture::new("//- a.txt\nx\n");
    hand_over(&fixture);
    let started = Instant::now();
    let mut container = image.serve(&fixture, &[], &[]);
    let answer = container.binary.hello("2024-11-05");
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05", "{answer}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn b7_a_script_with_metadata_runs() {
    let name = "b7_a_script_with_metadata_runs";
    let script = "//- hello.py\n# /// script\n# requires-python = \">=3.9\"\n# dependencies = []\n# ///\n\
                  import json\nprint(json.dumps({\"hello\": 1}))\n";
    let Some(mut session) = Session::start(name, script, &[]) else { return };
    session.check("uv run -q hello.py", "{\"hello\": 1}");
}

#[test]
fn b8_a_script_fetches_its_dependency() {
    let name = "b8_a_script_fetches_its_dependency";
    let Some(index) = require(name, variable("AGENT_WORKSPACE_TEST_INDEX")) else { return };
    let script = "//- get.py\n# /// script\n# dependencies = [\"requests\"]\n# ///\n\
                  import requests\nprint(requests.__name__)\n";
    // The machine's certificates: those of the index may be the machine's own.
    let bundle = "/etc/ssl/certs/ca-certificates.crt";
    let options =
        [format!("--volume={bundle}:{bundle}:ro"), format!("--env=SSL_CERT_FILE={bundle}")];
    let Some(mut session) = Session::start(name, script, &options) else { return };
    session.check(&format!("uv run -q --default-index {index} get.py"), "requests");
}

#[test]
fn b9_a_project_is_made_and_run() {
    let name = "b9_a_project_is_made_and_run";
    let Some(mut session) = Session::start(name, "//- a.txt\nx\n", &[]) else { return };
    let project = "uv init -q --bare demo && cd demo && echo 'print(\"made\")' > main.py && uv run -q main.py";
    session.check(project, "made");
}

#[test]
fn b10_a_pipeline_writes_a_report() {
    let name = "b10_a_pipeline_writes_a_report";
    let data = "//- served/people.json\n[{\"at\": \"b\"}, {\"at\": \"a\"}, {\"at\": \"b\"}]\n";
    let Some(mut session) = Session::start(name, data, &[]) else { return };
    // The network of a command begins with its own loopback, so the server stands beside the pipeline.
    let pipeline = "python3 -m http.server -d served -b 127.0.0.1 8123 >log 2>&1 & \
                    curl -fs --retry 50 --retry-connrefused --retry-delay 0 http://127.0.0.1:8123/people.json \
                    | jq -r '.[].at' | sort | uniq -c | sort -rn > report.txt; kill $!; cat report.txt";
    session.check(pipeline, "      2 b\n      1 a");
    assert_eq!(session.fixture.read("report.txt"), "      2 b\n      1 a\n");
}

#[test]
fn it_is_healthy_and_ends_when_told_to() {
    let name = "it_is_healthy_and_ends_when_told_to";
    let Some(mut session) = Session::start(name, "//- a.txt\nx\n", &[]) else { return };
    let container = session.container.name.clone();
    let health = session.image.podman(&["healthcheck", "run", &container]);
    assert!(health.status.success(), "{health:?}");
    let state =
        session.image.podman(&["inspect", "--format", "{{.State.Health.Status}}", &container]);
    assert_eq!(String::from_utf8_lossy(&state.stdout), "healthy\n");

    let told = session.image.podman(&["kill", "--signal=TERM", &container]);
    assert!(told.status.success(), "{told:?}");
    let (success, took) = session.container.binary.ended();
    assert!(success && took < Duration::from_secs(10), "{success} {took:?}");
}

#[test]
fn it_says_what_it_is() {
    let Some(image) = require("it_says_what_it_is", Image::built()) else { return };
    let said = image.inspect();
    let config = &said["Config"];
    let labels = &config["Labels"];
    for (label, value) in [
        ("org.opencontainers.image.title", "agent-workspace-mcp"),
        ("org.opencontainers.image.description", env!("CARGO_PKG_DESCRIPTION")),
        ("org.opencontainers.image.licenses", "MIT OR Apache-2.0"),
        ("org.opencontainers.image.version", env!("CARGO_PKG_VERSION")),
        ("io.modelcontextprotocol.server.name", "agent-workspace-mcp"),
    ] {
        assert_eq!(labels[label], value, "{label}: {labels}");
    }
    assert!(labels["org.opencontainers.image.revision"].is_string(), "{labels}");
    assert_eq!(config["User"], format!("{USER}:{USER}"));
    assert_eq!(config["Entrypoint"], json!(["agent-workspace-mcp"]));
    assert_eq!(config["StopSignal"], "SIGTERM", "{config}");
    let check = json!(["CMD", "agent-workspace-mcp", "doctor", "--json"]);
    assert_eq!(said["Healthcheck"]["Test"], check, "{config}");
}
