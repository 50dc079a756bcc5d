//! Files of disposable sandboxes by `sandbox_id`: the same answers from a directory of this machine and from a container.

use serde_json::{Value, json};

use crate::place::{Backend, Place};

/// Both backends, and both kinds of image.
fn each(test: &str, check: impl Fn(&mut Place)) {
    for backend in [Backend::Native, Backend::Small, Backend::Usual] {
        if let Some(mut place) = Place::open(test, backend, &["--max-write-bytes", "3000000"]) {
            check(&mut place);
            let left = place.directories().len();
            place.ok("stop_sandbox", json!({}));
            assert!(left <= 1 && place.directories().is_empty(), "{:?}", place.directories());
            let secret = place.fixture.read("secret.txt");
            assert_eq!(secret, "SECRET-OF-THE-WORKSPACE\n", "{backend:?}");
            assert_eq!(std::fs::read_dir(place.fixture.root()).unwrap().count(), 1, "{backend:?}");
        }
    }
}

#[test]
fn files_go_in_and_come_out() {
    each("files_go_in_and_come_out", |place| {
        let written = place
            .call("write_file", json!({"path": "in/data.csv", "content": "a,b\n1,2\n\\n%d\0end"}));
        assert_eq!(written.text, "Successfully wrote 16 bytes to in/data.csv");
        assert_eq!(written.facts["created"], true);
        let answer =
            place.code("sh", "wc -c < in/data.csv; seq 1 250 > out.txt; mkdir d; ln -s d l");
        assert!(answer.text.starts_with("[Exit code: 0]\n16\n"), "{answer:?}");
        assert!(
            answer.text.ends_with(&format!(
                "[files made or changed: out.txt (892 bytes); read_file(sandbox_id=\"{}\") reads them]",
                place.id
            )),
            "{answer:?}"
        );
        assert_eq!(answer.facts["changed_files"], 1, "{answer:?}");

        let page =
            place.call("read_file", json!({"filepath": "out.txt", "offset": 247, "limit": 2}));
        assert_eq!(page.text, "248\n249\n[lines 248-249 of 250; continue with offset=249]");
        let known = page.facts["sha256"].clone();
        let again = json!({"filepath": "out.txt", "if_changed_since": known});
        assert_eq!(place.ok("read_file", again), "unchanged");
        let listed = place.ok("list_directory", json!({}));
        assert_eq!(listed, "[D] d\n[D] in\n[L] l\n[F] out.txt\n[F] snippet.sh\n".trim_end());

        // Another version, over the old one, and only over that.
        let over = json!({"filepath": "out.txt", "content": "new\n", "expected_sha256": known});
        let answer = place.call("write_file", over.clone());
        assert_eq!(
            (&answer.facts["created"], answer.is_error),
            (&json!(false), false),
            "{answer:?}"
        );
        place.refused("write_file", over, "stale");
        // What a tool wrote is not the code's doing.
        let answer = place.code("sh", "cat out.txt");
        assert_eq!(answer.text, "[Exit code: 0]\nnew\n");
    });
}

