//! Every process case of `proc-sandbox`, as a client would send it to the real binary, on every rung.
//!
//! A case whose layer is not active is skipped, and said; whether it is active is what `doctor` says where it is
//! started as the server is. Cases that harm the machine where the sandbox is broken run last, behind the
//! [`guard`], and only when the others of the same rung held.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::{Fixture, Missing, require};

use super::case::Case;
use super::checks::check;
use super::guard;
use super::launch::Launch;

/// Cases that run at the same time.
const AT_ONCE: usize = 4;

/// Held by whoever runs a case that wants quiet: other rungs may be under way at the same time.
static QUIET: Mutex<()> = Mutex::new(());

/// What is asked of a rung, beside that every case holds.
struct Asked {
    /// The rung that must be found.
    rung: &'static str,
    /// The least cases that must have been run of each class, those with danger apart.
    containment: usize,
    io: usize,
    lifecycle: usize,
    dangerous: usize,
}

const FULL: Asked =
    Asked { rung: "native-full", containment: 27, io: 23, lifecycle: 26, dangerous: 12 };
/// Command lines of others are seen.
const NOPROC: Asked = Asked { rung: "native-noproc", containment: 26, ..FULL };
/// So are they here; modes outside, the size of /tmp, and the number of root's processes are open too.
const LANDLOCK: Asked = Asked { rung: "landlock", containment: 25, dangerous: 9, ..FULL };

#[test]
fn as_this_user_on_the_best_rung() {
    every_case_holds("as_this_user_on_the_best_rung", &Launch::new("auto"), &FULL);
}

#[test]
fn as_this_user_without_a_proc_of_its_own() {
    let launch = Launch::new("native-noproc");
    every_case_holds("as_this_user_without_a_proc_of_its_own", &launch, &NOPROC);
}

#[test]
fn as_this_user_with_landlock_alone() {
    every_case_holds("as_this_user_with_landlock_alone", &Launch::new("landlock"), &LANDLOCK);
}

#[test]
fn as_another_user_on_the_best_rung() {
    let name = "as_another_user_on_the_best_rung";
    if require(name, root()).is_some() {
        every_case_holds(name, &Launch::new("auto").by_ordinary_user(), &FULL);
    }
}

#[test]
fn as_another_user_without_a_proc_of_its_own() {
    let name = "as_another_user_without_a_proc_of_its_own";
    if require(name, root()).is_some() {
        every_case_holds(name, &Launch::new("native-noproc").by_ordinary_user(), &NOPROC);
    }
}

#[test]
fn as_another_user_with_landlock_alone() {
    let name = "as_another_user_with_landlock_alone";
    if require(name, root()).is_some() {
        every_case_holds(name, &Launch::new("landlock").by_ordinary_user(), &LANDLOCK);
    }
}

#[test]
fn where_namespaces_are_refused_landlock_is_found() {
    let asked = Asked { containment: 2, io: 1, lifecycle: 2, dangerous: 0, ..LANDLOCK };
    let name = "where_namespaces_are_refused_landlock_is_found";
    some_cases_hold(name, &Launch::new("auto").filtered(), &asked);
}

#[test]
fn where_proc_is_covered_the_rung_without_it_is_found() {
    let name = "where_proc_is_covered_the_rung_without_it_is_found";
    if require(name, root()).is_some() {
        let asked = Asked { containment: 2, io: 1, lifecycle: 2, dangerous: 0, ..NOPROC };
        some_cases_hold(name, &Launch::new("auto").covered(), &asked);
    }
}

/// Cases that speak of what a container of an engine cannot have, or of what its image lacks.
const NOT_IN_CONTAINERS: [&str; 2] = [
    // The engine's own seccomp profile decides, and Podman's lets users have namespaces.
    "proc-userns-again",
    // The engine tells an exit code alone: 137 is what a shell makes of signal 9, and what `exit 137` gives.
    "proc-killed-by-signal",
];

