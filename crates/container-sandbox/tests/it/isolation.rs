//! What a container is denied, seen from inside it.

use container_sandbox::{Container, Error, Ulimits};

use crate::harness::{given, out, sh, small, while_running, with_container, with_image};

const IMAGE: &str = "AGENT_WORKSPACE_TEST_IMAGE";

/// The first of two files that exists: cgroup v1 and v2 name the same limit differently.
fn either(v1: &str, v2: &str) -> String {
    format!("cat /sys/fs/cgroup/{v1} 2>/dev/null || cat /sys/fs/cgroup/{v2}")
}

#[tokio::test]
async fn commands_are_nobody_in_particular() {
    with_container("commands_are_nobody_in_particular", async |container| {
        assert_eq!(out(container, "id -u; id -g; id -G").await, "10001\n10001\n10001\n");
        let status = out(container, "cat /proc/self/status").await;
        for expected in [
            "CapInh:\t0000000000000000",
            "CapPrm:\t0000000000000000",
            "CapEff:\t0000000000000000",
            "CapBnd:\t0000000000000000",
            "CapAmb:\t0000000000000000",
            "NoNewPrivs:\t1",
            "Seccomp:\t2",
        ] {
            assert!(status.lines().any(|line| line == expected), "{expected}: {status}");
        }
    })
    .await;
}

#[tokio::test]
async fn there_is_no_network() {
    with_container("there_is_no_network", async |container| {
        let devices = out(container, "ls /sys/class/net").await;
        assert_eq!(devices, "lo\n");
        assert_eq!(out(container, "ip route").await, "");
    })
    .await;
}

#[tokio::test]
async fn the_root_is_read_only() {
    with_container("the_root_is_read_only", async |container| {
        for place in ["/x", "/etc/x", "/bin/x"] {
            let outcome = sh(container, &format!("touch {place}")).await;
            assert_ne!(outcome.exit_code, Some(0));
            assert!(outcome.output.to_string().contains("Read-only file system"), "{outcome:?}");
        }
        let mounts = out(container, "cat /proc/self/mounts").await;
        let root = mounts.lines().find(|line| line.split(' ').nth(1) == Some("/")).unwrap();
        assert!(root.split(' ').nth(3).unwrap().split(',').any(|option| option == "ro"), "{root}");
    })
    .await;
}

#[tokio::test]
async fn every_writable_place_is_sized_memory() {
    with_container("every_writable_place_is_sized_memory", async |container| {
        let mounts = out(container, "cat /proc/self/mounts").await;
        let option = |place: &str, name: &str| {
            let found = mounts.lines().find(|line| line.split(' ').nth(1) == Some(place));
            let found = found.unwrap_or_else(|| panic!("{place}: {mounts}"));
            assert!(found.starts_with("tmpfs "), "{found}");
            found.split(' ').nth(3).unwrap().split(',').any(|option| option == name)
        };
        assert!(option("/work", "size=16384k"), "{mounts}");
        assert!(option("/tmp", "size=8192k"), "{mounts}");
        for place in ["/work", "/tmp"] {
            assert!(option(place, "nosuid") && option(place, "nodev"), "{mounts}");
        }
        // Whatever else can be written to is memory too, and has a size.
        // Message queues aside, which the kernel itself bounds per user.
        let places = mounts.lines().filter(|line| !line.starts_with("mqueue "));
        for place in places.map(|line| line.split(' ').nth(1).unwrap()) {
            if sh(container, &format!("touch {place}/probe 2>/dev/null")).await.exit_code == Some(0)
            {
                let sized = mounts
                    .lines()
                    .find(|line| line.split(' ').nth(1) == Some(place))
                    .is_some_and(|line| line.starts_with("tmpfs ") || line.starts_with("shm "))
                    && mounts
                        .lines()
                        .any(|l| l.contains(&format!(" {place} ")) && l.contains("size="));
                assert!(sized, "{place}: {mounts}");
            }
        }
        let full = sh(container, "dd if=/dev/zero of=/work/f bs=1M count=40").await;
        assert!(full.output.to_string().contains("No space left"), "{full:?}");
    })
    .await;
}

#[tokio::test]
async fn programs_made_in_work_run_and_stay() {
    with_container("programs_made_in_work_run_and_stay", async |container| {
        assert_eq!(out(container, "pwd; echo $HOME").await, "/work\n/work\n");
        out(container, "printf '#!/bin/sh\\necho ran\\n' >made; cat made >/tmp/made").await;
        assert_eq!(out(container, "sh ./made; cp=1; cat /tmp/made | sh").await, "ran\nran\n");
    })
    .await;
}

#[tokio::test]
async fn the_memory_limit_is_in_force() {
    with_container("the_memory_limit_is_in_force", async |container| {
        let limit = out(container, &either("memory/memory.limit_in_bytes", "memory.max")).await;
        assert_eq!(limit.trim(), (128_u64 << 20).to_string());
        let greedy = sh(container, "dd if=/dev/zero of=/dev/null bs=200M count=1").await;
        assert_eq!(greedy.exit_code, Some(137), "{greedy:?}");
        assert_eq!(out(container, "echo still").await, "still\n");
    })
    .await;
}