#[test]
fn a_path_that_leads_out_and_what_is_no_file_are_refused() {
    each("a_path_that_leads_out_and_what_is_no_file_are_refused", |place| {
        let made = "ln -s /etc/passwd absolute; ln -s .. up; ln -s ../../../../etc/passwd far; ln -s loop loop; \
                    mkfifo fifo; mkdir dir; echo x > file; ln -s file link; ln -s gone dangling; \
                    printf 'a\\0b' > binary; echo y > dir/inner; ln -s dir/inner deep";
        place.code("sh", made);
        for (path, kind) in [
            ("..", "outside_workspace"),
            ("../x", "outside_workspace"),
            ("dir/../../x", "outside_workspace"),
            ("/etc/passwd", "outside_workspace"),
            ("absolute", "outside_workspace"),
            ("up/x", "outside_workspace"),
            ("far", "outside_workspace"),
            ("loop", "symlink_loop"),
            ("gone", "not_found"),
            ("gone/x", "not_found"),
            ("dangling", "not_found"),
            ("file/x", "not_a_directory"),
            ("file/", "not_a_directory"),
            ("dir", "is_directory"),
            ("dir/", "is_directory"),
            ("fifo", "not_a_regular_file"),
            ("binary", "binary_file"),
            ("a\0b", "invalid_path"),
        ] {
            place.refused("read_file", json!({"filepath": path}), kind);
        }
        for (path, kind) in [
            ("../x", "outside_workspace"),
            ("up", "outside_workspace"),
            ("absolute", "outside_workspace"),
            ("file", "not_a_directory"),
            ("gone", "not_found"),
        ] {
            place.refused("list_directory", json!({"path": path}), kind);
        }
        let over = |path: &str| json!({"filepath": path, "content": "z\n", "create_only": false});
        for (path, kind) in [
            ("../x", "outside_workspace"),
            ("up/x", "outside_workspace"),
            ("absolute", "outside_workspace"),
            ("dir", "is_directory"),
            ("fifo", "not_a_regular_file"),
            ("file/x", "not_a_directory"),
            ("loop", "symlink_loop"),
        ] {
            place.refused("write_file", over(path), kind);
        }
        for taken in ["file", "dir", "fifo", "dangling", "link"] {
            place.refused(
                "write_file",
                json!({"filepath": taken, "content": "z"}),
                "already_exists",
            );
        }
        // That it leads out comes first, whatever is there.
        let out = json!({"filepath": "absolute", "content": "z"});
        place.refused("write_file", out, "outside_workspace");
        let bad = json!({"filepath": "new/deep/bad.json", "content": "{"});
        place.refused("write_file", bad, "syntax_invalid");
        let big = json!({"filepath": "big", "content": "x".repeat(3_000_001)});
        place.refused("write_file", big, "too_large");
        place.refused(
            "read_file",
            json!({"filepath": "file", "sandbox_id": "sandbox-0"}),
            "unknown_id",
        );

        // A link that stays inside is followed, and survives a write. Nothing refused has left anything.
        assert_eq!(place.ok("read_file", json!({"filepath": "link"})), "x\n");
        assert_eq!(place.ok("read_file", json!({"filepath": "deep"})), "y\n");
        place.ok("write_file", over("link"));
        let answer = place.code(
            "sh",
            "cat file; test -L link && echo still; ls -A . | wc -l; ls new 2>&1 | wc -l",
        );
        assert!(answer.text.starts_with("[Exit code: 0]\nz\nstill\n"), "{answer:?}");
        assert!(!place.ok("list_directory", json!({})).contains("new"));
    });
}

#[test]
fn names_of_any_bytes_are_one_entry_each() {
    each("names_of_any_bytes_are_one_entry_each", |place| {
        place.code(
            "sh",
            "echo x > 'two\nlines'; echo y > -n; mkdir '*' node_modules .hidden; echo z > '*/ [D] f'; echo $? > \"a'b\"; \
             echo z > 'not//one//' || true; echo w > '$(id)'",
        );
        let listed = place.ok("list_directory", json!({}));
        assert_eq!(
            listed,
            "[D] *\n[D] .hidden\n[F] $(id)\n[F] -n\n[F] a'b\n[F] snippet.sh\n[F] two\\nlines\n\
             [left out: node_modules; list one by its name]"
        );
        let page = place.ok("list_directory", json!({"offset": 1, "limit": 2}));
        assert!(
            page.starts_with("[D] .hidden\n[F] $(id)\n[entries 2-3 of 7; continue with offset=3]"),
            "{page}"
        );
        for (path, text) in
            [("two\nlines", "x\n"), ("-n", "y\n"), ("*/ [D] f", "z\n"), ("$(id)", "w\n")]
        {
            assert_eq!(place.ok("read_file", json!({"filepath": path})), text);
        }
        assert_eq!(place.ok("list_directory", json!({"path": "*"})), "[F]  [D] f");
        assert_eq!(
            place.ok("list_directory", json!({"path": "node_modules"})),
            "[empty directory]"
        );
    });
}

