//! The file a content is written to before it gets its name.
//!
//! Its own name cannot be guessed or planted (128 random bits, made exclusively), stands in the
//! directory of the file to be, and is locked as long as its writer lives: whoever gets the lock knows
//! that the writer was killed (see [`sweep`](crate::sweep)).

use std::fs::File;
use std::io::Write as _;

use cap_std::fs::Dir;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use rustix::rand::GetRandomFlags;

use crate::at;
use crate::error::{Fault, Step};
use crate::path::Name;

const PREFIX: &[u8] = b".aw-";
const SUFFIX: &[u8] = b".tmp";
const DIGITS: usize = 32;

/// How often another name is tried. Names do not meet by chance; a sweep may catch one being born.
const ATTEMPTS: usize = 8;

/// A file on its way. Dropped unpublished, it is removed.
#[derive(Debug)]
pub(crate) struct Temp<'d> {
    dir: &'d Dir,
    name: Name,
    file: File,
    published: bool,
}

impl<'d> Temp<'d> {
    /// Makes an empty file in `dir`.
    pub(crate) fn make(dir: &'d Dir) -> Step<Self> {
        for _ in 0..ATTEMPTS {
            let name = fresh_name()?;
            let file = match at::make_file(dir, &name) {
                Err(Errno::EXIST) => continue,
                // The directory went away under the write.
                Err(Errno::NOENT) => return Err(Fault::Changed),
                other => other?,
            };
            let temp = Self { dir, name, file, published: false };
            // Any other failure: without locks nobody can lock it for a sweep either.
            let locked = rustix::fs::flock(&temp.file, FlockOperation::NonBlockingLockExclusive);
            if locked == Err(Errno::WOULDBLOCK) {
                continue;
            }
            if rustix::fs::fstat(&temp.file)?.st_nlink > 0 {
                return Ok(temp);
            }
        }
        Err(Fault::Busy)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Writes the whole content.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> Step<()> {
        Ok(self.file.write_all(bytes)?)
    }

    /// Makes the content last, so that its name never leads to less.
    pub(crate) fn sync(&self) -> Step<()> {
        Ok(rustix::fs::fsync(&self.file)?)
    }

    /// Gives it the name `name`, in the place of the file that has it.
    pub(crate) fn publish_over(mut self, name: &Name) -> Step<()> {
        at::rename_over(self.dir, &self.name, name)?;
        self.published = true;
        Ok(())
    }

    /// Gives it the name `name`, which nothing may have.
    pub(crate) fn publish_new(mut self, name: &Name) -> Step<()> {
        at::rename_new(self.dir, &self.name, self.dir, name)?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if !self.published {
            // What cannot be removed now is swept when the jail is opened next.
            at::unlink(self.dir, &self.name).ok();
        }
    }
}

/// Whether a name is one of ours.
pub(crate) fn is_temp(name: &[u8]) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

fn fresh_name() -> Step<Name> {
    let mut random = [0_u8; DIGITS / 2];
    rustix::rand::getrandom(&mut random, GetRandomFlags::empty())?;
    let digits: String = random.iter().flat_map(|byte| hex(*byte)).collect();
    let name = [PREFIX, digits.as_bytes(), SUFFIX].concat();
    Name::new(&name).ok_or(Fault::Busy)
}

fn hex(byte: u8) -> [char; 2] {
    [byte >> 4, byte & 15].map(|nibble| char::from_digit(u32::from(nibble), 16).unwrap_or('0'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn fresh_names_are_ours_and_differ() {
        let (one, other) = (fresh_name().unwrap(), fresh_name().unwrap());
        assert_ne!(one, other);
        assert!(is_temp(one.as_os_str().as_bytes()));
    }

    #[test]
    fn a_users_temporary_file_is_not_ours() {
        for name in ["f.tmp", ".aw-.tmp", ".aw-0123.tmp", ".f.tmp"] {
            assert!(!is_temp(name.as_bytes()), "{name}");
        }
        assert!(!is_temp(format!(".aw-{}.tmp", "g".repeat(32)).as_bytes()));
    }
}
