//! What a container is denied, and how that is said to an engine and read back from it.
//!
//! Invariants: what may be widened has a field, closed by default: the network, and one shared directory. There is none
//! for a capability, another mount of the host, a port. A limit of zero, which engines read as "no limit", is refused. What the engine says it made is
//! compared with what was asked ([`Hardening::missing`]); engines drop limits their kernel lacks and only warn.
//! Non-goals: profiles for seccomp or `AppArmor`; the engine's default ones stay in force.

use std::collections::HashMap;
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, MountPoint,
    ResourcesUlimits,
};

use crate::engine::EngineKind;
use crate::error::Error;
use crate::image::Image;
use crate::owner::Owner;
use crate::share::Share;

/// The limits of a container. Made by [`Hardening::new`], then adjusted field by field.
///
/// Always in force, without a field: no capabilities, `no-new-privileges`, a read-only root, no mount of the host but
/// the shared directory, an init that reaps, the engine's own seccomp profile, no log on the host's disk, the image's
/// entrypoint and health check unused, its declared volumes covered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hardening {
    /// Whose container it is.
    pub owner: Owner,
    /// User id of the commands; not 0. The id above it keeps the container alive, out of reach of the commands.
    /// Default 10001.
    pub uid: u32,
    /// Group id of the commands; not 0. Default 10001.
    pub gid: u32,
    /// Default [`Network::Off`].
    pub network: Network,
    /// A directory of the host in it; default none. Needs `sh` in the image.
    pub share: Option<Share>,
    /// Processes and threads at once, all told. Default 256.
    pub pids: u32,
    /// Bytes of memory, files in the writable places included, which must fit; no swap on top. Default 2 GiB.
    pub memory: u64,
    /// Processor time in thousandths of a processor. Default 2000.
    pub cpu_millis: u32,
    /// Bytes of `/tmp`. Default 64 MiB.
    pub tmp: u64,
    /// Bytes of `/work`, the home and the working directory of commands. Default 512 MiB.
    pub work: u64,
    /// After this the container ends and is removed by the engine, whatever became of this process. At least
    /// a second. Default 24 hours.
    pub lifetime: Duration,
    /// Per-process limits; `None`, the default, leaves the engine's own.
    pub ulimits: Option<Ulimits>,
}

/// What commands reach of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Network {
    /// Loopback alone.
    #[default]
    Off,
    /// What the engine gives a container that asks for nothing: a bridge, as a rule, and whatever can be reached from
    /// there, services of the host among it.
    Engine,
}

/// Resource limits of each process. Both or neither: given `nofile` alone, Podman chooses an `nproc` itself,
/// which it then may not set where it lacks `CAP_SYS_RESOURCE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ulimits {
    /// Open files of a process.
    pub nofile: u32,
    /// Processes of the user id, counted over the whole machine: every container that uses the same id shares it.
    pub nproc: u32,
}

