//! What stands around cases that harm the machine where the sandbox is broken.
//!
//! The test runs itself again, in process and mount namespaces of its own and in cgroups that bound processes and
//! memory. Nothing is mounted over parts of /proc there: that would keep the sandbox from its best rung. The
//! cgroups lie in the harness's own, or in the one above it, so that limits from further up go on to hold.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::Missing;

use super::process::Verdict;

/// Where the verdicts go, in the process behind the guard.
const REPORT: &str = "AGENT_WORKSPACE_CASES_GUARDED";
const MAX_PROCESSES: &str = "1500";
/// Long after the slowest case; what lives behind the guard ends with it.
const MAX_SECONDS: &str = "600";
/// 4 GiB.
const MAX_MEMORY: &str = "4294967296";

/// Whether this process is behind the guard.
pub(super) fn is_around() -> bool {
    std::env::var_os(REPORT).is_some()
}

/// Hands the verdicts to the process before the guard.
pub(super) fn report(verdicts: &BTreeMap<String, Verdict>) {
    let place = std::env::var_os(REPORT).unwrap();
    std::fs::write(place, serde_json::to_vec(verdicts).unwrap()).unwrap();
}

/// Runs the test of this name again behind the guard; its verdicts.
pub(super) fn run(name: &str) -> Result<BTreeMap<String, Verdict>, Missing> {
    if !rustix::process::geteuid().is_root() {
        return Err(Missing("root, for a guard around dangerous cases".into()));
    }
    let groups = Groups::new(name)?;
    let place = tempfile::TempDir::with_prefix("guard-").unwrap();
    let report = place.path().join("verdicts");
    let join = "for group; do [ \"$group\" = -- ] && break; echo $$ > \"$group/cgroup.procs\"; done
        while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"";
    let mut command = Command::new("/bin/sh");
    command
        .args(["-ec", join, "sh"])
        .args(&groups.0)
        .args(["--", "timeout", "--signal=KILL", MAX_SECONDS])
        .args(["unshare", "--pid", "--fork", "--mount-proc", "--mount", "--kill-child"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("cases::process::{name}"), "--nocapture"])
        .env(REPORT, &report)
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    drop(groups);
    let said = String::from_utf8_lossy(&output.stderr);
    match std::fs::read(report) {
        Ok(verdicts) => Ok(serde_json::from_slice(&verdicts).unwrap()),
        Err(_) if said.contains("unshare:") => Err(Missing(format!("a guard: {said}"))),
        Err(error) => panic!("{name} behind the guard: {error}: {} {said}", output.status),
    }
}

/// Fresh cgroups, removed at the end.
struct Groups(Vec<PathBuf>);

impl Groups {
    fn new(purpose: &str) -> Result<Self, Missing> {
        let table = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let name = format!("agent-workspace-{purpose}-{}", std::process::id());
        let version_1 = |controller: &str| {
            let own = table.lines().find_map(|line| {
                let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|one| one == controller).then_some(path)
            })?;
            let place = Path::new("/sys/fs/cgroup").join(controller);
            let own = place.join(own.trim_start_matches('/'));
            own.is_dir().then(|| own.join(&name))
        };
        let version_2 = || {
            let own = table.lines().find_map(|line| line.strip_prefix("0::/"))?;
            // Only a group without processes hands its controllers on, so beside the own one, not below.
            let root = Path::new("/sys/fs/cgroup");
            root.join("cgroup.controllers").is_file().then(|| match Path::new(own).parent() {
                None => root.join(&name),
                Some(above) => root.join(above).join(&name),
            })
        };
        let mut groups = Self(Vec::new());
        match (version_1("pids"), version_1("memory"), version_2()) {
            (Some(pids), Some(memory), _) => {
                groups.add(pids, &[("pids.max", MAX_PROCESSES)])?;
                groups.add(memory, &[("memory.limit_in_bytes", MAX_MEMORY)])?;
            }
            (_, _, Some(both)) => {
                groups.add(both, &[("pids.max", MAX_PROCESSES), ("memory.max", MAX_MEMORY)])?;
            }
            _ => return Err(Missing("cgroups that bound processes and memory".into())),
        }
        Ok(groups)
    }

    fn add(&mut self, place: PathBuf, limits: &[(&str, &str)]) -> Result<(), Missing> {
        let missing = |error| Missing(format!("a cgroup {}: {error}", place.display()));
        std::fs::create_dir(&place).map_err(missing)?;
        self.0.push(place.clone());
        limits
            .iter()
            .try_for_each(|(file, limit)| std::fs::write(place.join(file), limit).map_err(missing))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for group in &self.0 {
            // A group is busy until the last of its processes is gone for good.
            let deadline = Instant::now() + Duration::from_secs(5);
            while let Err(error) = std::fs::remove_dir(group) {
                if Instant::now() > deadline {
                    assert!(std::thread::panicking(), "{} stays: {error}", group.display());
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
