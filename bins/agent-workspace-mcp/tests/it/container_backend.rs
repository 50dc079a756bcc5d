//! `run_bash` in a container of an engine: the same answers as on the native rungs, and what becomes of it when engine
//! or container go.
//!
//! The server is root's in tests, as the engine's socket is; the workspace is another user's, whom commands run as.

mod way;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Fixture, Missing, require};

use self::way::{PRINT_MARK, Way};
use crate::harness::{BINARY, Binary, is_running, variable};

/// Whose the workspace is.
const OWNER: u32 = 10_001;

/// An engine's address, and an image with bash.
pub(crate) fn engine() -> Result<(String, String), Missing> {
    Ok((variable("AGENT_WORKSPACE_TEST_ENGINE")?, variable("AGENT_WORKSPACE_TEST_BASE_IMAGE")?))
}

/// A server whose commands run in containers.
struct Backend {
    fixture: Fixture,
    server: Binary,
    engine: String,
    calls: u64,
}

/// Gives a workspace to the user whom commands run as.
fn hand_over(fixture: &Fixture) {
    let owner = format!("{OWNER}:{OWNER}");
    let done = Command::new("chown").args(["-hR", &owner]).arg(fixture.root()).status().unwrap();
    assert!(done.success(), "chown");
}

fn root() -> Result<(), Missing> {
    let is = rustix::process::geteuid().is_root();
    is.then_some(()).ok_or_else(|| Missing("root, for the engine's socket".into()))
}

impl Backend {
    fn new(name: &str, files: &str) -> Option<Self> {
        Self::with(name, files, &[], &[])
    }

    /// With these arguments and variables beside the usual ones.
    fn with(
        name: &str,
        files: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        let (engine, image) = require(name, root().and_then(|()| engine()))?;
        let fixture = Fixture::new(files);
        hand_over(&fixture);
        let mut arguments = arguments.to_vec();
        arguments.extend(["--sandbox", "container", "--container-image", &image]);
        let mut all = vec![("DOCKER_HOST", engine.as_str())];
        all.extend(variables);
        let mut server = Binary::start(&fixture, &arguments, &all);
        server.hello("2025-11-25");
        Some(Self { fixture, server, engine, calls: 0 })
    }

    /// Calls `run_bash`; text and facts.
    fn run(&mut self, arguments: Value) -> (String, Value) {
        self.calls += 1;
        parts(&self.server.call(self.calls, "run_bash", arguments))
    }

    fn tool(&mut self, tool: &str, arguments: Value) -> (String, Value) {
        self.calls += 1;
        parts(&self.server.call(self.calls, tool, arguments))
    }

    /// The text of a command that must succeed.
    fn bash(&mut self, command: &str) -> String {
        let (text, facts) = self.run(json!({"command": command}));
        assert_eq!(
            (&facts["sandbox"], &facts["exit_code"]),
            (&json!("container"), &json!(0)),
            "{text}"
        );
        text
    }

    /// Ids of this server's containers.
    fn containers(&self) -> Vec<String> {
        containers_of(&self.engine, self.server.pid())
    }

    fn podman(&self, arguments: &[&str]) -> String {
        podman(&self.engine, arguments)
    }

    fn end(mut self) {
        let (engine, pid) = (self.engine.clone(), self.server.pid());
        self.server.close_input();
        assert!(self.server.ended().0);
        assert_eq!(containers_of(&engine, pid), [""; 0], "its containers go with the server");
    }
}

fn parts(answer: &Value) -> (String, Value) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), result["_meta"]["agent-workspace/result"].clone())
}

