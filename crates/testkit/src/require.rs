//! What a test needs from the machine: said when it is missing, and fatal where nothing may skip.

use std::fmt;
use std::io::Write as _;

/// Under this variable no test may skip.
const NO_SKIP: &str = "AGENT_WORKSPACE_TESTS_NO_SKIP";

/// What the machine lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Turns a probe's answer into "go on" or "skip", saying what was missing.
///
/// ```
/// if testkit::require::<()>("true", Ok(())).is_none() {
///     return;
/// }
/// ```
///
/// # Panics
///
/// If the thing is missing and `AGENT_WORKSPACE_TESTS_NO_SKIP` is set: there a skip is a failure.
pub fn require<T>(test: &str, probe: Result<T, Missing>) -> Option<T> {
    match probe {
        Ok(value) => Some(value),
        Err(missing) if std::env::var_os(NO_SKIP).is_some() => {
            panic!("{test}: {missing}, and {NO_SKIP} forbids to skip")
        }
        Err(missing) => {
            // Not eprintln: the test runner would keep it to itself.
            let said = writeln!(std::io::stderr(), "SKIPPED {test}: {missing}");
            assert!(said.is_ok(), "a skip must be said");
            None
        }
    }
}

/// Whether a program is on `PATH`, for [`require`]: a machine with a compiler and nothing else runs the rest.
///
/// # Errors
///
/// [`Missing`] with the program's name.
pub fn program(name: &str) -> Result<(), Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    if found { Ok(()) } else { Err(Missing(format!("the program {name}"))) }
}