impl Hardening {
    /// The defaults, for containers of `owner`.
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            uid: 10_001,
            gid: 10_001,
            network: Network::Off,
            share: None,
            pids: 256,
            memory: 2 << 30,
            cpu_millis: 2000,
            tmp: 64 << 20,
            work: 512 << 20,
            lifetime: Duration::from_hours(24),
            ulimits: None,
        }
    }

    /// `uid:gid` of the commands.
    pub(crate) fn command_user(&self) -> String {
        format!("{}:{}", self.uid, self.gid)
    }

    /// Refuses values that would lift a limit or that an engine cannot hold.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let invalid = |argument, reason| Err(Error::InvalidArgument { argument, reason });
        // A rootless engine may hold fewer, and says so when the container is started.
        for (argument, id) in [("uid", self.uid), ("gid", self.gid)] {
            if id == 0 || id > MAX_ID {
                return invalid(argument, "is not between 1 and 2147483646");
            }
        }
        let limits = [
            ("pids", u64::from(self.pids)),
            ("memory", self.memory),
            ("cpu_millis", u64::from(self.cpu_millis)),
            ("tmp", self.tmp),
            ("work", self.work),
        ];
        for (argument, value) in limits {
            if value == 0 {
                return invalid(argument, "is 0, which an engine takes for no limit");
            }
            if i64::try_from(value).is_err() {
                return invalid(argument, "is beyond what an engine can hold");
            }
        }
        if self.tmp.saturating_add(self.work) > self.memory {
            // Files there are memory of the container: full, they would have its processes killed.
            return invalid("memory", "is less than tmp and work together");
        }
        if self.lifetime.as_secs() == 0 || self.lifetime.as_secs() > MAX_LIFETIME {
            return invalid("lifetime", "is not between a second and a year");
        }
        self.share.as_ref().map_or(Ok(()), Share::check)
    }

    /// The request for a container of `image`.
    pub(crate) fn request(
        &self,
        kind: EngineKind,
        image: &Image,
        name: &str,
    ) -> ContainerCreateBody {
        ContainerCreateBody {
            image: Some(image.id.clone()),
            user: Some(format!("{}:{}", self.uid + 1, self.gid + 1)),
            // The image's own entrypoint never runs: this process only keeps the container, and ends it in time.
            entrypoint: Some(vec!["sleep".into()]),
            cmd: Some(vec![self.lifetime.as_secs().to_string()]),
            env: Some(vec![format!("HOME={WORK}"), "TMPDIR=/tmp".into(), "LANG=C.UTF-8".into()]),
            working_dir: Some(WORK.into()),
            // Only against one that is there: Podman without systemd logs an error for each, even for none.
            healthcheck: image.has_health_check.then(|| HealthConfig {
                test: Some(vec!["NONE".into()]),
                ..HealthConfig::default()
            }),
            labels: Some(self.owner.labels(name)),
            host_config: Some(self.host_config(kind, image)),
            ..ContainerCreateBody::default()
        }
    }

    fn host_config(&self, kind: EngineKind, image: &Image) -> HostConfig {
        HostConfig {
            network_mode: (self.network == Network::Off).then(|| "none".into()),
            mounts: self.share.as_ref().map(Share::mounts),
            cap_drop: Some(vec!["ALL".into()]),
            security_opt: Some(vec!["no-new-privileges".into()]),
            privileged: Some(false),
            readonly_rootfs: Some(true),
            tmpfs: Some(self.writable_places(kind, image)),
            pids_limit: Some(i64::from(self.pids)),
            memory: Some(bytes(self.memory)),
            memory_swap: Some(bytes(self.memory)),
            nano_cpus: Some(i64::from(self.cpu_millis) * 1_000_000),
            init: Some(true),
            auto_remove: Some(true),
            ipc_mode: Some("private".into()),
            log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
            ulimits: self.ulimits.map(|limits| {
                let both = [("nofile", limits.nofile), ("nproc", limits.nproc)];
                both.map(|(name, value)| ResourcesUlimits {
                    name: Some(name.into()),
                    soft: Some(i64::from(value)),
                    hard: Some(i64::from(value)),
                })
                .into()
            }),
            ..HostConfig::default()
        }
    }

    /// Every writable directory is memory, sized. A volume the image declares would be a place on the host's
    /// disk without any limit; a tmpfs over it keeps the engine from making it.
    fn writable_places(&self, kind: EngineKind, image: &Image) -> HashMap<String, String> {
        // Docker's default is noexec; programs built in the sandbox must run. Podman's default copies what the
        // image has there, its mode included, which closes the directory to other users than root.
        let copying = match kind {
            EngineKind::Docker => "",
            EngineKind::Podman => ",notmpcopyup",
        };
        let place = |size: u64| format!("rw,exec,nosuid,nodev,mode=1777,size={size}{copying}");
        let mut places: HashMap<_, _> =
            image.volumes.iter().map(|path| (path.clone(), place(self.work))).collect();
        if kind == EngineKind::Podman {
            // Podman adds these to a read-only root by itself, without a size.
            places.insert("/run".into(), place(self.tmp));
            places.insert("/var/tmp".into(), place(self.tmp));
        }
        places.insert("/tmp".into(), place(self.tmp));
        places.insert(WORK.into(), place(self.work));
        places
    }

    /// What the engine's own description of the container lacks of this.
    pub(crate) fn missing(&self, made: &HostConfig, mounts: &[MountPoint]) -> Vec<&'static str> {
        let security = made.security_opt.as_deref().unwrap_or_default();
        let unconfined = |option: &String| option.contains("unconfined");
        let checks = [
            (
                "network isolation",
                match self.network {
                    Network::Off => made.network_mode.as_deref() == Some("none"),
                    Network::Engine => made.network_mode.as_deref() != Some("host"),
                },
            ),
            ("read-only root", made.readonly_rootfs == Some(true)),
            (
                "dropped capabilities",
                made.cap_add.as_deref().unwrap_or_default().is_empty()
                    && !made.cap_drop.as_deref().unwrap_or_default().is_empty(),
            ),
            ("no-new-privileges", security.iter().any(|o| o.starts_with("no-new-privileges"))),
            ("seccomp profile", !security.iter().any(unconfined)),
            ("unprivileged mode", made.privileged != Some(true)),
            ("pids limit", made.pids_limit == Some(i64::from(self.pids))),
            ("memory limit", made.memory == Some(bytes(self.memory))),
            ("cpu limit", made.nano_cpus == Some(i64::from(self.cpu_millis) * 1_000_000)),
            (
                "absence of host mounts",
                match &self.share {
                    None => {
                        made.binds.as_deref().unwrap_or_default().is_empty() && mounts.is_empty()
                    }
                    Some(share) => share.is_told(mounts),
                },
            ),
        ];
        checks.into_iter().filter(|(_, held)| !held).map(|(name, _)| name).collect()
    }
}

