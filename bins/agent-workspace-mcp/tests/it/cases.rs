//! The case files of the libraries, run through the server's tools.

mod edit;
mod jail;
