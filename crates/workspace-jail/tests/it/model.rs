//! Random plans of operations against a map from paths to contents.

use std::collections::BTreeMap;

use proptest::prelude::*;
use testkit::{Fixture, Snapshot};
use workspace_jail::{Error, FindOptions, Jail};

use crate::open;

/// Paths that meet: files, the same names as directories, and a link to each kind.
const PATHS: [&str; 10] =
    ["a", "b", "d/a", "d/b", "d/e/a", "a/x", "l/a", "./d/../b", "../outside/victim.txt", "k"];

#[derive(Debug, Clone)]
enum Step {
    Create(usize, u8),
    Replace(usize, u8),
    Remove(usize),
    Rename(usize, usize),
    Read(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    prop_oneof![
        (path(), any::<u8>()).prop_map(|(path, content)| Step::Create(path, content)),
        (path(), any::<u8>()).prop_map(|(path, content)| Step::Replace(path, content)),
        path().prop_map(Step::Remove),
        // Not the link: its text means something else elsewhere.
        (0..PATHS.len() - 1, path()).prop_map(|(from, to)| Step::Rename(from, to)),
        path().prop_map(Step::Read),
    ]
}

/// The files, by their path after links; directories are those that were ever made.
#[derive(Debug, Default)]
struct Model {
    files: BTreeMap<String, Vec<u8>>,
    directories: Vec<String>,
    /// `k` is still the link to `d/a`.
    link: bool,
}

type Outcome = Result<Option<Vec<u8>>, &'static str>;

impl Model {
    /// The path after links, or the refusal. `l` leads to `d`.
    fn place(&self, path: &str, follow: bool) -> Result<String, &'static str> {
        let path = match path {
            "../outside/victim.txt" => return Err("outside_workspace"),
            "./d/../b" => "b",
            "l/a" => "d/a",
            "k" if follow && self.link => "d/a",
            path => path,
        };
        Ok(path.to_owned())
    }

    fn is_directory(&self, path: &str) -> bool {
        self.directories.iter().any(|directory| directory == path)
    }

    /// Whether a file stands where a directory is needed.
    fn blocked(&self, place: &str) -> bool {
        parents(place).iter().any(|parent| self.files.contains_key(parent))
    }

    fn missing(&self, place: &str) -> bool {
        parents(place).iter().any(|parent| !self.is_directory(parent))
    }

    fn put(&mut self, place: String, content: Vec<u8>) {
        for parent in parents(&place) {
            if !self.is_directory(&parent) {
                self.directories.push(parent);
            }
        }
        self.files.insert(place, content);
    }

    fn run(&mut self, step: &Step) -> Outcome {
        match step {
            Step::Read(path) => {
                let place = self.existing(PATHS[*path], true)?;
                Ok(self.files.get(&place).cloned())
            }
            Step::Remove(path) => {
                let place = self.existing(PATHS[*path], false)?;
                if self.is_link(&place) {
                    self.link = false;
                } else {
                    self.files.remove(&place);
                }
                Ok(None)
            }
            Step::Create(path, content) | Step::Replace(path, content) => {
                let place = self.place(PATHS[*path], true)?;
                if self.blocked(&place) {
                    return Err("not_a_directory");
                }
                let create = matches!(step, Step::Create(..));
                let taken = self.files.contains_key(&place)
                    || self.is_directory(&place)
                    || (PATHS[*path] == "k" && self.link);
                if create && taken {
                    return Err("already_exists");
                }
                if self.is_directory(&place) {
                    return Err("is_directory");
                }
                self.put(place, vec![*content]);
                Ok(None)
            }
            Step::Rename(from, to) => {
                let from = self.existing(PATHS[*from], false)?;
                let place = self.place(PATHS[*to], true)?;
                if self.blocked(&place) {
                    return Err("not_a_directory");
                }
                let taken = self.files.contains_key(&place)
                    || self.is_directory(&place)
                    || (PATHS[*to] == "k" && self.link);
                if taken {
                    return Err("already_exists");
                }
                let content = self.files.remove(&from).unwrap_or_default();
                self.put(place, content);
                Ok(None)
            }
        }
    }

    fn existing(&self, path: &str, follow: bool) -> Result<String, &'static str> {
        let place = self.place(path, follow)?;
        if self.blocked(&place) {
            return Err("not_a_directory");
        }
        if self.is_directory(&place) {
            return Err("is_directory");
        }
        let is_link = self.is_link(&place);
        if self.missing(&place) || !(is_link || self.files.contains_key(&place)) {
            return Err("not_found");
        }
        Ok(place)
    }

    /// Whether this is the link's own place: no file is ever put there while it stands.
    fn is_link(&self, place: &str) -> bool {
        self.link && place == "k"
    }
}

fn parents(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(at, _)| path.split_at(at).0.to_owned()).collect()
}

fn run(jail: &Jail, step: &Step) -> Outcome {
    let done = |result: Result<_, Error>| match result {
        Ok(()) => Ok(None),
        Err(error) => Err(error.kind()),
    };
    match step {
        Step::Create(path, content) => done(jail.create(PATHS[*path], &[*content]).map(drop)),
        Step::Replace(path, content) => {
            done(jail.replace(PATHS[*path], &[*content], None).map(drop))
        }
        Step::Remove(path) => done(jail.remove(PATHS[*path])),
        Step::Rename(from, to) => done(jail.rename(PATHS[*from], PATHS[*to])),
        Step::Read(path) => match jail.read(PATHS[*path], 9) {
            Ok(snapshot) => Ok(Some(snapshot.bytes)),
            Err(error) => Err(error.kind()),
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_jail_does_what_the_model_does(steps in prop::collection::vec(step(), 1..25)) {
        let fixture = Fixture::new("//- d/\n");
        fixture.symlink("l", "d");
        fixture.symlink("k", "d/a");
        let outside = Snapshot::of(&fixture.outside());
        let jail = open(&fixture);
        let mut model = Model { directories: vec!["d".to_owned()], link: true, ..Model::default() };
        for step in &steps {
            let expected = model.run(step);
            prop_assert_eq!(run(&jail, step), expected, "{:?} in {:?}", step, model);
        }
        let found = jail.find("**", &[], FindOptions::default()).unwrap();
        let found: Vec<_> = found.paths.iter().map(|path| path.to_str().unwrap()).collect();
        let mut expected: Vec<_> = model.files.keys().map(String::as_str).collect();
        expected.push("l");
        expected.extend(model.link.then_some("k"));
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(outside, Snapshot::of(&fixture.outside()));
    }
}
