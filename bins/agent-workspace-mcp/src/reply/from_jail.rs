//! Refusals of the jail as a model reads them: what is wrong, and what to do next.

use workspace_jail::Error;

use super::{ErrorKind, Failure};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        use ErrorKind as Kind;
        let (kind, advice) = match &error {
            Error::Busy { .. } => (Kind::Busy, ""),
            Error::InvalidPattern { .. } => (Kind::InvalidArgs, ""),
            Error::InvalidPath { .. } => {
                (Kind::InvalidPath, "name a file or directory, relative to the workspace root")
            }
            Error::NameTooLong { .. } => (Kind::NameTooLong, "use a shorter one"),
            Error::OutsideWorkspace { .. } => {
                (Kind::OutsideWorkspace, "use a path relative to the workspace root")
            }
            Error::SymlinkLoop { .. } => (Kind::SymlinkLoop, "name the file itself"),
            Error::NotFound { .. } => {
                (Kind::NotFound, "look with list_directory or search_workspace")
            }
            Error::NotADirectory { .. } => {
                (Kind::NotADirectory, "a file stands in the way; look with list_directory")
            }
            Error::ProtectedPath { .. } => {
                (Kind::ProtectedPath, "only the operator may change it; leave it, or ask them to")
            }
            Error::ReadOnly { .. } => (Kind::ReadOnly, "it can be read and not changed"),
            Error::AlreadyExists { .. } => (
                Kind::AlreadyExists,
                "edit it with search_and_replace, or pass create_only=false to overwrite it",
            ),
            Error::IsDirectory { .. } => (Kind::IsDirectory, "name a file in it"),
            Error::NotARegularFile { .. } => {
                (Kind::NotARegularFile, "FIFOs, sockets and devices are never opened")
            }
            Error::HardlinkRefused { .. } => {
                (Kind::HardlinkRefused, "the operator refuses such files")
            }
            Error::PermissionDenied { .. } => (
                Kind::PermissionDenied,
                "look at owner and mode with ls -l; a command may change them",
            ),
            Error::BinaryFile { .. } => (Kind::BinaryFile, "look at it with a command of run_bash"),
            Error::TooLarge { .. } => (Kind::TooLarge, ""),
            Error::Stale { .. } => (Kind::Stale, "nothing was written; read it again"),
            Error::NotUtf8 { .. } => (Kind::NotUtf8, "convert it with a command of run_bash first"),
            Error::NoSpace { .. } => (Kind::NoSpace, "the old content is whole; free some space"),
            Error::Io { source, .. } => {
                tracing::error!(%source, %error, "file operation failed");
                (Kind::Internal, "the system refused; try again")
            }
            _ => (Kind::Internal, ""),
        };
        let mut text = sentence(&error.to_string());
        if !advice.is_empty() {
            text.push_str("; ");
            text.push_str(advice);
        }
        Self::new(kind, text)
    }
}

/// The library's fragment with a capital letter.
pub(crate) fn sentence(fragment: &str) -> String {
    let mut characters = fragment.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_path_as_written_and_a_way_on() {
        let failure = Failure::from(Error::NotFound { path: "a\nb".into() });
        assert_eq!(failure.kind(), ErrorKind::NotFound);
        let text = failure.to_string();
        assert!(text.starts_with("Path 'a\\nb' not found"), "{text}");
        assert!(text.contains("list_directory"), "{text}");
    }
}