/// As root, whose workspace is another's: the engine's socket is root's in tests. What harms the machine where a sandbox
/// is broken is left out, since no guard is around the engine.
#[test]
fn in_containers_of_an_engine() {
    let name = "in_containers_of_an_engine";
    let ready = root().and_then(|()| Launch::new("container").with_engine());
    let Some(launch) = require(name, ready) else { return };
    let asked = Asked { rung: "container", containment: 18, io: 20, lifecycle: 25, dangerous: 0 };
    let doctor = found(&launch, &asked).unwrap();
    let cases = cases(|case| {
        // The image is a minimal one.
        !case.danger && !case.mentions("python") && !NOT_IN_CONTAINERS.contains(&case.id.as_str())
    });
    let verdicts = judge_all(&cases, &launch, &doctor);
    settle(&cases, &verdicts, &launch);
    conclude(&tally(&cases, &verdicts), None, &launch, &asked);
}

/// Where namespaces are refused, a container comes before `landlock`.
#[test]
fn where_namespaces_are_refused_a_container_is_found() {
    let name = "where_namespaces_are_refused_a_container_is_found";
    let ready = root().and_then(|()| Launch::new("auto").filtered().with_engine());
    let Some(launch) = require(name, ready) else { return };
    let asked = Asked { rung: "container", containment: 2, io: 1, lifecycle: 2, dangerous: 0 };
    let doctor = found(&launch, &asked).unwrap();
    let cases = cases(|case| HANDFUL.contains(&case.id.as_str()) && !case.mentions("python"));
    let verdicts = judge_all(&cases, &launch, &doctor);
    settle(&cases, &verdicts, &launch);
    conclude(&tally(&cases, &verdicts), None, &launch, &asked);
}

/// What a sandbox alone refuses, whoever asks. None of it stops the server or shows what is not the case's own.
const OPEN_WITHOUT: [&str; 10] = [
    "proc-home-ssh",
    "proc-read-outside",
    "proc-chmod-outside",
    "proc-net-tcp",
    "proc-net-udp",
    "proc-net-unix-abstract",
    "proc-net-unix-path",
    "proc-tmp-private",
    "proc-dev-shm",
    "proc-fsize",
];

/// Cases that held without a sandbox would prove nothing with one.
#[test]
fn without_a_sandbox_cases_fail() {
    if require("without_a_sandbox_cases_fail", testkit::program("python3")).is_none() {
        return;
    }
    let launch = Launch::new("none");
    let cases = cases(|case| !case.danger && OPEN_WITHOUT.contains(&case.id.as_str()));
    assert_eq!(cases.len(), OPEN_WITHOUT.len(), "a case is not there any more");
    for Classed { case, .. } in &cases {
        let why = check(case, &launch, Some("none")).expect_err(&case.id);
        say(&format!("FAILS {} ({}), as it must: {why}", case.id, launch.name));
    }
}

/// A handful for machines that lack a part: that the rung was found is what they are about.
const HANDFUL: [&str; 6] = [
    "proc-read-outside",
    "proc-net-udp",
    "proc-hardlink-plant",
    "proc-stdin-protocol",
    "proc-double-fork",
    "proc-bg-holds-stdout",
];

fn root() -> Result<(), Missing> {
    let is = rustix::process::geteuid().is_root();
    is.then_some(()).ok_or_else(|| Missing("root, to be somebody else and to mount".into()))
}

/// What became of one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Verdict {
    Held,
    Skipped(String),
    Failed(String),
}

/// One case and the class that its file names.
struct Classed {
    class: String,
    case: Case,
}

fn cases(pick: impl Fn(&Case) -> bool) -> Vec<Classed> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/proc-sandbox/tests/cases");
    let all = testkit::cases::<Case>(&place).into_iter();
    let classed = all.map(|case| {
        let class = case.place.split('.').next().unwrap_or_default().to_owned();
        Classed { class, case: case.body }
    });
    classed.filter(|classed| pick(&classed.case)).collect()
}

