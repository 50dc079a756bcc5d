//! The helper as a program of its own, for callers whose `main` is not theirs: plugins, bindings, tests.
//!
//! Name it with [`Helper::Program`](proc_sandbox::Helper::Program). It has no other use.

use std::process::ExitCode;

fn main() -> ExitCode {
    proc_sandbox::helper::dispatch();
    ExitCode::from(2)
}