fn podman(engine: &str, arguments: &[&str]) -> String {
    let done = Command::new("podman").args(["--url", engine]).args(arguments).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

fn containers_of(engine: &str, server: u32) -> Vec<String> {
    let listed = podman(engine, &["ps", "--all", "--format", "{{.ID}} {{.Labels}}"]);
    let ours = listed.lines().filter(|line| line.contains(&format!("instance:{server}-")));
    ours.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

#[test]
fn a_command_answers_as_on_the_native_rungs() {
    let name = "a_command_answers_as_on_the_native_rungs";
    let secret = [("SERVER_SECRET_TOKEN", "SECRET-CANARY-ENV"), ("LC_ALL", "C.UTF-8")];
    let files = "//- a.txt\nhello\n//- sub/b.txt\n";
    let Some(mut backend) = Backend::with(name, files, &[], &secret) else { return };
    assert_eq!(backend.bash("echo test"), "[Exit code: 0]\ntest\n");
    assert_eq!(backend.bash("cat; echo after"), "[Exit code: 0]\nafter\n");
    let (text, facts) = backend.run(json!({"command": "cat a.txt; ls missing; exit 3"}));
    assert!(text.starts_with("[Exit code: 3]\nhello\nls: "), "{text}");
    assert_eq!(facts["exit_code"], 3);
    let (text, _) = backend.run(json!({"command": "pwd; ls", "cwd": "sub"}));
    assert_eq!(text, format!("[Exit code: 0]\n{}/sub\nb.txt\n", backend.fixture.root().display()));
    let (text, facts) = backend.run(json!({"command": "ls", "cwd": ".."}));
    assert_eq!(facts["error_kind"], "outside_workspace", "{text}");
    assert_eq!(
        backend.bash("echo $((1 + ${#BASH_VERSION} > 1)) made > new.txt; id -u"),
        "[Exit code: 0]\n10001\n"
    );
    assert_eq!(backend.fixture.read("new.txt"), "1 made\n");
    let (text, facts) = backend.run(json!({"command": "echo part; sleep 60", "timeout": 1}));
    assert!(text.starts_with("[timed out after 1s]\npart"), "{text}");
    assert_eq!(facts["error_kind"], "timeout");
    let (text, facts) = backend.run(json!({"command": "sleep 60 & echo started"}));
    assert!(text.starts_with("[Exit code: 0]\nstarted\n[1 process that was left"), "{text}");
    assert_eq!(facts["leftovers"], 1);
    let environment = backend.bash("env; tr '\\0' '\\n' < /proc/1/environ; true");
    assert!(
        environment.contains("LC_ALL=C.UTF-8\n") && environment.contains("HOME=/work\n"),
        "{environment}"
    );
    assert!(!environment.contains("SECRET-CANARY"), "{environment}");
    assert_eq!(backend.containers().len(), 1, "one container serves all of them");
    backend.end();
}

#[test]
fn long_output_is_cut_and_can_be_read() {
    let Some(mut backend) = Backend::new("long_output_is_cut_and_can_be_read", "//- a\n") else {
        return;
    };
    let command = "for i in $(seq 1 6000); do echo \"line $i of $RANDOM$RANDOM\"; done; echo last";
    let (text, facts) = backend.run(json!({"command": command}));
    assert!(text.contains("omitted") && text.contains("\nlast"), "{text}");
    let id = facts["output_id"].as_str().unwrap().to_owned();
    let (page, _) =
        backend.tool("read_output", json!({"output_id": id, "offset": 2999, "limit": 1}));
    assert!(page.starts_with("line 3000 of "), "{page}");
    backend.end();
}

#[test]
fn nothing_of_the_machine_is_in_reach() {
    let Some(mut backend) = Backend::new("nothing_of_the_machine_is_in_reach", "//- a\n") else {
        return;
    };
    let outside = backend.fixture.outside().display().to_string();
    let before = testkit::Snapshot::of(&backend.fixture.outside());
    let script = format!(
        "cat {outside}/secret.txt; echo x > {outside}/victim.txt; ln -s {outside} way && cat way/secret.txt; \
         echo x > /root-file && echo WROTE; kill -9 -1; cat /proc/*/cmdline | tr '\\0' ' ' | grep -c agent-workspace; \
         grep -c : /proc/net/dev; (exec 3<>/dev/tcp/10.0.2.2/1) && echo CONNECTED; true"
    );
    let (text, _) = backend.run(json!({"command": script}));
    for proof in [Fixture::CANARY, "WROTE", "CONNECTED"] {
        assert!(!text.contains(proof), "{text}");
    }
    assert!(testkit::Snapshot::of(&backend.fixture.outside()) == before);
    backend.bash("true");
    backend.end();
}

#[test]
fn protected_names_take_no_writes_and_new_ones_are_told() {
    let name = "protected_names_take_no_writes_and_new_ones_are_told";
    let files = "//- .git/config\n[core]\n//- .git/hooks/pre-commit\nold\n//- sub/.git/config\n[core]\n//- .vscode/x\nold\n";
    let Some(mut backend) = Backend::new(name, files) else { return };
    let script = "for f in .git/config .git/hooks/pre-commit .git/hooks/new sub/.git/config .vscode/x; do \
                  echo evil > $f && echo WROTE $f; done 2>/dev/null; mv .git/config x 2>/dev/null && echo MOVED; \
                  mv .git gone 2>/dev/null && echo MOVED; mv sub/.git gone 2>/dev/null && echo MOVED; \
                  rm -rf .vscode 2>/dev/null && echo REMOVED; echo fine > .git/description; cat .git/hooks/pre-commit";
    assert_eq!(backend.bash(script), "[Exit code: 0]\nold\n");
    assert_eq!(backend.fixture.read(".git/config"), "[core]\n");
    assert_eq!(backend.fixture.read(".git/description"), "fine\n");
    // What is missing cannot be held; it is told, and held from then on.
    let text = backend.bash("echo '{}' > .mcp.json");
    assert!(text.contains(".mcp.json appeared"), "{text}");
    let (text, _) = backend.run(json!({"command": "echo evil > .mcp.json"}));
    assert!(text.contains("Read-only file system"), "{text}");
    assert_eq!(backend.fixture.read(".mcp.json"), "{}\n");
    assert_eq!(backend.containers().len(), 1, "the container that did not hold it is gone");
    backend.end();
}

/// A command that puts a link in place of a directory on the way leads the engine nowhere.
#[test]
fn a_link_on_the_way_to_a_protected_name_shows_nothing() {
    let name = "a_link_on_the_way_to_a_protected_name_shows_nothing";
    let Some(mut backend) = Backend::new(name, "//- sub/.git/config\n[core]\n") else { return };
    std::fs::create_dir_all(backend.fixture.outside().join("sub/.git")).unwrap();
    let hidden = backend.fixture.outside().join("sub/.git/config");
    std::fs::write(&hidden, "SECRET-OF-THE-HOST\n").unwrap();
    let outside = backend.fixture.outside().display().to_string();
    backend.bash(&format!("mv sub was && ln -s {outside}/sub sub && ln -s {outside} .vscode"));
    let (text, facts) =
        backend.run(json!({"command": "cat sub/.git/config; echo evil > sub/.git/config; true"}));
    assert_eq!(facts["sandbox"], "container", "{text}");
    assert!(!text.contains("SECRET-OF-THE-HOST"), "{text}");
    assert_eq!(std::fs::read_to_string(&hidden).unwrap(), "SECRET-OF-THE-HOST\n");
    backend.end();
}

#[test]
fn calls_beside_each_other_do_not_wait_for_each_other() {
    let name = "calls_beside_each_other_do_not_wait_for_each_other";
    let Some(mut backend) = Backend::new(name, "//- a\n") else { return };
    let call = |id: u64, command: &str| {
        let params = json!({"name": "run_bash", "arguments": {"command": command, "timeout": 50}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
    };
    // Each waits for the other's file.
    backend.server.send(&call(101, "touch one; until [ -e two ]; do sleep 0.1; done; echo met"));
    backend.server.send(&call(102, "touch two; until [ -e one ]; do sleep 0.1; done; echo met"));
    for _ in 0..2 {
        let answer = backend.server.receive();
        assert_eq!(parts(&answer).0, "[Exit code: 0]\nmet\n", "{answer}");
    }
    assert!(backend.containers().len() <= 2);
    backend.end();
}

#[test]
fn a_cancelled_call_ends_and_the_next_finds_the_container_clean() {
    let name = "a_cancelled_call_ends_and_the_next_finds_the_container_clean";
    let Some(mut backend) = Backend::new(name, "//- a\n") else { return };
    let mark = format!("mk-cancel-{}", std::process::id());
    let command = format!("touch begun; bash -c 'exec -a {mark} sleep 300'");
    let params = json!({"name": "run_bash", "arguments": {"command": command}});
    backend.server.send(
        &json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": params}).to_string(),
    );
    let give_up = Instant::now() + Duration::from_secs(30);
    while !is_running(&mark) {
        assert!(Instant::now() < give_up, "the command does not begin");
    }
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}});
    backend.server.send(&cancel.to_string());
    assert_eq!(
        backend.bash("ps -e 2>/dev/null | grep -c sleep; echo next"),
        "[Exit code: 0]\n0\nnext\n"
    );
    assert!(!is_running(&mark));
    backend.end();
}

#[test]
fn a_job_goes_on_beside_commands_and_is_stopped() {
    let Some(mut backend) = Backend::new("a_job_goes_on_beside_commands_and_is_stopped", "//- a\n")
    else {
        return;
    };
    let job = "echo one; until [ -e go ]; do sleep 0.1; done; echo two; sleep 300";
    let (text, facts) = backend.run(json!({"command": job, "background": true}));
    assert_eq!(facts["sandbox"], "container", "{text}");
    let id = facts["job_id"].as_str().unwrap().to_owned();
    backend.bash("touch go");
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let (text, facts) = backend.tool("read_output", json!({"output_id": id}));
        if text.starts_with("one\ntwo\n") {
            assert_eq!(facts["state"], "running");
            break;
        }
        assert!(Instant::now() < give_up, "{text}");
    }
    let (text, facts) = backend.tool("stop_job", json!({"job_id": id}));
    assert!(text.contains(": stopped, "), "{text}");
    assert_eq!((&facts["cancelled"], &facts["sandbox"]), (&json!(true), &json!("container")));
    // One that is left to the server's end goes with it.
    backend.run(json!({"command": "sleep 300", "background": true}));
    backend.end();
}