#[tokio::test]
async fn the_pids_limit_is_in_force() {
    with_container("the_pids_limit_is_in_force", async |container| {
        let limit = out(container, &either("pids/pids.max", "pids.max")).await;
        assert_eq!(limit.trim(), "32");
        let many = sh(container, "for i in $(seq 40); do sleep 100 & done; echo all").await;
        assert_ne!(many.exit_code, Some(0), "{many:?}");
        assert!(many.output.to_string().contains("can't fork"), "{many:?}");
        assert!(many.leftovers > 10 && many.leftovers < 32, "{many:?}");
        assert!(!many.container_ended, "{many:?}");
    })
    .await;
}

#[tokio::test]
async fn the_processor_limit_is_in_force() {
    with_container("the_processor_limit_is_in_force", async |container| {
        let limit = out(container, &either("cpu/cpu.cfs_quota_us", "cpu.max")).await;
        assert_eq!(limit.split_whitespace().next(), Some("50000"));
    })
    .await;
}

#[tokio::test]
async fn process_limits_are_set_when_given() {
    let mut hardening = small();
    hardening.ulimits = Some(Ulimits { nofile: 123, nproc: 456 });
    with_image("process_limits_are_set_when_given", IMAGE, hardening, async |container| {
        let limits = out(container, "cat /proc/self/limits").await;
        let row = |name: &str| {
            let row = limits.lines().find(|row| row.starts_with(name)).unwrap();
            row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(row("Max open files")[3..5], ["123", "123"]);
        assert_eq!(row("Max processes")[2..4], ["456", "456"]);
    })
    .await;
}

#[tokio::test]
async fn nothing_of_the_host_s_environment_is_inside() {
    with_container("nothing_of_the_host_s_environment_is_inside", async |container| {
        let environment = out(container, "env").await;
        assert!(!environment.contains("PROXY-CANARY"), "{environment}");
        assert!(!environment.contains("AGENT_WORKSPACE"), "{environment}");
        let names: Vec<_> = environment.lines().filter_map(|l| l.split('=').next()).collect();
        for name in names {
            let known =
                ["PATH", "TERM", "HOME", "TMPDIR", "LANG", "HOSTNAME", "PWD", "SHLVL", "container"];
            assert!(known.contains(&name), "{environment}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_image_decides_nothing() {
    // Its entrypoint fails, its user is root, and it declares a volume.
    let test = "the_image_decides_nothing";
    with_image(test, "AGENT_WORKSPACE_TEST_VOLUME_IMAGE", small(), async |container| {
        assert_eq!(out(container, "id -u").await, "10001\n");
        let mounts = out(container, "cat /proc/self/mounts").await;
        let data = mounts.lines().find(|line| line.split(' ').nth(1) == Some("/data")).unwrap();
        assert!(data.starts_with("tmpfs ") && data.contains("size=16384k"), "{data}");
    })
    .await;
}

#[tokio::test]
async fn an_image_s_own_work_is_writable_or_refused() {
    let test = "an_image_s_own_work_is_writable_or_refused";
    let Some(engine) = crate::harness::engine(test).await else { return };
    let Some(image) = given(test, "AGENT_WORKSPACE_TEST_WORK_IMAGE") else { return };
    match Container::start(&engine, &image, &small()).await {
        Ok(container) => {
            out(&container, "echo x >/work/f").await;
            container.remove().await.unwrap();
        }
        // Older runtimes give the image's mode to what is mounted there.
        Err(error) => assert!(matches!(error, Error::WorkNotWritable), "{error:?}"),
    }
}

#[tokio::test]
async fn two_containers_share_nothing() {
    let test = "two_containers_share_nothing";
    with_container(test, async |first| {
        with_container(test, async |second| {
            out(first, "echo secret >/work/s; echo secret >/tmp/s; echo secret >/dev/shm/s").await;
            assert_eq!(out(first, "cat /work/s /tmp/s /dev/shm/s").await, "secret\n".repeat(3));
            for place in ["/work", "/tmp", "/dev/shm"] {
                assert_eq!(out(second, &format!("ls -A {place}")).await, "", "{place}");
            }
            while_running(first, "echo begun; exec sleep 4321", async || {
                // The second sees its own keeper, and nothing of the first.
                let seen = out(second, "ps -o args").await;
                assert!(seen.contains("sleep 300"), "{seen}");
                assert!(!seen.contains("sleep 4321"), "{seen}");
            })
            .await;
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn commands_cannot_end_what_keeps_the_container() {
    let test = "commands_cannot_end_what_keeps_the_container";
    with_container(test, async |container| {
        out(container, "echo kept >/work/f").await;
        for attack in ["kill -9 1", "kill -9 -1", "for p in $(seq 2 40); do kill -9 $p; done"] {
            let outcome = sh(container, attack).await;
            assert!(!outcome.container_ended, "{attack}: {outcome:?}");
        }
        assert_eq!(out(container, "cat /work/f").await, "kept\n");
    })
    .await;
}

#[tokio::test]
async fn a_limit_of_zero_never_reaches_the_engine() {
    let test = "a_limit_of_zero_never_reaches_the_engine";
    let Some(engine) = crate::harness::engine(test).await else { return };
    let Some(image) = given(test, IMAGE) else { return };
    let mut hardening = small();
    hardening.pids = 0;
    let error = Container::start(&engine, &image, &hardening).await.unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { argument: "pids", .. }), "{error:?}");
}
