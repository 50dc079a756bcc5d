//! The program: the sandbox's helper when it is started as one, else one command of the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A confined command is started through this same binary; nothing else may run before that is known.
    proc_sandbox::helper::dispatch();
    agent_workspace_mcp::command::main()
}
