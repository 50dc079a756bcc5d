//! The report: what this machine's layers do, and that it is not made of intentions.

use proc_sandbox::{Helper, HostRead, Net, Report, Rung, State};

use crate::{Place, policy};

fn states(report: &Report) -> String {
    use std::fmt::Write as _;
    report.layers.iter().fold(String::new(), |mut text, layer| {
        let state = serde_json::to_value(layer.state).unwrap();
        writeln!(text, "{} {}", layer.name, state.as_str().unwrap()).unwrap();
        text
    })
}

fn check(report: &Report, name: &str, state: State) {
    let layer = report.layer(name).unwrap();
    assert_eq!(layer.state, state, "{layer:?}");
}

#[test]
fn a_strict_policy_reaches_the_rung() {
    let place = Place::new("");
    let report = place.sandbox.probe();
    assert_eq!(report.rung, Rung::Landlock, "{report:#?}");
    let root = rustix::process::geteuid().is_root();
    let by_user = if root { "unavailable" } else { "active" };
    assert_eq!(
        states(&report),
        format!(
            "fs_readonly_outside active\n\
             fs_hidden_outside active\n\
             fs_metadata_outside unavailable\n\
             net_off active\n\
             unix_socket_isolation active\n\
             signal_isolation active\n\
             ptrace_isolation active\n\
             pid_containment active\n\
             namespaces unavailable\n\
             pidns unavailable\n\
             syscalls active\n\
             no_new_privs active\n\
             capabilities active\n\
             identity {by_user}\n\
             memory_limit active\n\
             pids_limit {by_user}\n\
             file_limits active\n\
             tmp_quota unavailable\n\
             protected_paths unavailable\n\
             execute active\n"
        ),
        "{report:#?}"
    );
}

#[test]
fn with_namespaces_every_layer_is_active() {
    let place = Place::new("");
    for sandbox in &place.native {
        let report = sandbox.probe();
        assert_eq!(report.rung, sandbox.rung());
        let missing: Vec<_> =
            report.layers.iter().filter(|layer| layer.state != State::Active).collect();
        match report.rung {
            Rung::NativeFull => assert!(missing.is_empty(), "{missing:#?}"),
            _ => assert!(matches!(missing[..], [layer] if layer.name == "pidns"), "{missing:#?}"),
        }
    }
}

#[test]
fn what_the_policy_turns_off_is_off() {
    let place = Place::with("", |policy| policy.read(HostRead::All).net(Net::On));
    for sandbox in place.all() {
        let report = sandbox.probe();
        check(&report, "fs_hidden_outside", State::Off);
        check(&report, "net_off", State::Off);
        check(&report, "unix_socket_isolation", State::Active);
        assert_eq!(report.rung, sandbox.rung(), "{report:#?}");
    }
}

#[test]
fn a_helper_that_is_none_is_found_out() {
    for program in ["/bin/true", "/bin/cat", "/bin/false"] {
        let place = Place::plain(|policy| policy.helper(Helper::Program(program.into())));
        let report = place.sandbox.probe();
        assert_eq!(report.rung, Rung::None, "{report:#?}");
        assert!(report.layers.iter().all(|layer| layer.state == State::Unavailable), "{report:#?}");
        let detail = &report.layer("fs_readonly_outside").unwrap().detail;
        assert_eq!(detail, "the sandbox helper ended before it reported what it enforced");
    }
}

#[test]
fn a_grant_over_the_canary_is_found_out() {
    let parent = tempfile::tempdir().unwrap();
    let place =
        Place::with("", |policy| policy.scratch_parent(parent.path()).extra_write([parent.path()]));
    let report = place.sandbox.probe();
    check(&report, "fs_readonly_outside", State::Unavailable);
    check(&report, "fs_hidden_outside", State::Unavailable);
    let remedy = report.layer("fs_hidden_outside").unwrap().remedy.as_ref().unwrap();
    assert!(remedy.contains("name another scratch parent"), "{remedy}");
    assert_eq!(report.rung, Rung::None);
    // Nothing the attempt made stays to hide the next one.
    check(&place.sandbox.probe(), "fs_readonly_outside", State::Unavailable);
}

#[test]
fn a_rung_above_the_ceiling_cannot_be_required() {
    let place = Place::plain(|policy| policy.require(Rung::NativeFull));
    let target = proc_sandbox::Target::new("/bin/true", crate::directory(&place.fixture.root()));
    assert_eq!(
        place.sandbox.confine(target).unwrap_err().to_string(),
        "the sandbox reaches landlock here, and native-full is required: native-full lies above the ceiling the \
         policy sets"
    );
}

#[test]
fn a_place_the_policy_names_must_be_there() {
    let fixture = testkit::Fixture::new("");
    let policy = policy(&fixture.root()).extra_read(["/no/such/place"]);
    let error = proc_sandbox::Sandbox::new(policy).unwrap_err();
    assert_eq!(error.to_string(), "cannot open /no/such/place, which the policy names");
}

#[test]
fn a_report_is_read_back_from_its_json() {
    let report = Place::new("").sandbox.probe();
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.starts_with(
        r#"{"rung":"landlock","layers":[{"name":"fs_readonly_outside","state":"active","#
    ));
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}
