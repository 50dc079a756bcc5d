//! The attack cases: trees that try to lead out, and what must come of it.
//!
//! Each line of `tests/cases/*.jsonl` prepares a workspace by shell, calls tools, and states the answer,
//! what the outside looks like afterwards, and what is in the workspace. The tools are those of
//! [`tools`](crate::tools); the same cases are run without `openat2`, as an ordinary user, and against
//! tools that know no jail, by the modules of those names.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use testkit::{Case, Fixture, Missing, cases, require};
use workspace_jail::{Jail, Options};

use crate::state::State;
use crate::tools::{self, Answer, Args};

/// Cases that need more than the library, each with its reason.
const LEFT_TO_THE_SERVER: [&str; 0] = [];

/// Held while the peak of memory is measured, which is the process's.
static MEASURING: Mutex<()> = Mutex::new(());

/// Time limits are for optimised code on a quiet machine.
const SLOWNESS: u32 = 4;

/// Where the case files are, for a process that may not look into the source tree.
pub(crate) const CASES: &str = "WORKSPACE_JAIL_CASES";

/// One case.
#[derive(Debug, Deserialize)]
pub(crate) struct Body {
    pub(crate) id: String,
    setup: Vec<String>,
    call: Option<Call>,
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    during: Vec<String>,
    expect: Expect,
    #[serde(default)]
    verify: Vec<String>,
    #[serde(default)]
    pub(crate) requires: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Call {
    tool: String,
    args: Args,
    #[serde(default)]
    repeat: Option<usize>,
    #[serde(default)]
    parallel: bool,
    expect: Option<Expect>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the format of the case files")]
struct Expect {
    ok: Option<bool>,
    error_kind: Option<Kinds>,
    must_contain: Vec<String>,
    must_not_contain: Vec<String>,
    result: Option<String>,
    count_ok: Option<usize>,
    entries_include: Vec<String>,
    outside_unchanged: bool,
    workspace_unchanged: bool,
    files: BTreeMap<String, Option<String>>,
    modes: BTreeMap<String, String>,
    no_temp_left: bool,
    max_wall_ms: Option<u32>,
    truncated: Option<bool>,
    max_response_bytes: Option<usize>,
    max_server_rss_growth_mb: Option<u64>,
    /// Always so here: a panic would have ended the test.
    server_alive: bool,
    all: Option<Box<Expect>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Kinds {
    One(String),
    Some(Vec<String>),
}

impl Kinds {
    fn contains(&self, kind: &str) -> bool {
        match self {
            Self::One(one) => one == kind,
            Self::Some(some) => some.iter().any(|one| one == kind),
        }
    }
}

/// What is asked: the jail, or another party that takes the same calls.
pub(crate) type Subject = dyn Fn(&str, &Args) -> Option<Answer> + Sync;

/// The place of the case files.
pub(crate) fn directory() -> PathBuf {
    let ours = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    std::env::var_os(CASES).map_or_else(ours, PathBuf::from)
}

/// All cases.
pub(crate) fn all() -> Vec<Case<Body>> {
    cases(&directory())
}

/// Tools that are held by a jail on `root`.
fn jailed(root: &Path) -> Box<Subject> {
    let jail = Jail::open(root, Options::default()).unwrap();
    Box::new(move |tool, args| tools::call(&jail, tool, args))
}

#[test]
fn every_case_holds() {
    let all = all();
    let (mut failures, mut left) = (Vec::new(), Vec::new());
    for Case { place, body } in &all {
        if !is_runnable(body) {
            continue;
        }
        match run(body, &jailed, SLOWNESS) {
            None => left.push(body.id.as_str()),
            Some(wrong) if wrong.is_empty() => {}
            Some(wrong) => failures.push(format!("{} ({place}): {}", body.id, wrong.join("; "))),
        }
    }
    assert_eq!(left, LEFT_TO_THE_SERVER, "cases no tool of files runs");
    assert!(
        failures.is_empty(),
        "{} of {} cases:\n{}",
        failures.len(),
        all.len(),
        failures.join("\n")
    );
}

/// Whether this process can prepare a case; says why it cannot.
pub(crate) fn is_runnable(body: &Body) -> bool {
    body.requires.iter().all(|need| {
        let probe = match need.as_str() {
            "protected_paths" => Ok(()),
            "root_setup" if rustix::process::geteuid().is_root() => Ok(()),
            "root_setup" => Err(Missing("the setup of this case needs root".to_owned())),
            other => panic!("{}: unknown requirement {other}", body.id),
        };
        require(&body.id, probe).is_some()
    })
}

/// The place of one case, with the names its text may use.
struct Stage {
    fixture: Fixture,
    mark: String,
}

impl Stage {
    fn new(id: &str) -> Self {
        let fixture = Fixture::new("");
        let keys = fixture.base().join("home/.ssh");
        std::fs::create_dir_all(&keys).unwrap();
        std::fs::write(keys.join("id_ed25519"), "SECRET-CANARY-KEY").unwrap();
        Self { fixture, mark: format!("mark-{id}") }
    }

    /// Puts the names in; `$W` and `$S` only where no letter and no underscore follows.
    fn fill(&self, text: &str) -> String {
        let show = |path: &Path| path.to_string_lossy().into_owned();
        let text = text.replace("$BASE", &show(self.fixture.base())).replace("$MARK", &self.mark);
        let text = replace_word(&text, "$W", &show(&self.fixture.root()));
        replace_word(&text, "$S", &show(&self.fixture.outside()))
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("/bin/bash");
        command.args(["-e", "-c", &self.fill(line)]).current_dir(self.fixture.root());
        command.stdin(Stdio::null());
        command
    }
}

impl Stage {
    /// A shell in a group of its own that ends by itself should this process be killed.
    fn rival(&self, line: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--signal=KILL", "300", "/bin/bash", "-e", "-c"]);
        command.arg(self.fill(line)).current_dir(self.fixture.root());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0);
        command
    }
}

impl Drop for Stage {
    /// A case may have mounted something.
    fn drop(&mut self) {
        let base = self.fixture.base().to_string_lossy().into_owned();
        let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for point in table.lines().rev().filter_map(|line| line.split(' ').nth(1)) {
            if point.starts_with(&base) {
                Command::new("umount").arg(point).status().expect("umount runs");
            }
        }
    }
}

fn replace_word(text: &str, word: &str, value: &str) -> String {
    let mut parts = text.split(word);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let goes_on = part.starts_with(|next: char| next.is_alphabetic() || next == '_');
        filled.push_str(if goes_on { word } else { value });
        filled.push_str(part);
    }
    filled
}

/// The other party of a race, ended with its whole group.
struct Rival(Child);

impl Drop for Rival {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        // It may have ended by itself.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
        self.0.wait().expect("the rival is a child of this process");
    }
}

