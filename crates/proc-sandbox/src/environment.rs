//! Names of variables that commands may be given: none of them carries a secret or makes a program run code.
//!
//! Confinement cannot take back what an environment gave away, so it is built from nothing and these names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Names that pass as they are.
const PASSED: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TZ",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    // Who commits.
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
];

/// Names whose values are places of authorities' certificates, without which package tools cannot fetch behind a
/// company's proxy.
const CERTIFICATES: &[&str] = &[
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "NIX_SSL_CERT_FILE",
];

/// Whether a variable of the caller may be given to commands as it is.
///
/// ```
/// use proc_sandbox::environment::passes;
///
/// assert!(passes("PATH") && passes("LC_ALL") && passes("SSL_CERT_FILE"));
/// assert!(!passes("AWS_SECRET_ACCESS_KEY") && !passes("LD_PRELOAD") && !passes("BASH_ENV"));
/// ```
///
/// # Security
///
/// By name alone: a secret in `PATH` would pass.
pub fn passes(name: impl AsRef<OsStr>) -> bool {
    let name = name.as_ref().as_bytes();
    name.starts_with(b"LC_") || names().any(|known| known.as_bytes() == name)
}

/// The names that pass, but for the family `LC_*`.
pub fn names() -> impl Iterator<Item = &'static str> {
    PASSED.iter().chain(CERTIFICATES).copied()
}

/// Those among them whose values are places of certificates, for [`Policy::extra_read`](crate::Policy::extra_read):
/// what a variable names has to be readable as well.
pub fn certificates() -> impl Iterator<Item = &'static str> {
    CERTIFICATES.iter().copied()
}
