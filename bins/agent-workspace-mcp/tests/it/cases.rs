//! The case files of the libraries, run through the server's tools.

mod case;
mod checks;
mod edit;
mod guard;
mod jail;
mod launch;
mod process;
mod stage;
mod talk;