/// The directory commands start in and own.
pub(crate) const WORK: &str = "/work";

/// Above it no signed number holds the next one, which the keeper has.
const MAX_ID: u32 = i32::MAX as u32 - 1;

const MAX_LIFETIME: u64 = 366 * 24 * 60 * 60;

/// Values were checked to fit by [`Hardening::check`].
fn bytes(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardening() -> Hardening {
        Hardening::new(Owner::new("test", "1").unwrap())
    }

    fn image() -> Image {
        Image { id: "sha256:0".into(), volumes: vec!["/data".into()], has_health_check: true }
    }

    #[test]
    fn what_is_asked_for_is_not_missing() {
        for kind in [EngineKind::Docker, EngineKind::Podman] {
            let made = hardening().host_config(kind, &image());
            assert_eq!(hardening().missing(&made, &[]), [""; 0]);
        }
    }

    #[test]
    fn every_protection_an_engine_drops_is_missed() {
        let check = |drop: fn(&mut HostConfig), expected: &str| {
            let mut made = hardening().host_config(EngineKind::Docker, &image());
            drop(&mut made);
            assert_eq!(hardening().missing(&made, &[]), [expected]);
        };
        check(|made| made.network_mode = Some("bridge".into()), "network isolation");
        check(|made| made.readonly_rootfs = Some(false), "read-only root");
        check(|made| made.cap_drop = None, "dropped capabilities");
        check(|made| made.cap_add = Some(vec!["NET_RAW".into()]), "dropped capabilities");
        check(|made| made.security_opt = None, "no-new-privileges");
        check(
            |made| made.security_opt.as_mut().unwrap().push("seccomp=unconfined".into()),
            "seccomp profile",
        );
        check(|made| made.privileged = Some(true), "unprivileged mode");
        check(|made| made.pids_limit = Some(0), "pids limit");
        check(|made| made.memory = Some(0), "memory limit");
        check(|made| made.nano_cpus = None, "cpu limit");
        check(|made| made.binds = Some(vec!["/:/host".into()]), "absence of host mounts");
    }

    #[test]
    fn nothing_of_the_image_runs_or_writes_to_the_disk() {
        let request = hardening().request(EngineKind::Docker, &image(), "name");
        assert_eq!(request.image.as_deref(), Some("sha256:0"));
        assert_eq!(request.user.as_deref(), Some("10002:10002"));
        assert_eq!(request.entrypoint, Some(vec!["sleep".to_owned()]));
        assert_eq!(request.healthcheck.unwrap().test, Some(vec!["NONE".to_owned()]));
        let host = request.host_config.unwrap();
        assert_eq!(host.log_config.unwrap().typ.as_deref(), Some("none"));
        let places = host.tmpfs.unwrap();
        assert!(places["/data"].contains("size=536870912"), "{places:?}");
        assert!(!places.contains_key("/run"), "{places:?}");
    }

    #[test]
    fn limits_of_processes_are_sent_both_or_not_at_all() {
        let mut hardening = hardening();
        assert_eq!(hardening.host_config(EngineKind::Podman, &image()).ulimits, None);
        hardening.ulimits = Some(Ulimits { nofile: 512, nproc: 700 });
        let sent = hardening.host_config(EngineKind::Podman, &image()).ulimits.unwrap();
        let sent: Vec<_> =
            sent.iter().map(|u| (u.name.as_deref().unwrap(), u.hard.unwrap())).collect();
        assert_eq!(sent, [("nofile", 512), ("nproc", 700)]);
    }

    #[test]
    fn values_that_lift_a_limit_are_refused() {
        let check = |spoil: fn(&mut Hardening), expected: &str| {
            let mut hardening = hardening();
            spoil(&mut hardening);
            match hardening.check() {
                Err(Error::InvalidArgument { argument, .. }) => assert_eq!(argument, expected),
                other => panic!("{expected}: {other:?}"),
            }
        };
        check(|h| h.uid = 0, "uid");
        check(|h| h.uid = u32::MAX, "uid");
        check(|h| h.pids = 0, "pids");
        check(|h| h.memory = 0, "memory");
        check(|h| h.memory = u64::MAX, "memory");
        check(|h| h.cpu_millis = 0, "cpu_millis");
        check(|h| h.tmp = 0, "tmp");
        check(|h| h.work = 0, "work");
        check(|h| h.work = h.memory, "memory");
        check(|h| h.lifetime = Duration::from_millis(999), "lifetime");
        check(|h| h.lifetime = Duration::MAX, "lifetime");
        assert!(hardening().check().is_ok());
    }
}
