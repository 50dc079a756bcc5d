//! Ours and its peers of public registries, each by the variables that say where it is.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use benches::session::{Server, Task, built};

/// Where a peer is, by an environment variable.
fn place(variable: &str) -> Option<PathBuf> {
    let place = std::env::var_os(variable).map(PathBuf::from);
    if place.is_none() {
        println!("SKIPPED a peer: {variable} is not set");
    }
    place
}

/// Ours.
pub(crate) fn ours(root: &Path) -> Server {
    let arguments = ["serve", "--log-level", "error", "--workspace"].map(PathBuf::from);
    Server {
        name: "agent-workspace-mcp",
        program: built(),
        arguments: arguments.into_iter().chain([root.to_owned()]).collect(),
        variables: vec![("MAX_READ_SIZE_BYTES", "67108864".to_owned())],
        calls: |task, _| {
            Some(match task {
                Task::Read(file, lines) => {
                    ("read_file", json!({"filepath": file, "limit": lines + 1}))
                }
                Task::List(path) => ("list_directory", json!({"path": path, "limit": 100_000})),
                Task::Find(_, pattern) => ("search_workspace", json!({"pattern": pattern})),
                Task::Write(file, content) => (
                    "write_file",
                    json!({"filepath": file, "content": content, "create_only": false}),
                ),
                Task::Edit(file, old, new) => {
                    let edits = json!([{"old": old, "new": new}]);
                    ("search_and_replace", json!({"filepath": file, "edits": edits}))
                }
                Task::Search(file, pattern) => {
                    ("search_content", json!({"path": file, "pattern": pattern}))
                }
                Task::Run(words) => ("run_bash", json!({"command": words.join(" ")})),
            })
        },
    }
}

/// The words of the Node filesystem server.
fn filesystem(task: &Task, root: &Path) -> Option<(&'static str, Value)> {
    let at = |path: &str| root.join(path).display().to_string();
    Some(match task {
        Task::Read(file, _) => ("read_text_file", json!({"path": at(file)})),
        Task::List(path) => ("list_directory", json!({"path": at(path)})),
        Task::Find(path, pattern) => {
            ("search_files", json!({"path": at(path), "pattern": pattern}))
        }
        Task::Write(file, content) => ("write_file", json!({"path": at(file), "content": content})),
        Task::Edit(file, old, new) => {
            let edits = json!([{"oldText": old, "newText": new}]);
            ("edit_file", json!({"path": at(file), "edits": edits}))
        }
        Task::Search(..) | Task::Run(_) => return None,
    })
}

/// Those of the Rust one, which searches in files too.
fn rust_filesystem(task: &Task, root: &Path) -> Option<(&'static str, Value)> {
    let Task::Search(file, pattern) = task else { return filesystem(task, root) };
    let path = root.display().to_string();
    let search = json!({"path": path, "pattern": file, "query": pattern, "is_regex": true});
    Some(("search_files_content", search))
}

/// Ours first, then the peers that are here.
pub(crate) fn all(root: &Path) -> Vec<Server> {
    let mut servers = vec![ours(root)];
    let node = place("AGENT_WORKSPACE_TEST_NODE").zip(place("AGENT_WORKSPACE_TEST_PEER"));
    servers.extend(node.map(|(program, entry)| Server {
        name: "server-filesystem (Node)",
        program,
        arguments: vec![entry, root.to_owned()],
        variables: Vec::new(),
        calls: filesystem,
    }));
    servers.extend(place("AGENT_WORKSPACE_BENCH_RUST_FILESYSTEM").map(|program| Server {
        name: "rust-mcp-filesystem",
        program,
        arguments: vec!["--allow-write".into(), root.to_owned()],
        variables: Vec::new(),
        calls: rust_filesystem,
    }));
    servers.extend(place("AGENT_WORKSPACE_BENCH_SHELL_SERVER").map(|program| Server {
        name: "mcp-shell-server (Python)",
        program,
        arguments: Vec::new(),
        variables: vec![("ALLOW_COMMANDS", "true,seq".to_owned())],
        calls: |task, root| match task {
            Task::Run(words) => {
                Some(("shell_execute", json!({"command": words, "directory": root})))
            }
            _ => None,
        },
    }));
    servers
}