#[test]
fn a_container_that_went_between_two_calls_is_replaced() {
    let name = "a_container_that_went_between_two_calls_is_replaced";
    let Some(mut backend) = Backend::new(name, "//- a\n") else { return };
    backend.bash("echo x > /tmp/kept; echo $HOME");
    assert_eq!(backend.bash("cat /tmp/kept"), "[Exit code: 0]\nx\n");
    for id in backend.containers() {
        backend.podman(&["rm", "--force", "--time", "0", &id]);
    }
    assert_eq!(backend.bash("cat /tmp/kept 2>/dev/null; echo again"), "[Exit code: 0]\nagain\n");
    backend.end();
}

#[test]
fn a_container_that_goes_under_a_command_is_said_with_the_output_so_far() {
    let name = "a_container_that_goes_under_a_command_is_said_with_the_output_so_far";
    let Some(mut backend) = Backend::new(name, "//- a\n") else { return };
    backend.bash("true");
    let id = backend.containers().swap_remove(0);
    let engine = backend.engine.clone();
    let (place, mark) =
        (backend.fixture.root().join("begun"), "echo so-far; touch begun; sleep 60");
    let remover = std::thread::spawn(move || {
        wait_for(&place);
        podman(&engine, &["rm", "--force", "--time", "0", &id]);
    });
    let (text, facts) = backend.run(json!({"command": mark}));
    remover.join().unwrap();
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    assert!(text.contains("ended under the command") && text.contains("so-far"), "{text}");
    assert!(text.contains("the next command starts a new container"), "{text}");
    backend.bash("echo again");
    backend.end();
}

