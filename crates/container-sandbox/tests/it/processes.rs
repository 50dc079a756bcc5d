//! Ends: of commands that run too long, of what they leave, and of containers under them.

use std::time::Duration;

use container_sandbox::{Command, Container, Error, ExecOutcome};

use crate::harness::{LONG, line, out, sh, small, while_running, with_container, with_image};

/// A plain child, one in its own session, a daemon twice forked, and one that ignores the usual signals.
const FAMILY: &str = "sleep 1000 & setsid sleep 1001 & sh -c 'setsid sh -c \"sleep 1002 &\" &' ; \
    sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1003; done' & ";

/// Long enough for a command to begin on a loaded machine.
const SHORT: Duration = Duration::from_secs(4);

/// What runs as the commands' user, as a later command sees it: itself and the warder, nothing else.
async fn assert_nothing_runs(container: &Container) {
    let seen = out(container, "ps -o user,args").await;
    let ours: Vec<_> = seen
        .lines()
        .filter(|line| line.starts_with("10001"))
        .filter(|line| !line.contains("ps -o user,args") && !line.contains("while read -r"))
        .collect();
    assert!(ours.is_empty(), "{seen}");
}

async fn timed_out(container: &Container, text: &str) -> ExecOutcome {
    let outcome = container.exec(&line(text, SHORT)).await.unwrap();
    assert!(outcome.timed_out, "{text}: {outcome:?}");
    assert_eq!(outcome.exit_code, None, "{text}");
    assert!(outcome.duration >= SHORT && outcome.duration < LONG, "{text}: {outcome:?}");
    outcome
}

#[tokio::test]
async fn a_timeout_leaves_no_survivor_and_keeps_the_rest() {
    let test = "a_timeout_leaves_no_survivor_and_keeps_the_rest";
    with_container(test, async |container| {
        out(container, "echo kept >/work/f").await;
        let outcome = timed_out(container, &format!("{FAMILY} echo begun; sleep 1004")).await;
        assert_eq!(outcome.output.to_string(), "begun\n");
        assert!(!outcome.container_ended, "{outcome:?}");
        assert_nothing_runs(container).await;
        assert_eq!(out(container, "cat /work/f").await, "kept\n");
    })
    .await;
}

#[tokio::test]
async fn a_command_that_hops_from_process_to_process_is_caught() {
    let test = "a_command_that_hops_from_process_to_process_is_caught";
    with_container(test, async |container| {
        let hop = "export HOP='echo x >/work/beat; setsid sh -c \"$HOP\" & exit'; sh -c \"$HOP\"; sleep 1000";
        let outcome = timed_out(container, hop).await;
        assert!(!outcome.container_ended, "{outcome:?}");
        // A heart that still beats would write the file again.
        out(container, "test -e /work/beat; : >/work/beat; i=0; while [ $i -lt 200 ]; do true; i=$((i+1)); done").await;
        assert_eq!(out(container, "cat /work/beat").await, "");
        assert_nothing_runs(container).await;
    })
    .await;
}

#[tokio::test]
async fn what_a_command_leaves_running_is_ended_and_counted() {
    let test = "what_a_command_leaves_running_is_ended_and_counted";
    with_container(test, async |container| {
        let outcome = sh(container, &format!("{FAMILY} echo done; exit 5")).await;
        assert_eq!(outcome.exit_code, Some(5));
        assert_eq!(outcome.output.to_string(), "done\n");
        assert!(outcome.leftovers >= 4, "{outcome:?}");
        assert!(!outcome.container_ended && outcome.duration < LONG, "{outcome:?}");
        assert_nothing_runs(container).await;
    })
    .await;
}