fn every_case_holds(name: &str, launch: &Launch, asked: &Asked) {
    if guard::is_around() {
        let doctor = diagnosis(launch, asked).unwrap();
        let cases = cases(|case| case.danger);
        let verdicts = cases.iter().map(|one| (one.case.id.clone(), judge(one, launch, &doctor)));
        return guard::report(&verdicts.collect());
    }
    let Some(doctor) = require(name, diagnosis(launch, asked)) else { return };
    let (harmless, dangerous) = (cases(|case| !case.danger), cases(|case| case.danger));
    let mut verdicts = judge_all(&harmless, launch, &doctor);
    settle(&harmless, &verdicts, launch);
    let guarded = {
        // Processes are counted for a user over the whole machine, and not all of them can be seen behind a guard:
        // the fork bomb of another rung would leave no room for this one's server.
        let _alone = QUIET.lock().unwrap_or_else(PoisonError::into_inner);
        require(name, guard::run(name))
    };
    if let Some(guarded) = &guarded {
        verdicts.extend(guarded.clone());
        settle(&dangerous, &verdicts, launch);
    }
    let dangerous = guarded.map(|_| tally(&dangerous, &verdicts));
    conclude(&tally(&harmless, &verdicts), dangerous.as_ref(), launch, asked);
}

fn some_cases_hold(name: &str, launch: &Launch, asked: &Asked) {
    let Some(doctor) = require(name, diagnosis(launch, asked)) else { return };
    let cases = cases(|case| HANDFUL.contains(&case.id.as_str()));
    assert_eq!(cases.len(), HANDFUL.len(), "a case of the handful is not there any more");
    let verdicts = judge_all(&cases, launch, &doctor);
    settle(&cases, &verdicts, launch);
    conclude(&tally(&cases, &verdicts), None, launch, asked);
}

/// What `doctor` says, after a look at what the cases themselves need.
fn diagnosis(launch: &Launch, asked: &Asked) -> Result<Value, Missing> {
    // Without it many cases would find nothing because nothing was tried.
    testkit::program("python3")?;
    let doctor = found(launch, asked)?;
    let python: Case = serde_json::from_value(json!({
        "id": "python-is-there", "title": "", "source": "", "why": "", "setup": [],
        "call": {"tool": "run_bash", "args": {"command": "python3 -c 'print(6*7)'"}},
        "expect": {"exit_code": 0, "stdout": "42\n"},
    }))
    .unwrap();
    let here = check(&python, launch, None);
    assert_eq!(here, Ok(()), "{}: cases need python3", launch.name);
    Ok(doctor)
}

/// What `doctor` says, if it is the rung that is asked for.
fn found(launch: &Launch, asked: &Asked) -> Result<Value, Missing> {
    let fixture = Fixture::new("");
    launch.hand_over(&fixture);
    let doctor = launch.doctor(&fixture);
    if doctor["rung"] != asked.rung {
        return Err(Missing(format!(
            "{}: the rung {}; there is {}",
            launch.name, asked.rung, doctor["rung"]
        )));
    }
    Ok(doctor)
}

/// Judges a few at once, and after them those that want quiet, one by one.
fn judge_all(cases: &[Classed], launch: &Launch, doctor: &Value) -> BTreeMap<String, Verdict> {
    let (quiet, usual): (Vec<_>, Vec<_>) = cases.iter().partition(|one| one.case.wants_quiet());
    let verdicts = Mutex::new(BTreeMap::new());
    for (queue, at_once) in [(usual, AT_ONCE), (quiet, 1)] {
        let _alone = (at_once == 1).then(|| QUIET.lock().unwrap_or_else(PoisonError::into_inner));
        let queue = Mutex::new(queue.into_iter());
        let next = || queue.lock().unwrap().next();
        let work = || {
            while let Some(one) = next() {
                let verdict = judge(one, launch, doctor);
                verdicts.lock().unwrap().insert(one.case.id.clone(), verdict);
            }
        };
        std::thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    }
    verdicts.into_inner().unwrap()
}