fn wait_for(place: &Path) {
    let give_up = Instant::now() + Duration::from_secs(30);
    while !place.exists() {
        assert!(Instant::now() < give_up, "{} does not come", place.display());
        std::thread::yield_now();
    }
}

/// A server that reaches the engine by a way that can be cut.
fn by_a_way(name: &str) -> Option<(Backend, Way)> {
    let (engine, image) = require(name, root().and_then(|()| engine()))?;
    let fixture = Fixture::new("//- a\n");
    hand_over(&fixture);
    let way = Way::new(&fixture, &engine);
    let host = format!("unix://{}", way.socket.display());
    let arguments = ["--sandbox", "container", "--container-image", &image];
    let mut server = Binary::start(&fixture, &arguments, &[("DOCKER_HOST", &host)]);
    server.hello("2025-11-25");
    Some((Backend { fixture, server, engine, calls: 0 }, way))
}

#[test]
fn an_engine_that_dies_under_a_command_is_an_answer_and_the_next_call_finds_it_again() {
    let name = "an_engine_that_dies_under_a_command_is_an_answer_and_the_next_call_finds_it_again";
    let Some((mut backend, way)) = by_a_way(name) else { return };
    backend.bash("true");
    let began = Instant::now();
    let cutter = std::thread::spawn(move || {
        way.cut_behind_mark();
        way
    });
    let (text, facts) = backend.run(json!({"command": format!("{PRINT_MARK}; sleep 60")}));
    let way = cutter.join().unwrap();
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    assert!(text.contains("\nso-42") && text.contains("starts a new container"), "{text}");
    let (text, facts) = backend.run(json!({"command": "echo not-there"}));
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    assert!(text.contains("DOCKER_HOST") && !text.contains("way.sock"), "{text}");
    let (text, _) = backend.tool("read_file", json!({"filepath": "a"}));
    assert_eq!(text, "", "files do not need an engine");
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    way.mend();
    backend.bash("echo again");
    assert_eq!(backend.containers().len(), 1, "the one that was lost is removed now");
    backend.end();
}

