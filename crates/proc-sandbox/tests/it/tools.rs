//! What people run: shells, compilers, interpreters work in the strictest sandbox.

use crate::Place;

/// A sandbox that finds the toolchains of the one who runs the tests.
fn workshop(files: &str) -> Place {
    let home = std::env::var_os("HOME").unwrap();
    Place::with(files, |policy| policy.home(&home))
}

/// Checks a script that must work wherever its program is installed.
fn check(program: &str, files: &str, script: &str, expected: &str) {
    let place = workshop(files);
    let found = place.open(&format!("command -v {program}")).outcome.end;
    let missing = testkit::Missing(format!("the program {program}"));
    let probe = if found == proc_runner::End::Exited(0) { Ok(()) } else { Err(missing) };
    if testkit::require(&format!("tools::{program}"), probe).is_none() {
        return;
    }
    for sandbox in place.all() {
        // What one run makes must not be in the way of the next.
        let script = format!("rm -rf .git target a; {script}");
        assert_eq!(place.confined_by(sandbox, &script).succeeded(), expected, "{}", sandbox.rung());
    }
}

#[test]
fn python() {
    let script = "python3 -c 'import os, sys, json, subprocess; \
                  print(subprocess.run([\"echo\", \"sub\"], capture_output=True, text=True).stdout, end=\"\"); \
                  print(os.cpu_count() > 0)'";
    check("python3", "", script, "sub\nTrue\n");
}

#[test]
fn node() {
    let script = "node -e 'console.log(require(\"child_process\").execSync(\"echo sub\").toString().trim()); \
                  new (require(\"worker_threads\").Worker)(\"console.log(1+1)\", {eval: true})'";
    check("node", "", script, "sub\n2\n");
}

#[test]
fn java() {
    let files = "//- A.java\nclass A { public static void main(String[] a) { System.out.println(\"java\"); } }\n";
    check("java", files, "java A.java 2>&1 | tail -n 1", "java\n");
}

#[test]
fn c_compiler() {
    let files = "//- a.c\n#include <stdio.h>\nint main(void) { puts(\"c\"); return 0; }\n";
    check("cc", files, "cc -o a a.c && ./a", "c\n");
}

#[test]
fn git() {
    let script = "git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m one && \
                  git log --format=%s";
    check("git", "", script, "one\n");
}

#[test]
fn rust() {
    let files = "//- Cargo.toml\n[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                 //- src/main.rs\nfn main() { println!(\"rust\"); }\n";
    check("cargo", files, "cargo run -q --offline 2>&1", "rust\n");
}

#[test]
fn rust_with_a_dependency_from_the_operators_cache() {
    // This crate's own dependency, which is in the cache or this test would not have been built.
    let files = "//- Cargo.toml\n[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
                 [dependencies]\nlibc = \"0.2\"\n\
                 //- src/main.rs\nfn main() { println!(\"{}\", libc::SIGKILL); }\n";
    check("cargo", files, "cargo run -q --offline 2>&1", "9\n");
}

#[test]
fn shell_idioms() {
    let script = "cat <<< here; diff <(echo a) <(echo a) && echo same; \
                  tmp=$(mktemp) && echo x > $tmp && cat $tmp; [[ 1 == 1 ]] && echo bash";
    check("bash", "", script, "here\nsame\nx\nbash\n");
}
