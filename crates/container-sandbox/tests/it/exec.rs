//! One command: what it is given, what it says, how it fails to start.

use std::time::Duration;

use container_sandbox::{Command, Error};

use crate::harness::{LONG, line, out, sh, with_container};

#[tokio::test]
async fn an_exit_code_is_an_outcome() {
    with_container("an_exit_code_is_an_outcome", async |container| {
        for (text, code) in [("true", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137)] {
            let outcome = sh(container, text).await;
            assert_eq!(outcome.exit_code, Some(code), "{text}");
            assert!(!outcome.timed_out && !outcome.container_ended && outcome.leftovers == 0);
        }
    })
    .await;
}

#[tokio::test]
async fn words_variables_and_directory_arrive_as_they_were() {
    with_container("words_variables_and_directory_arrive_as_they_were", async |container| {
        let script = "pwd; printf '%s|' \"$@\"; printf '%s' \"$ODD\"";
        let odd = "a b'\"$(x)\\\n\t\u{e9}*";
        let command = Command::new(["sh", "-c", script, "sh", odd, "", "-n"], LONG)
            .env("ODD", odd)
            .cwd("/tmp");
        let outcome = container.exec(&command).await.unwrap();
        assert_eq!(outcome.output.to_string(), format!("/tmp\n{odd}||-n|{odd}"));
    })
    .await;
}

#[tokio::test]
async fn standard_input_is_at_its_end() {
    with_container("standard_input_is_at_its_end", async |container| {
        let outcome = container.exec(&Command::new(["cat"], LONG)).await.unwrap();
        assert_eq!((outcome.exit_code, outcome.timed_out), (Some(0), false));
        assert_eq!(outcome.output.to_string(), "");
    })
    .await;
}

#[tokio::test]
async fn files_stay_from_command_to_command() {
    with_container("files_stay_from_command_to_command", async |container| {
        out(container, "echo one >/work/f").await;
        assert_eq!(out(container, "cat /work/f").await, "one\n");
    })
    .await;
}

#[tokio::test]
async fn both_streams_are_kept_and_order_on_request() {
    with_container("both_streams_are_kept_and_order_on_request", async |container| {
        let text = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
        let mixed = out(container, text).await;
        let mut lines: Vec<_> = mixed.lines().collect();
        lines.sort_unstable();
        let mut expected: Vec<_> =
            (1..=5).flat_map(|i| [format!("o{i}"), format!("e{i}")]).collect();
        let in_order = expected.join("\n") + "\n";
        expected.sort_unstable();
        assert_eq!(lines, expected);
        let outcome = container.exec(&line(text, LONG).interleaved()).await.unwrap();
        assert_eq!(outcome.output.to_string(), in_order);
    })
    .await;
}

#[tokio::test]
async fn long_output_keeps_both_ends_and_the_sink_sees_all() {
    with_container("long_output_keeps_both_ends_and_the_sink_sees_all", async |container| {
        let mut seen = Vec::new();
        let command = line("seq 100000", LONG).keep(10, 14);
        let outcome =
            container.exec_with(&command, |piece| seen.extend_from_slice(piece)).await.unwrap();
        let whole = (1..=100_000).map(|i| i.to_string() + "\n").collect::<Vec<_>>().concat();
        assert!(seen == whole.as_bytes(), "the sink saw {} of {} bytes", seen.len(), whole.len());
        assert_eq!(outcome.output.head, b"1\n2\n3\n4\n5\n");
        assert_eq!(outcome.output.tail, b"\n99999\n100000\n");
        assert_eq!(outcome.output.omitted, whole.len() as u64 - 24);
    })
    .await;
}

#[tokio::test]
async fn output_of_any_bytes_comes_back() {
    with_container("output_of_any_bytes_comes_back", async |container| {
        let outcome = sh(container, "printf '\\000\\001\\002\\377\\r\\n\\033'").await;
        assert_eq!(outcome.output.head, b"\0\x01\x02\xff\r\n\x1b");
    })
    .await;
}

#[tokio::test]
async fn what_cannot_start_is_named() {
    with_container("what_cannot_start_is_named", async |container| {
        for program in ["no-such-program", "/no/such", "/etc", "/etc/passwd"] {
            let error = container.exec(&Command::new([program], LONG)).await.unwrap_err();
            let named =
                matches!(&error, Error::ProgramMissing { program: named } if named == program);
            assert!(named, "{program}: {error:?}");
        }
        let error =
            container.exec(&Command::new(["true"], LONG).cwd("/no/such")).await.unwrap_err();
        let named =
            matches!(&error, Error::DirectoryMissing { directory } if directory == "/no/such");
        assert!(named, "{error:?}");
        // A program's own codes are not taken for that.
        for code in [125, 126, 127] {
            let outcome = sh(container, &format!("echo not found; exit {code}")).await;
            assert_eq!(outcome.exit_code, Some(code));
            assert_eq!(outcome.output.to_string(), "not found\n");
        }
    })
    .await;
}

#[tokio::test]
async fn what_could_not_arrive_is_refused() {
    with_container("what_could_not_arrive_is_refused", async |container| {
        let none: [&str; 0] = [];
        let long = "x".repeat(128 << 10);
        for command in [
            Command::new(none, LONG),
            Command::new([""], LONG),
            Command::new(["true", "a\0b"], LONG),
            Command::new(["true", &long], LONG),
            Command::new(["true"], LONG).env("A=B", "x"),
            Command::new(["true"], LONG).env("", "x"),
            Command::new(["true"], LONG).env("A", "\0"),
            Command::new(["true"], LONG).env("A", &long),
            Command::new(["true"], LONG).cwd("work"),
            Command::new(["true"], LONG).cwd(""),
            Command::new(["true"], Duration::ZERO),
        ] {
            let error = container.exec(&command).await.unwrap_err();
            assert!(matches!(error, Error::InvalidArgument { .. }), "{command:?}: {error:?}");
        }
        // The longest word that can arrive, does.
        let longest = "x".repeat((128 << 10) - 1);
        let command = Command::new(["printf", "%s", &longest], LONG);
        let outcome = container.exec(&command).await.unwrap();
        assert_eq!(outcome.output.to_string(), longest);
    })
    .await;
}
