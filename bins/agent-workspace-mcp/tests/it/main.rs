//! The server's behaviour, seen from its clients. Tests that stand for a row of the behaviour table carry its name.
#![expect(
    clippy::disallowed_methods,
    clippy::needless_pass_by_value,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests look at the machine as it is, end where something is not as it should be, and hand over json!() values"
)]

mod browser;
mod harness;
mod jobs;
mod place;

mod beside_tools;
mod cases;
mod client_config;
mod clients;
mod command_line;
mod container;
mod container_backend;
mod documented;
mod embedded;
mod faults;
mod http;
mod image;
mod list_directory;
mod named_tests;
mod network;
mod packages;
mod protocol;
mod read_file;
mod read_output;
mod rows;
mod run_bash;
mod sandbox_files;
mod sandbox_limits;
mod sandboxes;
mod search_and_replace;
mod search_content;
mod search_workspace;
mod soak;
mod stats_page;
mod tools_page;
mod validation;
mod write_file;
