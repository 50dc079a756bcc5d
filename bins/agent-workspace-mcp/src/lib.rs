//! An MCP server that gives a language model a safe place to work, as a library that a program can embed.
//!
//! The server composes four libraries and knows no trick of its own: `workspace-jail` for files,
//! `fuzzy-edit` for edits, `proc-runner` and `proc-sandbox` for commands, `token-filter` for what they
//! print. A call takes this way: [`transport`] reads a line, [`server`] finds the tool's row, [`guard`] runs it
//! on a blocking thread, [`tools`] does it, [`reply`] turns the outcome into MCP, [`audit`] keeps a record.
//!
//! Most people want the binary. Embedding is for runtimes that serve several workspaces or other transports:
//! build a [`workspace::Workspace`], hand it to [`server::Server`], and serve that over any `rmcp` transport.
//!
//! # Security
//!
//! The caller of a tool is a language model that may have read hostile text: every argument is hostile.
//! Settings come from the operator alone. See the README for what protects what.

pub mod arguments;
pub mod audit;
pub mod client_log;
pub mod command;
pub mod config;
#[cfg(feature = "container")]
pub mod contained;
#[cfg(feature = "container")]
pub mod container_shell;
pub mod disposables;
pub mod environment;
pub mod files;
pub mod guard;
#[cfg(feature = "http")]
pub mod http;
pub mod jobs;
pub mod languages;
mod locked;
pub mod output_store;
pub mod packages;
pub mod progress;
pub mod protected;
#[cfg(feature = "container")]
mod pulling;
pub mod recipes;
pub mod reply;
pub mod resources;
pub mod running;
pub mod schema;
pub mod seen;
pub mod server;
pub mod shell;
pub mod state;
pub mod stats;
pub mod tools;
pub mod transport;
pub mod workspace;
