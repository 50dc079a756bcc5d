//! Ignore rules against the program whose rules they are: git.

use std::process::Command;

use proptest::prelude::*;
use testkit::{Fixture, Missing, require};
use workspace_jail::FindOptions;

use crate::open;

fn git(fixture: &Fixture, arguments: &[&str]) -> Result<Vec<u8>, Missing> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(fixture.root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", fixture.base())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .map_err(|error| Missing(format!("git: {error}")))?;
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    Ok(output.stdout)
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "/a", "a/", "*", "!a", "!a/", "!/b", "b/c", "/b/", "**/c", "a/**", "*.x", "!*.x",
        "a/*", "!a/b", "c/**/a", "# a", "", "[ab]", "\\!a", "!*/", "*.x/", "/*", "b/*.x",
    ])
}

fn tree() -> impl Strategy<Value = Vec<String>> {
    let name = prop::sample::select(vec!["a", "b", "c", "f.x"]);
    let path = prop::collection::vec(name, 1..4).prop_map(|parts| parts.join("/"));
    prop::collection::vec(path, 1..9)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn what_git_would_add_is_found(
        files in tree(),
        rules in prop::collection::vec((prop::sample::select(vec!["", "a/", "b/", "a/b/"]), prop::collection::vec(line(), 0..4)), 0..4),
    ) {
        let fixture = Fixture::new("");
        if require("gitignore", git(&fixture, &["init", "-q"])).is_none() {
            return Ok(());
        }
        for file in files {
            // A directory of the same name may be there already, or a file where one is needed.
            let above = file.match_indices('/').map(|(at, _)| fixture.root().join(file.split_at(at).0));
            if !fixture.exists(&file) && !above.into_iter().any(|above| above.is_file()) {
                fixture.write(&file, b"x");
            }
        }
        for (place, lines) in rules {
            if place.is_empty() || fixture.root().join(place).is_dir() {
                fixture.write(&format!("{place}.gitignore"), lines.join("\n").as_bytes());
            }
        }
        let listed = git(&fixture, &["ls-files", "-z", "--others", "--exclude-standard"]).unwrap();
        let mut expected: Vec<&str> =
            std::str::from_utf8(&listed).unwrap().split_terminator('\0').collect();
        expected.sort_unstable();
        let found = open(&fixture).find("**", &[], FindOptions::default().limit(1000)).unwrap();
        let found: Vec<_> = found.paths.iter().map(|path| path.to_str().unwrap()).collect();
        prop_assert_eq!(found, expected);
    }
}
