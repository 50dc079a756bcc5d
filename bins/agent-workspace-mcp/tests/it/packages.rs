//! `language_packages`: fetched from the real index while the network is open, there for code when it is closed.

use serde_json::json;
use testkit::require;

use crate::harness::{Answer, Session};
use crate::network::{allowing, has_proxy, package_index};
use crate::place::{Backend, Place};

fn run(session: &Session, code: &str) -> Answer {
    session.call("execute_code", json!({"code": code}))
}

#[test]
fn a_python_package_can_be_imported_when_the_network_is_closed_again() {
    let test = "a_python_package_can_be_imported_when_the_network_is_closed_again";
    let Some((_, index, hosts)) = require(test, package_index()) else { return };
    let session = allowing(&hosts);
    if !has_proxy(test, &session) {
        return;
    }
    let packages = "[\"six==1.17.0\", \"python:idna\"]";
    let answer = session.call("initialize_sandbox", json!({"language_packages": packages}));
    assert!(!answer.is_error, "{answer:?}");
    assert!(answer.text.contains("; installed: six==1.17.0, idna]"), "{answer:?}");

    let answer = run(
        &session,
        "import six, idna; print(six.__version__, idna.encode('ä.example').decode())",
    );
    assert_eq!(answer.text, "[Exit code: 0]\n1.17.0 xn--4ca.example\n");
    // Code in another language finds the same interpreter.
    let arguments =
        json!({"language": "bash", "code": "python3 -c 'import six; print(six.__file__)'"});
    let answer = session.call("execute_code", arguments);
    assert!(answer.text.contains("/.venv/lib/"), "{answer:?}");

    // Neither through what led the installer out, nor around it.
    let code = format!(
        "import os, socket, urllib.request\n\
         print([name for name in os.environ if 'proxy' in name.lower()])\n\
         print(open('/proc/net/dev').read().count(':'))\n\
         try: print('FETCHED', urllib.request.urlopen({index:?}, timeout=10).status)\n\
         except Exception as error: print('refused')\n\
         try: print('CONNECTED', socket.create_connection(('127.0.0.1', 1), timeout=5))\n\
         except Exception as error: print('refused')\n"
    );
    let answer = run(&session, &code);
    assert_eq!(answer.text, "[Exit code: 0]\n[]\n1\nrefused\nrefused\n");
}

#[test]
fn what_cannot_be_installed_leaves_no_sandbox_and_what_the_installer_said() {
    let test = "what_cannot_be_installed_leaves_no_sandbox_and_what_the_installer_said";
    let Some((_, _, hosts)) = require(test, package_index()) else { return };
    let refused = |session: &Session, packages: &str| {
        let arguments = json!({"language_packages": packages});
        let answer = session.call("initialize_sandbox", arguments);
        assert!(answer.is_error, "{answer:?}");
        assert_eq!(answer.facts["error_kind"], "invalid_args", "{answer:?}");
        assert!(
            answer.text.ends_with("[the packages could not be installed; no sandbox is open]"),
            "{answer:?}"
        );
        session.refused("stop_sandbox", json!({}), "unknown_id");
        answer
    };
    let session = allowing(&hosts);
    if !has_proxy(test, &session) {
        return;
    }
    let answer = refused(&session, "six==0.0.0.1");
    assert!(answer.text.starts_with("[Exit code: "), "{answer:?}");
    assert!(answer.text.contains("six==0.0.0.1"), "{answer:?}");
    // An index that is not on the operator's list.
    let elsewhere = allowing("other.example.net");
    let answer = refused(&elsewhere, "six");
    assert!(answer.text.contains("[network: host "), "{answer:?}");
    assert!(answer.text.contains("is not on the allow-list"), "{answer:?}");
}

#[test]
fn a_failed_installation_leaves_no_directory() {
    let test = "a_failed_installation_leaves_no_directory";
    let Some((_, _, hosts)) = require(test, package_index()) else { return };
    let arguments = ["--network", &format!("allow={hosts}")];
    let Some(mut place) = Place::open(test, Backend::Native, &arguments) else { return };
    let before = place.directories();
    assert_eq!(before.len(), 1);
    let answer = place.raw("initialize_sandbox", json!({"packages": ["six==0.0.0.1"]}));
    assert_eq!(answer["isError"], true, "{answer}");
    assert_eq!(place.directories(), before);
}

#[test]
fn without_a_network_of_the_operators_nothing_is_fetched() {
    let session = Session::new("//- a\n");
    let packages = |packages: &str| json!({"language_packages": [packages]});
    let text = session.refused("initialize_sandbox", packages("six"), "invalid_args");
    assert!(text.contains("the operator gives no network"), "{text}");
    for hostile in
        ["--index-url=http://x", "a'; touch /tmp/x; '", "./six", "npm:file:..", "cobol:x"]
    {
        session.refused("initialize_sandbox", packages(hostile), "invalid_args");
    }
    let image = json!({"image": "localhost/x:y", "language_packages": "six"});
    let text = session.refused("initialize_sandbox", image, "invalid_args");
    assert!(text.contains("name an image that holds them"), "{text}");
    session.refused("stop_sandbox", json!({}), "unknown_id");
}
