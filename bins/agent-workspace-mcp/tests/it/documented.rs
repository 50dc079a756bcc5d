//! Every command that a page of this repository shows was run: here, or by the test or the step of CI named beside it.
//! Links lead somewhere, and the README's figures are those of the pages that measurements write.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::Fixture;

use crate::harness::BINARY;

/// Who runs a command.
enum Run {
    /// This test, through a shell, with the binary on `PATH` and a home of its own.
    Here,
    /// A test: file below the repository, and function.
    Test(&'static str, &'static str),
    /// A step: file below the repository, and what stands in it.
    Step(&'static str, &'static str),
    /// Nobody: it needs what no test machine has.
    Nobody(&'static str),
}

const IMAGE: &str = "bins/agent-workspace-mcp/tests/it/image.rs";

const COMMAND_LINE: &str = "bins/agent-workspace-mcp/tests/it/command_line.rs";
const HTTP: &str = "bins/agent-workspace-mcp/tests/it/http.rs";

const COMMANDS: &[(&str, Run)] = &[
    ("cargo run --release -- demo", Run::Step(".ci/run", "cargo run --release -- demo")),
    ("cargo test --workspace --locked", Run::Step(".ci/run", "cargo test --workspace --locked")),
    ("docker build ", Run::Step(".ci/image", "build --format docker")),
    ("docker run -i --rm --init --read-only", Run::Test(IMAGE, "p13_a_line_of_the_protocol")),
    (
        "cargo install --path bins/agent-workspace-mcp",
        Run::Nobody("the release build that the demo makes, and a copy"),
    ),
    (".ci/run", Run::Step(".ci/run", "cargo xtask ci")),
    ("cargo run -- demo", Run::Test(COMMAND_LINE, "the_demo_shows_every_step")),
    ("cargo test -p fuzzy-edit", Run::Step(".ci/run", "cargo test --workspace --locked")),
    ("cargo xtask ci", Run::Step(".ci/run", "cargo xtask ci")),
    (
        "cargo xtask server-json --name ",
        Run::Test("bins/xtask/src/server_json.rs", "the_image_is_started_by_the_readmes_line"),
    ),
    ("cargo build --release", Run::Nobody("the release build that the demo makes")),
    ("eval \"$(bash benches/peers)\"", Run::Nobody("it installs other servers, to be measured")),
    ("cargo bench -p benches", Run::Nobody("it measures for minutes, on a quiet machine")),
    ("kubectl ", Run::Nobody("no cluster; docs/deploy/validate.py checks what is applied")),
    ("agent-workspace-mcp client-config claude --workspace ~/projects/mine", Run::Here),
    ("agent-workspace-mcp stats", Run::Here),
    ("agent-workspace-mcp doctor", Run::Here),
    ("MCP_API_KEY=$(openssl rand -hex 32) agent-workspace-mcp serve", Run::Test(HTTP, "p8_host")),
];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The pages: those at the top, in `docs`, and one a package.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut places = vec![root(), root().join("docs"), root().join("docs/deploy")];
    for group in ["crates", "bins"] {
        let packages = std::fs::read_dir(root().join(group)).unwrap();
        places.extend(packages.map(|entry| entry.unwrap().path()));
    }
    for place in places {
        let Ok(entries) = std::fs::read_dir(place) else { continue };
        pages.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| {
            path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"))
        }));
    }
    pages
}

/// The commands in the shell blocks of a page, with their continued lines joined and comments left out.
fn commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut inside = false;
    for line in page.replace("\\\n", " ").lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = !inside && ["sh", "bash", "console"].contains(&language);
        } else if inside {
            let line = line.split(" # ").next().unwrap_or_default();
            let words: Vec<_> = line.split_whitespace().collect();
            if !words.is_empty() && !line.trim_start().starts_with('#') {
                commands.push(words.join(" "));
            }
        }
    }
    commands
}

#[test]
fn every_documented_command_is_run_by_somebody() {
    let mut shown: BTreeMap<String, String> = BTreeMap::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for command in commands(&text) {
            shown.insert(command, page.strip_prefix(root()).unwrap().display().to_string());
        }
    }
    let known = |command: &str| COMMANDS.iter().find(|(begins, _)| command.starts_with(begins));
    let unknown: Vec<_> = shown.iter().filter(|(command, _)| known(command).is_none()).collect();
    assert!(unknown.is_empty(), "nobody runs {unknown:#?}");
    for (begins, run) in COMMANDS {
        let is_shown = shown.keys().any(|command| command.starts_with(begins));
        assert!(is_shown, "no page shows any more: {begins}");
        let (file, wanted) = match run {
            Run::Test(file, function) => (file, format!("fn {function}")),
            Run::Step(file, text) => (file, (*text).to_owned()),
            Run::Nobody(why) => {
                assert!(!why.is_empty(), "{begins}");
                continue;
            }
            Run::Here => continue,
        };
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&wanted), "{file} does not run any more: {begins}");
    }

    let fixture = Fixture::new("//- home/projects/mine/a\n");
    let binaries = Path::new(BINARY).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([binaries].into_iter().chain(std::env::split_paths(&path)));
    let path = path.unwrap();
    let state = fixture.base().join("state");
    // So that there is something to tell about.
    let mut called = Command::new(BINARY);
    called.args(["call", "list_directory", "{}", "--workspace"]).arg(fixture.root());
    assert!(called.env("AUDIT_DIR", &state).output().unwrap().status.success());
    for (command, page) in &shown {
        if !matches!(known(command), Some((_, Run::Here))) {
            continue;
        }
        let output = Command::new("sh")
            .args(["-ec", command])
            .current_dir(fixture.root())
            .env("PATH", &path)
            .env("HOME", fixture.root().join("home"))
            .env("AUDIT_DIR", &state)
            .output()
            .unwrap();
        assert!(output.status.success(), "{page}: {command}: {output:?}");
    }
}

/// Where the links of a page lead, those into the network left out.
fn links(page: &str) -> Vec<&str> {
    let after = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    after.filter(|link| !link.starts_with("http") && !link.contains(char::is_whitespace)).collect()
}

/// The anchors that a page's headings get.
fn anchors(page: &str) -> Vec<String> {
    let titles = page.lines().filter(|line| line.starts_with('#'));
    let plain = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    titles
        .map(|title| title.trim_start_matches('#').trim().to_lowercase())
        .map(|title| title.chars().filter(plain).collect::<String>().replace(' ', "-"))
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            count += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let leads = match std::fs::read_to_string(&target) {
                Ok(there) => anchor.is_empty() || anchors(&there).iter().any(|it| it == anchor),
                Err(_) => target.is_dir() && anchor.is_empty(),
            };
            if !leads {
                broken.push(format!("{}: {link}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "links to nowhere: {broken:#?}");
    assert!(count > 30, "{count} links: are they read at all?");
}

#[test]
fn the_readmes_figures_are_those_that_were_measured() {
    let read = |page: &str| std::fs::read_to_string(root().join(page)).unwrap();
    let readme = read("README.md");
    let (_, measured) = readme.split_once("\n## Measured\n").unwrap();
    let (measured, _) = measured.split_once("\n## ").unwrap();
    let sources = ["docs/performance.md", "docs/filter.md", "docs/security.md"].map(read);
    let rows: Vec<_> = measured.lines().filter(|line| line.starts_with('|')).collect();
    for row in &rows {
        let stands = sources.iter().any(|page| page.lines().any(|line| line == *row));
        assert!(stands, "no page measured: {row}");
    }
    assert!(rows.len() > 12, "{rows:#?}");
}
