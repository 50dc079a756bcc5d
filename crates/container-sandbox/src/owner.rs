//! Who a container belongs to, as labels that outlive the process that made it.
//!
//! Invariant: values are plain words, so that they mean themselves in a label filter and in a listing.

use std::collections::HashMap;

use crate::error::Error;

/// The label that says whose containers these are.
pub(crate) const OWNER: &str = "io.agent-workspace.owner";
/// The label that says which run of the owner made it.
pub(crate) const INSTANCE: &str = "io.agent-workspace.instance";
/// The label with the image as it was asked for; the container itself is made of the id behind that.
const IMAGE: &str = "io.agent-workspace.image";

/// A stable name, and the run under that name.
///
/// Two, because two servers of one user are alive at once as a rule: the name says which leftovers one may
/// look at, the instance which of them somebody still uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    name: String,
    instance: String,
}

impl Owner {
    /// `name` stays the same from run to run; `instance` is one run, and must let a later one find out whether
    /// it still lives: a process id with its start time does.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if either is empty, longer than 128 bytes, or holds anything but letters,
    /// digits and `. _ : -`.
    pub fn new(name: impl Into<String>, instance: impl Into<String>) -> Result<Self, Error> {
        let owner = Self { name: name.into(), instance: instance.into() };
        check_word("owner name", &owner.name)?;
        check_word("owner instance", &owner.instance)?;
        Ok(owner)
    }

    pub(crate) fn labels(&self, image: &str) -> HashMap<String, String> {
        [(OWNER, self.name.as_str()), (INSTANCE, &self.instance), (IMAGE, image)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into()
    }
}

pub(crate) fn check_word(argument: &'static str, word: &str) -> Result<(), Error> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    if word.is_empty() || word.len() > 128 || !word.bytes().all(plain) {
        return Err(Error::InvalidArgument {
            argument,
            reason: "is not 1 to 128 letters, digits, dots, underscores, colons and hyphens",
        });
    }
    Ok(())
}