#[test]
fn a_large_content_arrives_whole() {
    each("a_large_content_arrives_whole", |place| {
        let content = "é\\0% 'x'\n".repeat(270_000);
        let arguments = json!({"filepath": "a/b/large.txt", "content": content});
        let answer = place.call("write_file", arguments);
        assert_eq!(answer.facts["bytes"], content.len(), "{answer:?}");
        let page = place.call("read_file", json!({"filepath": "a/b/large.txt", "offset": 269_999}));
        assert_eq!(page.text, "é\\0% 'x'\n");
        assert_eq!(page.facts["sha256"], answer.facts["sha256"]);
    });
}

#[test]
fn a_picture_is_shown_and_other_binary_is_not() {
    each("a_picture_is_shown_and_other_binary_is_not", |place| {
        let made = place.code(
            "sh",
            "printf '\\211PNG\\r\\n\\032\\n\\000\\000\\000\\rIHDR' > plot.png; \
             { printf '\\377\\330\\377\\340\\000'; head -c 3500000 /dev/zero; } > big.jpg; \
             printf '\\211PNG\\000' > not.png",
        );
        assert!(made.text.contains("plot.png (16 bytes)"), "{made:?}");
        let arguments = json!({"filepath": "plot.png", "sandbox_id": place.id});
        let result = place.raw("read_file", arguments);
        let expected: Value = json!([
            {"type": "text", "text": "[image/png, 16 bytes]"},
            {"type": "image", "data": "iVBORw0KGgoAAAANSUhEUg==", "mimeType": "image/png"},
        ]);
        assert_eq!((&result["content"], &result["isError"]), (&expected, &json!(false)));
        assert_eq!(result["_meta"]["agent-workspace/result"]["mime_type"], "image/png");
        let text = place.refused("read_file", json!({"filepath": "big.jpg"}), "too_large");
        assert!(text.contains("a picture of up to 3500000 bytes"), "{text}");
        let text = place.refused("read_file", json!({"filepath": "not.png"}), "binary_file");
        assert!(text.contains("appears to be binary; look at it with execute_code"), "{text}");
    });
}

#[test]
fn what_code_changes_is_named_and_what_it_leaves_alone_is_not() {
    each("what_code_changes_is_named_and_what_it_leaves_alone_is_not", |place| {
        let first = place.code("sh", "mkdir d; for i in a b c; do echo $i > d/$i; done");
        assert!(
            first.text.contains("changed: d/a (2 bytes), d/b (2 bytes), d/c (2 bytes);"),
            "{first:?}"
        );
        let second =
            place.code("sh", "echo longer > d/b; rm d/c; mkdir .venv; echo x > .venv/x; exit 3");
        assert!(
            second.text.starts_with("[Exit code: 3]\n[files made or changed: d/b (7 bytes); "),
            "{second:?}"
        );
        assert_eq!(place.code("sh", "cat d/b").text, "[Exit code: 0]\nlonger\n");
        let many = place.code("sh", "for i in $(seq 100 140); do : > f$i; done");
        assert!(many.text.contains("f119 (0 bytes) and 21 more; read_file("), "{many:?}");
        // After a timeout too: what there is by then may be what was wanted.
        let arguments =
            json!({"language": "sh", "code": "echo half > half; sleep 60", "timeout": 1});
        let late = place.call("execute_code", arguments);
        assert!(late.is_error && late.text.contains("changed: half (5 bytes)"), "{late:?}");
        let crowd = place.code("sh", "i=0; while [ $i -lt 5100 ]; do : > g$i; i=$((i+1)); done");
        assert!(
            crowd.text.contains("[over 5000 files are in the sandbox; list_directory("),
            "{crowd:?}"
        );
    });
}

#[test]
fn a_file_is_read_while_code_runs() {
    each("a_file_is_read_while_code_runs", |place| {
        place.ok("write_file", json!({"filepath": "f", "content": "here\n"}));
        let code =
            json!({"language": "sh", "code": "sleep 2; echo done > f", "sandbox_id": place.id});
        let params = json!({"name": "execute_code", "arguments": code});
        let request =
            json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": params});
        place.server.send(&request.to_string());
        // A container does one thing after another, a directory does not.
        let text = place.ok("read_file", json!({"filepath": "f"}));
        assert!(text == "here\n" || text == "done\n", "{text}");
    });
}
