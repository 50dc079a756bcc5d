//! `cargo xtask examples`: runs every example of the libraries that a newcomer would try first, and looks at what it says.
//!
//! An example that compiles may still mislead; these are run with arguments like those in their first lines. The
//! server's own examples are run by its tests.
#![expect(clippy::disallowed_methods, reason = "chores write what an example reads")]

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::run::{Said, fed, run as step, say};

/// A file that the examples read and leave alone.
const FILE: &str = "def greet():\n\treturn 'hi'\n";

/// Where an example runs, and what shows that it did its work.
struct Run {
    package: &'static str,
    example: &'static str,
    arguments: &'static [&'static str],
    input: &'static str,
    says: &'static [&'static str],
}

const RUNS: &[Run] = &[
    Run {
        package: "workspace-jail",
        example: "show",
        arguments: &[".", "greet.py"],
        input: "",
        says: &[FILE],
    },
    Run {
        package: "fuzzy-edit",
        example: "edit",
        arguments: &["greet.py", "    return 'hi'", "    return 'bye'"],
        input: "",
        says: &["-\treturn 'hi'\n+\treturn 'bye'\n"],
    },
    Run {
        package: "proc-runner",
        example: "within",
        arguments: &["20", "/bin/sh", "-c", "sleep 600 & seq 1 3"],
        input: "",
        says: &["1\n2\n3\n", "Exited(0)", "left running and ended: 1"],
    },
    Run {
        package: "proc-sandbox",
        example: "confine",
        arguments: &["cat greet.py; cat /etc/shadow"],
        input: "",
        says: &[FILE, "/etc/shadow: ", "on the rung "],
    },
    Run {
        package: "egress-proxy",
        example: "only",
        arguments: &["example.com,*.example.org"],
        input: "",
        says: &["export HTTP_PROXY=http://127.0.0.1:", "0 requests were refused"],
    },
    Run {
        package: "token-filter",
        example: "shorten",
        arguments: &["make fetch", "0"],
        input: "fetching 10%\rfetching 99%\nwarning: clock skew\n",
        says: &["fetching 99%\nwarning: clock skew\n", "tokens became"],
    },
];

/// The one that needs an engine and an image.
const IN_A_CONTAINER: Run = Run {
    package: "container-sandbox",
    example: "once",
    arguments: &["sh", "-c", "echo from inside; exit 3"],
    input: "",
    says: &["from inside\n", "exit code Some(3)"],
};
const ENGINE: &str = "AGENT_WORKSPACE_TEST_ENGINE";
const IMAGE: &str = "AGENT_WORKSPACE_TEST_IMAGE";

pub(crate) fn run(root: &Path) -> Result<()> {
    // The whole workspace, as the tests build it, so that nothing is built twice.
    step(root, "cargo build --quiet --workspace --locked --bins --examples", &[])?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    let built = target.join("debug/examples");
    let place = tempfile::tempdir()?;
    std::fs::write(place.path().join("greet.py"), FILE)?;
    let mut faults = Vec::new();
    for it in RUNS {
        faults.extend(fault(&built, place.path(), it, &[], &[])?);
    }
    if let (Ok(engine), Ok(image)) = (std::env::var(ENGINE), std::env::var(IMAGE)) {
        let variables = [("DOCKER_HOST", engine.as_str())];
        faults.extend(fault(&built, place.path(), &IN_A_CONTAINER, &[&image], &variables)?);
    } else if std::env::var_os("AGENT_WORKSPACE_TESTS_NO_SKIP").is_some() {
        bail!("{ENGINE} and {IMAGE} are not set: .ci/engine brings both");
    } else {
        say("SKIPPED examples: container-sandbox needs an engine (.ci/engine)");
    }
    if faults.is_empty() {
        say(&format!("examples: {} ran and said what they should", RUNS.len() + 1));
        return Ok(());
    }
    bail!("examples:\n  {}", faults.join("\n  "))
}

/// What is wrong with what the example says.
fn fault(
    built: &Path,
    place: &Path,
    run: &Run,
    first: &[&str],
    variables: &[(&str, &str)],
) -> Result<Option<String>> {
    let Run { package, example, arguments, input, says } = run;
    let all: Vec<&str> = first.iter().chain(*arguments).copied().collect();
    let Said { success, text } = fed(place, &built.join(example), &all, input, variables)
        .with_context(|| (*example).to_owned())?;
    if !success {
        return Ok(Some(format!("{package}, {example}: failed: {text}")));
    }
    let missed = says.iter().find(|part| !text.contains(**part));
    Ok(missed.map(|part| format!("{package}, {example}: does not say {part:?} but: {text}")))
}