#[test]
fn an_engine_that_dies_under_code_is_an_answer() {
    let name = "an_engine_that_dies_under_code_is_an_answer";
    let Some((mut backend, way)) = by_a_way(name) else { return };
    let image = engine().unwrap().1;
    backend.bash("true");
    let (text, facts) = backend.tool("initialize_sandbox", json!({"image": image}));
    let id = facts["sandbox_id"].as_str().unwrap_or_else(|| panic!("{text}")).to_owned();
    let cutter = std::thread::spawn(move || {
        way.cut_behind_mark();
        way
    });
    let began = Instant::now();
    let code = format!("{PRINT_MARK}; sleep 60");
    let arguments = json!({"language": "bash", "code": code, "sandbox_id": id});
    let (text, facts) = backend.tool("execute_code", arguments);
    let way = cutter.join().unwrap();
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    assert!(
        text.contains("\nso-42") && text.contains("stop this sandbox and open another"),
        "{text}"
    );
    let (text, facts) = backend.tool("initialize_sandbox", json!({"image": engine().unwrap().1}));
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    way.mend();
    backend.tool("stop_sandbox", json!({"sandbox_id": id}));
    backend.end();
}

#[test]
fn without_an_engine_the_answer_says_what_helps() {
    let fixture = Fixture::new("//- a\n");
    if require("without_an_engine_the_answer_says_what_helps", root()).is_none() {
        return;
    }
    hand_over(&fixture);
    let arguments = ["--sandbox", "container", "--container-image", "localhost/x:y"];
    let mut server =
        Binary::start(&fixture, &arguments, &[("DOCKER_HOST", "unix:///nowhere/x.sock")]);
    server.hello("2025-11-25");
    let (text, facts) = parts(&server.call(1, "run_bash", json!({"command": "echo ran"})));
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    assert!(text.contains("start Docker or Podman") && !text.contains("/nowhere"), "{text}");
    assert!(!text.contains("\nran"), "{text}");
    let (text, facts) = parts(&server.call(2, "initialize_sandbox", json!({"image": "x:y"})));
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    server.close_input();
    assert!(server.ended().0);
}