fn judge(one: &Classed, launch: &Launch, doctor: &Value) -> Verdict {
    assert!(guard::is_around() || !one.case.danger, "{} without a guard", one.case.id);
    match missing(&one.case, launch, doctor) {
        Some(reason) => Verdict::Skipped(reason),
        None => match check(&one.case, launch, doctor["rung"].as_str()) {
            Ok(()) => Verdict::Held,
            Err(why) => Verdict::Failed(why),
        },
    }
}

/// Why a case says nothing here, if it does not.
fn missing(case: &Case, launch: &Launch, doctor: &Value) -> Option<String> {
    // Changing modes outside is a layer of its own, which the case does not name.
    let also = (case.id == "proc-chmod-outside").then_some("fs_metadata_outside");
    case.requires.iter().map(String::as_str).chain(also).find_map(|name| match name {
        "env_scrub" => None,
        "root_setup" => (!launch.is_root()).then(|| "its setup needs root".to_owned()),
        "case_insensitive_fs" => Some("no case-insensitive file system".to_owned()),
        _ => {
            let layers = doctor["layers"].as_array().unwrap();
            let layer = layers.iter().find(|layer| layer["name"] == name);
            let layer = layer.unwrap_or_else(|| panic!("doctor does not know the layer {name}"));
            (layer["state"] != "active").then(|| format!("{name}: {}", layer["detail"]))
        }
    })
}

/// Says what was skipped, and ends the test where cases failed that are not known to.
fn settle(cases: &[Classed], verdicts: &BTreeMap<String, Verdict>, launch: &Launch) {
    let mut failed = Vec::new();
    for Classed { case, class } in cases {
        let id = case.id.as_str();
        match &verdicts[id] {
            Verdict::Skipped(why) => say(&format!("SKIPPED {id} ({}): {why}", launch.name)),
            Verdict::Failed(why) => failed.push(format!("{id} ({class}): {why}")),
            Verdict::Held => {}
        }
    }
    let count = failed.len();
    assert!(failed.is_empty(), "{}: {count} failed:\n{}", launch.name, failed.join("\n"));
}

/// Run and skipped by class.
type Tally = BTreeMap<String, [usize; 2]>;

fn tally(cases: &[Classed], verdicts: &BTreeMap<String, Verdict>) -> Tally {
    let mut tally = Tally::new();
    for one in cases {
        let skipped = matches!(verdicts.get(&one.case.id), None | Some(Verdict::Skipped(_)));
        tally.entry(one.class.clone()).or_default()[usize::from(skipped)] += 1;
    }
    tally
}

/// Says how much was run, and that it was no less than asked.
fn conclude(harmless: &Tally, dangerous: Option<&Tally>, launch: &Launch, asked: &Asked) {
    let name = &launch.name;
    for (kind, tally) in [("harmless", Some(harmless)), ("dangerous", dangerous)] {
        for (class, [ran, skipped]) in tally.into_iter().flatten() {
            say(&format!("{name:<40} {kind:<9} {class:<11} {ran:>3} ran {skipped:>3} skipped"));
        }
    }
    let ran = |class: &str| harmless.get(class).map_or(0, |[ran, _]| *ran);
    assert!(ran("containment") >= asked.containment, "{name}: {harmless:?}");
    assert!(ran("io") >= asked.io, "{name}: {harmless:?}");
    assert!(ran("lifecycle") >= asked.lifecycle, "{name}: {harmless:?}");
    if let Some(dangerous) = dangerous {
        let ran: usize = dangerous.values().map(|[ran, _]| ran).sum();
        assert!(ran >= asked.dangerous, "{name}: {dangerous:?}");
    }
}

/// Not `eprintln`: the test runner would keep it to itself.
fn say(text: &str) {
    let said = writeln!(std::io::stderr(), "{text}");
    assert!(said.is_ok(), "what was skipped must be said");
}