/// Starts the rivals: one that loops is awaited until it has changed something, any other to its end.
fn start_rivals(stage: &Stage, lines: &[String]) -> Vec<Rival> {
    let before = look(&stage.fixture.root());
    let mut rivals = Vec::new();
    for line in lines {
        let mut child = stage.rival(line).spawn().unwrap();
        if !line.contains("while") {
            assert!(child.wait().unwrap().success(), "{line}");
            continue;
        }
        rivals.push(Rival(child));
        let deadline = Instant::now() + Duration::from_secs(20);
        while look(&stage.fixture.root()) == before {
            assert!(Instant::now() < deadline, "nothing came of {line}");
            std::thread::yield_now();
        }
    }
    rivals
}

fn look(root: &Path) -> Vec<(PathBuf, bool, u64)> {
    let mut seen: Vec<_> = std::fs::read_dir(root)
        .map(|entries| {
            entries
                .flatten()
                .filter_map(|entry| {
                    let meta = entry.path().symlink_metadata().ok()?;
                    Some((entry.path(), meta.is_symlink(), meta.len()))
                })
                .collect()
        })
        .unwrap_or_default();
    seen.sort();
    seen
}

/// Runs a case on the tools that `open` gives for a root, and says what was wrong; `None` if it calls a
/// tool that is not one of files. Time limits are taken `slowness` times.
pub(crate) fn run(
    body: &Body,
    open: &dyn Fn(&Path) -> Box<Subject>,
    slowness: u32,
) -> Option<Vec<String>> {
    let stage = Stage::new(&body.id);
    for line in &body.setup {
        let output = stage.shell(line).output().unwrap();
        assert!(output.status.success(), "{}: setup {line:?}: {output:?}", body.id);
    }
    let subject = open(&stage.fixture.root());
    let outside = [stage.fixture.outside(), stage.fixture.base().join("home")];
    let before = outside.each_ref().map(|place| State::of(place));
    // Only where it is asked for: some workspaces are larger than memory.
    let compared = body.expect.workspace_unchanged || body.expect.no_temp_left;
    let workspace = compared.then(|| State::of(&stage.fixture.root()));
    let _alone = body.expect.max_server_rss_growth_mb.map(|_| {
        let alone = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
        // Or an earlier case's peak would hide this one's.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        alone
    });
    let memory = peak_memory();
    let rivals = start_rivals(&stage, &body.during);
    let mut wrong = Vec::new();
    let mut last = (Vec::new(), Duration::ZERO);
    for call in body.call.iter().chain(&body.calls) {
        let args = call.args.clone().map(&|text| stage.fill(text));
        let started = Instant::now();
        let answers = repeated(&*subject, call, &args)?;
        last = (answers, started.elapsed());
        if let Some(expect) = &call.expect {
            wrong.extend(last.0.iter().flat_map(|answer| check_answer(&stage, expect, answer)));
        }
    }
    drop(rivals);
    let (answers, took) = last;
    let expect = &body.expect;
    if expect.count_ok.is_none() {
        wrong.extend(answers.iter().flat_map(|answer| check_answer(&stage, expect, answer)));
    }
    if let Some(all) = &expect.all {
        wrong.extend(answers.iter().flat_map(|answer| check_answer(&stage, all, answer)));
    }
    let mut claim = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    let succeeded = answers.iter().filter(|answer| answer.error_kind.is_none()).count();
    claim(expect.count_ok.is_none_or(|count| count == succeeded), format!("{succeeded} succeeded"));
    let limit = expect.max_wall_ms.map(|ms| Duration::from_millis((ms * slowness).into()));
    claim(limit.is_none_or(|limit| took <= limit), format!("took {took:?}"));
    let grown = peak_memory().saturating_sub(memory) / 1024;
    claim(
        expect.max_server_rss_growth_mb.is_none_or(|most| grown <= most),
        format!("memory grew by {grown} MiB"),
    );
    let after = outside.each_ref().map(|place| State::of(place));
    claim(!expect.outside_unchanged || before == after, format!("outside changed: {after:?}"));
    if let Some(workspace) = workspace {
        let after = State::of(&stage.fixture.root());
        claim(!expect.workspace_unchanged || workspace == after, "workspace changed".to_owned());
        let named = |name: &Path| {
            let path = stage.fixture.root().join(name);
            expect.files.keys().any(|file| Path::new(&stage.fill(file)) == path)
        };
        let new: Vec<&Path> =
            after.names().filter(|name| !workspace.has(name) && !named(name)).collect();
        claim(!expect.no_temp_left || new.is_empty(), format!("left behind: {new:?}"));
    }
    for (path, content) in &expect.files {
        let found = std::fs::read_to_string(stage.fill(path)).ok();
        claim(
            found == content.as_ref().map(|text| stage.fill(text)),
            format!("{path} holds {found:?}"),
        );
    }
    for (path, mode) in &expect.modes {
        let found = std::fs::metadata(stage.fill(path)).unwrap().permissions().mode() & 0o7777;
        claim(u32::from_str_radix(mode, 8) == Ok(found), format!("{path} has mode {found:o}"));
    }
    for line in &body.verify {
        claim(stage.shell(line).output().unwrap().status.success(), format!("verify {line:?}"));
    }
    Some(wrong)
}

