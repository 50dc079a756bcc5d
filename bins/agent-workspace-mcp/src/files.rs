//! Whose files a call means: the workspace's, or those of a disposable sandbox.
//!
//! A native sandbox is a directory with a jail of its own, and everything is done as in the workspace. From a container
//! a file is fetched into a private directory first, and read there as if it had been in the workspace: what is said of
//! pages, text and limits holds for it without being written twice.

use workspace_jail::{Error, Jail};

use crate::disposables::{Backend, Visit};
use crate::reply::{ErrorKind, Failure};
use crate::seen::Seen;
use crate::workspace::Session;

/// The files that a call works on.
#[derive(Debug)]
pub struct Files<'s> {
    session: &'s Session,
    place: Option<Visit>,
}

/// Where files are.
#[derive(Debug)]
pub enum Where<'f> {
    /// In a directory of this machine.
    Jail(&'f Jail),
    /// In a container.
    #[cfg(feature = "container")]
    Container(&'f crate::contained::Contained),
}

/// A file that can be read.
#[derive(Debug)]
pub struct Readable<'f> {
    source: Source<'f>,
    given: &'f str,
}

#[derive(Debug)]
enum Source<'f> {
    Here(&'f Jail),
    #[cfg(feature = "container")]
    Fetched(Box<crate::disposables::Scratch>),
}

/// The name of a fetched file.
#[cfg(feature = "container")]
const FETCHED: &str = "fetched";

impl<'s> Files<'s> {
    /// Those of the workspace.
    pub fn workspace(session: &'s Session) -> Self {
        Self { session, place: None }
    }

    /// Those of the sandbox of that id, or the workspace's without one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownId`] for an id that is not open.
    pub fn of(session: &'s Session, sandbox_id: Option<&str>) -> Result<Self, Failure> {
        let place = match sandbox_id {
            None => None,
            id => session.workspace.disposables.get(id, &session.cancel)?,
        };
        Ok(Self { session, place })
    }

    /// Whether they are the workspace's.
    pub fn are_workspace(&self) -> bool {
        self.place.is_none()
    }

    /// Where they are.
    pub fn place(&self) -> Where<'_> {
        match self.place.as_deref().map(|place| &place.backend) {
            None => Where::Jail(&self.session.workspace.jail),
            Some(Backend::Native(native)) => Where::Jail(native.jail()),
            #[cfg(feature = "container")]
            Some(Backend::Container(contained)) => Where::Container(contained),
        }
    }

    /// Makes a file readable.
    ///
    /// # Errors
    ///
    /// From a container, the refusals of its own; of files elsewhere nothing is known yet.
    ///
    /// # Security
    ///
    /// `path` is hostile, and so are the bytes that a container gives: they reach a file of a private directory and
    /// nothing else.
    pub fn readable<'f>(&'f self, path: &'f str) -> Result<Readable<'f>, Failure> {
        let source = match self.place() {
            Where::Jail(jail) => Source::Here(jail),
            #[cfg(feature = "container")]
            Where::Container(contained) => Source::Fetched(Box::new(self.fetch(contained, path)?)),
        };
        Ok(Readable { source, given: path })
    }

    #[cfg(feature = "container")]
    fn fetch(
        &self,
        contained: &crate::contained::Contained,
        path: &str,
    ) -> Result<crate::disposables::Scratch, Failure> {
        let Session { workspace, cancel, .. } = self.session;
        let failed = |error: std::io::Error| {
            tracing::error!(%error, "no place for a container's file");
            Failure::new(ErrorKind::Internal, "the file could not be fetched from the sandbox")
        };
        let scratch = crate::disposables::Scratch::new(workspace.jail.dir())
            .map_err(|error| failed(std::io::Error::other(format!("{error:#}"))))?;
        let dir = scratch.dir().map_err(failed)?;
        let mut file = dir.create(FETCHED).map_err(failed)?;
        contained.fetch(path, &mut file, cancel)?;
        Ok(scratch)
    }

    /// What a missing path may have meant is looked for where the path was.
    pub fn not_found(&self, error: Error) -> Failure {
        let near = match (&error, self.place()) {
            (Error::NotFound { path }, Where::Jail(jail)) => jail.similar_names(path),
            _ => Vec::new(),
        };
        let failure = self.refused(error);
        if near.is_empty() {
            return failure;
        }
        let near: Vec<_> =
            near.iter().map(|path| workspace_jail::Escaped::new(path).to_string()).collect();
        Failure::new(failure.kind(), format!("{failure}. Similar: {}", near.join(", ")))
    }

    fn refused(&self, error: Error) -> Failure {
        if self.are_workspace() {
            return error.into();
        }
        match error {
            // Commands of the workspace do not reach it.
            Error::BinaryFile { .. } => Failure::new(
                ErrorKind::BinaryFile,
                format!(
                    "{}; look at it with execute_code",
                    crate::reply::sentence(&error.to_string())
                ),
            ),
            error => error.into(),
        }
    }

    /// Remembers the files as they are after a write, so that it is not taken for code's doing. `seen` is what a
    /// container said of itself.
    pub fn written(&self, seen: Option<Seen>) {
        let Some(place) = self.place.as_deref() else { return };
        match (&place.backend, seen) {
            (Backend::Native(native), _) => drop(native.look(place)),
            #[cfg(feature = "container")]
            (Backend::Container(_), Some(seen)) => drop(place.look(seen)),
            #[cfg(feature = "container")]
            (Backend::Container(_), None) => {}
        }
    }
}

impl Readable<'_> {
    /// The file, as a jail reads it.
    ///
    /// # Errors
    ///
    /// Those of `verb`, with the path as it was given.
    pub fn read<T>(
        &self,
        verb: impl FnOnce(&Jail, &str) -> workspace_jail::Result<T>,
    ) -> workspace_jail::Result<T> {
        match &self.source {
            Source::Here(jail) => verb(jail, self.given),
            #[cfg(feature = "container")]
            Source::Fetched(scratch) => verb(&scratch.jail, FETCHED).map_err(|error| {
                let path = self.given.to_owned();
                match error {
                    Error::BinaryFile { .. } => Error::BinaryFile { path },
                    Error::TooLarge { size, max, .. } => Error::TooLarge { path, size, max },
                    Error::Io { source, .. } => Error::Io { path, source },
                    other => other,
                }
            }),
        }
    }
}
