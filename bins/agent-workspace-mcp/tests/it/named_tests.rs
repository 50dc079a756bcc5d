//! Every test that a page names is there: a promise whose test was renamed or removed is found out.
//!
//! A name is `module::function` between backticks, its missing parts written `…` or `*`. Non-goal: whether the test
//! proves the promise, which is for whoever reads both.

use std::path::{Path, PathBuf};

use crate::documented::{pages, root};

/// A test function, and the modules that it stands in, outermost first.
struct Known {
    modules: Vec<String>,
    function: String,
}

/// Sources below a folder, and not what was built.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// The tests of one file. A test is a function below an attribute that ends in `test]`, whatever stands between.
fn tests_in(file: &Path, text: &str) -> Vec<Known> {
    let below = file.strip_prefix(root()).unwrap().with_extension("");
    let modules: Vec<_> = below.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    let mut known = Vec::new();
    let mut follows = false;
    for line in text.lines().map(str::trim_start) {
        follows |= line.starts_with("#[") && line.contains("test]");
        let line = line.strip_prefix("async ").unwrap_or(line);
        if let Some(rest) = line.strip_prefix("fn ")
            && std::mem::take(&mut follows)
        {
            let end = rest.find(['(', '<']).unwrap_or(rest.len());
            let function = rest.get(..end).unwrap().to_owned();
            known.push(Known { modules: modules.clone(), function });
        }
    }
    known
}

/// Whether a name is one that a pattern means: its parts follow each other in the name, and fill it.
fn fits(pattern: &str, name: &str) -> bool {
    let parts: Vec<_> = pattern.split(['…', '*']).collect();
    let [first, .., last] = parts.as_slice() else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap();
    }
    rest.ends_with(last)
}

/// Whether a name that a page shows is that of a test, or of a module that holds tests.
fn is_known(named: &str, known: &[Known]) -> bool {
    let segments: Vec<_> = named.split("::").filter(|part| *part != "tests").collect();
    let Some((function, modules)) = segments.split_last() else { return false };
    known.iter().any(|it| {
        let ends_with = |end: &[&str]| {
            it.modules.len() >= end.len()
                && it.modules.iter().rev().zip(end.iter().rev()).all(|(a, b)| a == b)
        };
        (ends_with(modules) && fits(function, &it.function)) || ends_with(&segments)
    })
}

/// What a page shows between backticks that reads like the name of a test.
fn named(page: &str) -> Vec<&str> {
    let mut inside_block = false;
    let mut names = Vec::new();
    for line in page.lines() {
        inside_block ^= line.starts_with("```");
        if inside_block {
            continue;
        }
        let quoted = line.split('`').skip(1).step_by(2);
        names.extend(quoted.filter(|text| {
            let plain =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:*…".contains(c);
            text.contains("::") && !text.starts_with("std::") && text.chars().all(plain)
        }));
    }
    names
}

#[test]
fn every_named_test_is_there() {
    let mut files = Vec::new();
    for group in ["crates", "bins"] {
        sources(&root().join(group), &mut files);
    }
    let known: Vec<_> = files
        .iter()
        .flat_map(|file| tests_in(file, &std::fs::read_to_string(file).unwrap()))
        .collect();
    let mut unknown = Vec::new();
    let mut count = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for name in named(&text) {
            count += 1;
            if !is_known(name, &known) {
                unknown.push(format!("{}: {name}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(unknown.is_empty(), "named and not there: {unknown:#?}");
    assert!(count > 50, "the pages name {count} tests: are they read at all?");
}

#[test]
fn a_name_that_is_none_is_told_apart() {
    let text =
        "#[test]\nfn first_one() {}\nfn no_test() {}\n#[tokio::test]\nasync fn second() {}\n";
    let known = tests_in(&root().join("crates/a/tests/it/deep.rs"), text);
    for name in ["deep::first_one", "deep::first_…", "it::deep::*_one", "deep::second", "it::deep"]
    {
        assert!(is_known(name, &known), "{name}");
    }
    for name in ["deep::no_test", "deep::first", "other::first_one", "deep::…_two", "other"] {
        assert!(!is_known(name, &known), "{name}");
    }
    assert_eq!(named("see `a::b_…` and `Type::new`, `std::fs`\n```\n`c::d`\n```\n"), ["a::b_…"]);
}