#[tokio::test]
async fn closing_its_output_does_not_end_a_command() {
    let test = "closing_its_output_does_not_end_a_command";
    with_container(test, async |container| {
        let outcome = sh(container, "exec >&- 2>&-; sleep 1; exit 7").await;
        assert_eq!(outcome.exit_code, Some(7));
        timed_out(container, "exec >&- 2>&-; sleep 1000").await;
        assert_nothing_runs(container).await;
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_output_does_not_outrun_its_time() {
    with_container("a_flood_of_output_does_not_outrun_its_time", async |container| {
        let mut bytes = 0;
        let command = line("cat /dev/zero", SHORT).keep(1000, 1000);
        let outcome = container.exec_with(&command, |piece| bytes += piece.len()).await.unwrap();
        assert!(outcome.timed_out && outcome.duration < LONG, "{:?}", outcome.duration);
        assert_eq!(outcome.output.head.len() + outcome.output.tail.len(), 2000);
        assert_eq!(outcome.output.omitted, bytes as u64 - 2000);
        assert_nothing_runs(container).await;
    })
    .await;
}

#[tokio::test]
async fn a_full_pids_limit_does_not_protect_what_fills_it() {
    with_container("a_full_pids_limit_does_not_protect_what_fills_it", async |container| {
        let fill = "i=0; while [ $i -lt 40 ]; do (exec sleep 1000) & i=$((i+1)); done";
        let outcome = timed_out(container, &format!("({fill}) 2>/dev/null; exec sleep 1000")).await;
        assert!(!outcome.container_ended, "{outcome:?}");
        assert_nothing_runs(container).await;
    })
    .await;
}

#[tokio::test]
async fn killing_the_warder_saves_nobody() {
    with_container("killing_the_warder_saves_nobody", async |container| {
        out(container, "echo kept >/work/f").await;
        let outcome = timed_out(container, "kill -9 -1; setsid sleep 1000 & sleep 1001").await;
        assert!(!outcome.container_ended, "{outcome:?}");
        assert_nothing_runs(container).await;
        assert_eq!(out(container, "cat /work/f").await, "kept\n");
    })
    .await;
}

#[tokio::test]
async fn a_command_that_kills_every_warder_does_not_live_on() {
    let test = "a_command_that_kills_every_warder_does_not_live_on";
    with_container(test, async |container| {
        let outcome = timed_out(container, "while :; do kill -9 -1; done").await;
        // The new warder may strike before it is struck; as a rule it does not, and the container goes.
        if outcome.container_ended {
            let error = container.exec(&line("true", LONG)).await.unwrap_err();
            assert!(matches!(error, Error::Gone), "{error:?}");
            assert_eq!(error.to_string(), "the container has ended");
        } else {
            assert_nothing_runs(container).await;
        }
    })
    .await;
}

#[tokio::test]
async fn without_a_shell_in_the_image_a_timeout_ends_the_container() {
    let test = "without_a_shell_in_the_image_a_timeout_ends_the_container";
    with_image(test, "AGENT_WORKSPACE_TEST_BARE_IMAGE", small(), async |container| {
        let ended = container.exec(&Command::new(["sleep", "0"], LONG)).await.unwrap();
        assert_eq!((ended.exit_code, ended.container_ended), (Some(0), false));
        let error = container.exec(&line("true", LONG)).await.unwrap_err();
        assert!(matches!(error, Error::ProgramMissing { .. }), "{error:?}");
        let outcome = container.exec(&Command::new(["sleep", "1000"], SHORT)).await.unwrap();
        assert!(outcome.timed_out && outcome.container_ended, "{outcome:?}");
    })
    .await;
}

#[tokio::test]
async fn a_dropped_command_is_ended_by_clear_or_by_the_next() {
    let test = "a_dropped_command_is_ended_by_clear_or_by_the_next";
    with_container(test, async |container| {
        for clear in [true, false] {
            let family = format!("{FAMILY} echo begun; sleep 1004");
            while_running(container, &family, async || {}).await;
            if clear {
                container.clear().await.unwrap();
            }
            assert_nothing_runs(container).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_container_that_ends_under_a_command_is_an_outcome_once() {
    let test = "a_container_that_ends_under_a_command_is_an_outcome_once";
    let mut hardening = small();
    hardening.lifetime = Duration::from_secs(8);
    with_image(test, "AGENT_WORKSPACE_TEST_IMAGE", hardening, async |container| {
        let outcome = sh(container, "echo begun; sleep 1000").await;
        assert!(outcome.container_ended && !outcome.timed_out, "{outcome:?}");
        assert_eq!(outcome.exit_code, None);
        assert_eq!(outcome.output.to_string(), "begun\n");
        let error = container.exec(&line("true", LONG)).await.unwrap_err();
        assert!(matches!(error, Error::Gone), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_removed_container_is_gone() {
    with_container("a_removed_container_is_gone", async |container| {
        container.remove().await.unwrap();
        container.remove().await.unwrap();
        let error = container.exec(&line("true", LONG)).await.unwrap_err();
        assert!(matches!(error, Error::Gone), "{error:?}");
        let error = container.clear().await.unwrap_err();
        assert!(matches!(error, Error::Gone), "{error:?}");
    })
    .await;
}