#[test]
fn an_image_that_cannot_be_had_is_a_reason() {
    let name = "an_image_that_cannot_be_had_is_a_reason";
    let Some(mut backend) = Backend::with(name, "//- a\n", &[], &[("PULL", "from=localhost:1/")])
    else {
        return;
    };
    // Nobody listens there.
    let began = Instant::now();
    let (text, facts) =
        backend.tool("initialize_sandbox", json!({"image": "localhost:1/no/such:x"}));
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    assert!(text.contains("could not pull") && text.contains("connection refused"), "{text}");
    let (text, facts) =
        backend.tool("initialize_sandbox", json!({"image": "localhost/no-such:image"}));
    assert_eq!(facts["error_kind"], "engine_unavailable", "{text}");
    assert!(text.contains("PULL") && text.contains("no image"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    let (text, facts) = backend.tool("initialize_sandbox", json!({"image": "a/../b"}));
    assert_eq!(facts["error_kind"], "invalid_args", "{text}");
    backend.end();
}

#[test]
fn what_no_container_can_give_is_refused() {
    let name = "what_no_container_can_give_is_refused";
    let Some((engine, image)) = require(name, root().and_then(|()| engine())) else { return };
    let refusal = |network: &str, owned: bool| {
        let fixture = Fixture::new("//- a\n");
        if owned {
            hand_over(&fixture);
        }
        let arguments =
            ["--sandbox", "container", "--container-image", &image, "--network", network];
        let mut server = Binary::start(&fixture, &arguments, &[("DOCKER_HOST", &engine)]);
        server.hello("2025-11-25");
        let (text, facts) = parts(&server.call(1, "run_bash", json!({"command": "echo ran"})));
        assert_eq!(facts["error_kind"], "sandbox_unavailable", "{text}");
        server.close_input();
        assert!(server.ended().0);
        text
    };
    let text = refusal("allow=index.example.net", true);
    assert!(text.contains("allow-list"), "{text}");
    let text = refusal("off", false);
    assert!(text.contains("belongs to root") && text.contains("chown"), "{text}");
}

#[test]
fn the_engine_s_network_is_there_where_the_operator_says_so() {
    let name = "the_engine_s_network_is_there_where_the_operator_says_so";
    let Some(mut backend) = Backend::with(name, "//- a\n", &["--network", "on"], &[]) else {
        return;
    };
    let (text, _) = backend.run(json!({"command": "grep : /proc/net/dev | grep -vc lo:"}));
    assert_eq!(text, "[Exit code: 0]\n1\n");
    backend.end();
}

#[test]
fn what_a_killed_server_left_goes_with_the_next_start() {
    let name = "what_a_killed_server_left_goes_with_the_next_start";
    let Some(mut killed) = Backend::new(name, "//- a\n") else { return };
    killed.bash("true");
    let (engine, pid) = (killed.engine.clone(), killed.server.pid());
    drop(killed);
    assert_eq!(containers_of(&engine, pid).len(), 1, "a killed server cannot remove it");
    let mut next = Backend::new(name, "//- a\n").unwrap();
    next.bash("true");
    assert_eq!(containers_of(&engine, pid), [""; 0]);
    next.end();
}

#[test]
fn doctor_and_a_single_call_leave_nothing() {
    let name = "doctor_and_a_single_call_leave_nothing";
    let Some((engine, image)) = require(name, root().and_then(|()| engine())) else { return };
    let fixture = Fixture::new("//- .git/config\n[core]\n");
    hand_over(&fixture);
    let run = |arguments: &[&str]| {
        let child = Command::new(BINARY)
            .args(arguments)
            .args(["--sandbox", "container", "--container-image", &image, "--workspace"])
            .arg(fixture.root())
            .envs([("DOCKER_HOST", engine.as_str())])
            .env("AUDIT_DIR", fixture.base().join("state"))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        assert_eq!(containers_of(&engine, pid), [""; 0]);
        String::from_utf8(done.stdout).unwrap()
    };
    let report: Value = serde_json::from_str(&run(&["doctor", "--json"])).unwrap();
    assert_eq!((&report["rung"], &report["ok"]), (&json!("container"), &json!(true)));
    for layer in report["layers"].as_array().unwrap() {
        assert_eq!(layer["state"], "active", "{layer}");
    }
    let text = run(&["call", "run_bash", r#"{"command": "ls -A"}"#]);
    assert_eq!(text, "[Exit code: 0]\n.git\n", "the file of the trial is gone too");
}
