//! The stages of a compaction, one file each, in the order [`Stage`](crate::Stage) lists them.

pub(crate) mod decode;
pub(crate) mod diagnostics;
pub(crate) mod fold;
pub(crate) mod long_line;
pub(crate) mod names;
pub(crate) mod records;
pub(crate) mod screen;
pub(crate) mod window;