fn repeated(subject: &Subject, call: &Call, args: &Args) -> Option<Vec<Answer>> {
    let times = call.repeat.unwrap_or(1);
    if !call.parallel {
        return (0..times).map(|_| subject(&call.tool, args)).collect();
    }
    std::thread::scope(|scope| {
        let callers: Vec<_> =
            (0..times).map(|_| scope.spawn(|| subject(&call.tool, args))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    })
}

fn check_answer(stage: &Stage, expect: &Expect, answer: &Answer) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut claim = |holds: bool, what: &str| {
        if !holds {
            let start: String = answer.text.chars().take(200).collect();
            wrong.push(format!("{what}: {:?} {start:?}", answer.error_kind));
        }
    };
    claim(expect.ok.is_none_or(|ok| ok == answer.error_kind.is_none()), "ok");
    let kind = answer.error_kind.unwrap_or("none");
    claim(expect.error_kind.as_ref().is_none_or(|kinds| kinds.contains(kind)), "error_kind");
    for text in &expect.must_contain {
        claim(answer.text.contains(text), text);
    }
    for text in &expect.must_not_contain {
        claim(!answer.text.contains(text), text);
    }
    if let Some(result) = &expect.result {
        let trim = |text: &str| text.trim_end_matches('\n').to_owned();
        claim(trim(&answer.text) == trim(&stage.fill(result)), "result");
    }
    for name in &expect.entries_include {
        claim(answer.entries.contains(name), name);
    }
    claim(expect.truncated.is_none_or(|truncated| truncated == answer.truncated), "truncated");
    claim(expect.max_response_bytes.is_none_or(|most| answer.text.len() <= most), "size");
    wrong
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
