//! The network of commands by an allow-list: the listed hosts, through the server's proxy, and nothing else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

use agent_workspace_mcp::config::Network;
use egress_proxy::HostRules;
use serde_json::json;
use testkit::{Missing, require};

use crate::harness::{Answer, Session, variable};

/// An HTTP server on the machine's loopback, which answers every request alike.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            if length > 0 {
                let answer =
                    "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nupstream";
                // The client may have gone.
                stream.write_all(answer.as_bytes()).ok();
            }
        }
    });
    address
}

pub(crate) fn allowing(rules: &str) -> Session {
    Session::with("//- a\n", |config| {
        config.network = Network::Allow(HostRules::parse(rules).unwrap());
    })
}

/// Whether there is an allow-list here at all: without namespaces there is no network to be let out of.
pub(crate) fn has_proxy(test: &str, session: &Session) -> bool {
    if require(test, testkit::program("curl")).is_none() {
        return false;
    }
    let rung = session.call("run_bash", json!({"command": "true"})).facts["sandbox"].clone();
    let native = rung.as_str().is_some_and(|rung| rung.starts_with("native"));
    let probe = if native { Ok(()) } else { Err(Missing("a rung with namespaces".to_owned())) };
    require(test, probe).is_some()
}

/// Fetches through whatever the environment says, also from addresses it would otherwise take for local.
fn fetch(session: &Session, url: &str) -> Answer {
    let script = format!("env -u NO_PROXY -u no_proxy curl -sS -m 20 -w ' %{{http_code}}' {url}");
    session.call("run_bash", json!({"command": script}))
}

#[test]
fn a_listed_host_is_reached_and_no_other() {
    let address = upstream();
    let session = allowing(&format!("private:{address},index.example.net"));
    if !has_proxy("a_listed_host_is_reached_and_no_other", &session) {
        return;
    }
    let answer = fetch(&session, &format!("http://{address}/"));
    assert!(answer.text.contains("upstream 200"), "{answer:?}");

    let answer = fetch(&session, "http://other.example.net/");
    assert!(answer.text.contains(" 403"), "{answer:?}");
    assert!(
        answer.text.ends_with(
            "[network: host other.example.net is not on the allow-list; the operator can allow it with --network \
             allow=other.example.net]"
        ),
        "{answer:?}"
    );
    // A listed address of the machine's own is not taken for the command's own; others are.
    let plain = format!("curl -sS -m 20 http://{address}/; echo \" $NO_PROXY\"");
    let answer = session.call("run_bash", json!({"command": plain}));
    assert!(answer.text.contains("upstream localhost,::1\n"), "{answer:?}");
    let answer = fetch(&session, "https://other.example.net/");
    assert!(answer.text.contains("[network: host other.example.net is not"), "{answer:?}");
    // The port beside the listed one, and the way around the proxy.
    let port = if address.port() == 65_535 { 1 } else { address.port() + 1 };
    let answer = fetch(&session, &format!("http://127.0.0.1:{port}/"));
    assert!(answer.text.contains(" 403"), "{answer:?}");
    let direct = format!("curl -sS -m 5 --noproxy '*' http://{address}/");
    let answer = session.call("run_bash", json!({"command": direct}));
    assert!(!answer.text.contains("upstream"), "{answer:?}");
}

#[test]
fn a_private_address_is_reached_only_where_the_rule_says_so() {
    // A name that every machine resolves to its own loopback.
    let session = allowing("localhost");
    if !has_proxy("a_private_address_is_reached_only_where_the_rule_says_so", &session) {
        return;
    }
    let answer = fetch(&session, "http://localhost/");
    assert!(answer.text.contains("[network: host localhost has no public address"), "{answer:?}");
}

#[test]
fn without_a_list_there_is_no_proxy_and_no_network() {
    let test = "without_a_list_there_is_no_proxy_and_no_network";
    if require(test, testkit::program("curl")).is_none() {
        return;
    }
    let address = upstream();
    let session = Session::new("//- a\n");
    let script = format!("env | grep -ic proxy; curl -sS -m 5 http://{address}/");
    let answer = session.call("run_bash", json!({"command": script}));
    assert!(answer.text.starts_with("[Exit code: 7]\n0\n"), "{answer:?}");
}

/// What the wider tests need of the world: `.ci/setup` names it.
pub(crate) fn package_index() -> Result<(String, String, String), Missing> {
    Ok((
        variable("AGENT_WORKSPACE_TEST_UV")?,
        variable("AGENT_WORKSPACE_TEST_INDEX")?,
        variable("AGENT_WORKSPACE_TEST_INDEX_HOSTS")?,
    ))
}

#[test]
fn a_package_tool_adds_a_package_from_the_listed_index_and_from_nowhere_else() {
    let name = "a_package_tool_adds_a_package_from_the_listed_index_and_from_nowhere_else";
    let Some((uv, index, hosts)) = require(name, package_index()) else { return };
    let project = "set -e; mkdir -p bin; cp uv bin/uv; export PATH=$PWD/bin:$PATH UV_NO_PROGRESS=1; \
                   uv init -q demo; cd demo; ";
    let add = format!(
        "{project} uv add -q --default-index {index} six; uv run -q python -c 'import six; print(six.__name__)'"
    );
    let with_uv = |session: &Session| {
        std::fs::copy(&uv, session.fixture.root().join("uv")).unwrap();
    };
    let session = allowing(&hosts);
    if !has_proxy(name, &session) {
        return;
    }
    with_uv(&session);
    let answer = session.call("run_bash", json!({"command": add, "timeout": 120}));
    assert!(
        answer.text.starts_with("[Exit code: 0]\n") && answer.text.contains("six\n"),
        "{answer:?}"
    );

    let offline = Session::new("//- a\n");
    with_uv(&offline);
    let answer = offline.call("run_bash", json!({"command": add, "timeout": 120}));
    assert_ne!(answer.facts["exit_code"], 0, "{answer:?}");
    let elsewhere = allowing("other.example.net");
    with_uv(&elsewhere);
    let answer = elsewhere.call("run_bash", json!({"command": add, "timeout": 120}));
    assert_ne!(answer.facts["exit_code"], 0, "{answer:?}");
    assert!(answer.text.contains("is not on the allow-list"), "{answer:?}");
}
