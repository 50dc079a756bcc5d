//! The registry: one row for each tool. Listing, schema, leniency, dispatch and documentation derive from it.

mod execute_code;
mod initialize_sandbox;
mod list_directory;
mod read_file;
mod read_output;
mod run_bash;
mod search_and_replace;
mod search_content;
mod search_workspace;
mod stop_job;
mod stop_sandbox;
mod write_file;

use rmcp::model::JsonObject;

use crate::reply::{Failure, Reply};
use crate::schema::{Argument, Kind};
use crate::workspace::Session;

/// What a tool does to the world, from which its hints follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changes.
    Reads,
    /// Files of the workspace change.
    Writes,
    /// A command runs.
    Runs,
}

/// Whether a text that is written has to parse.
const VALIDATE: Argument = Argument::optional(
    "validate",
    Kind::Choice(&["auto", "off"]),
    "auto refuses Python, JSON, TOML and YAML that would not parse (default auto)",
);

/// A file's version as a caller sends it back.
fn parse_sha256(text: &str) -> Result<workspace_jail::Sha256, Failure> {
    text.trim().parse().map_err(|_| {
        Failure::invalid_args(
            "argument 'expected_sha256' must be the 64 hex digits of an earlier answer",
        )
    })
}

/// One tool.
#[derive(Debug)]
pub struct Row {
    /// Its name on the wire.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What a model reads about it.
    pub description: &'static str,
    /// What it does to the world.
    pub effect: Effect,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// Does it.
    pub call: fn(&Session, JsonObject) -> Result<Reply, Failure>,
}

/// All tools, in the order of `tools/list`.
pub static ROWS: &[Row] = &[
    execute_code::ROW,
    initialize_sandbox::ROW,
    list_directory::ROW,
    read_file::ROW,
    read_output::ROW,
    run_bash::ROW,
    search_and_replace::ROW,
    search_content::ROW,
    search_workspace::ROW,
    stop_job::ROW,
    stop_sandbox::ROW,
    write_file::ROW,
];

/// The tools that are offered: all, or those that change nothing.
pub fn offered(read_only: bool) -> impl Iterator<Item = &'static Row> {
    ROWS.iter().filter(move |row| !read_only || row.effect == Effect::Reads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Presence;

    #[test]
    fn rows_are_in_name_order_with_names_that_every_client_takes() {
        let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
        assert!(names.is_sorted(), "{names:?}");
        for name in names {
            assert!(name.len() <= 24 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        }
    }

    #[test]
    fn every_argument_is_described_and_no_alias_is_taken_twice() {
        fn check(tool: &str, arguments: &[Argument]) {
            let mut names: Vec<_> = arguments
                .iter()
                .flat_map(|argument| {
                    [argument.name].into_iter().chain(argument.aliases.iter().copied())
                })
                .collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{tool}: {names:?}");
            for argument in arguments {
                assert!(!argument.description.is_empty(), "{tool}: {}", argument.name);
                if let Kind::Objects(fields) = argument.kind {
                    check(tool, fields);
                }
            }
        }
        for row in ROWS {
            check(row.name, row.arguments);
            assert!(row.description.len() <= 1500, "{} is cut by clients", row.name);
        }
    }

    #[test]
    fn a_read_only_server_offers_the_readers_alone() {
        let names: Vec<_> = offered(true).map(|row| row.name).collect();
        assert_eq!(
            names,
            ["list_directory", "read_file", "read_output", "search_content", "search_workspace"]
        );
        assert!(offered(true).all(|row| {
            row.arguments.iter().all(|argument| argument.presence != Presence::RequiredByTool)
        }));
    }
}
