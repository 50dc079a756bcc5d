//! How a plan reaches the helper, and how its reports come back.
//!
//! The helper's standard input is one end of a pair of sequenced-packet sockets. The caller writes one packet
//! into the other end before the helper is even started: a descriptor of the plan, with the handles it needs
//! beside it. Nothing is inherited by number, so no descriptor is ever without its close-on-exec flag in the
//! caller, and a child started at the same moment by another thread inherits nothing. The helper answers by
//! packets of JSON over the same socket, which closes when it becomes the command.
//!
//! The plan lies in anonymous memory, since a command line may be larger than a packet.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::FileExt as _;

use rustix::fs::MemfdFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::{Deserialize, Serialize};

use crate::attempt::{Attempt, Try};
use crate::layer::Step;
use crate::layer::rlimits::Limit;

/// The packet that carries the handles.
const HELLO: &[u8] = b"plan 1";
/// Longest packet of a report.
const LONGEST_REPORT: usize = 64 * 1024;
/// Handles one packet may carry.
const MOST_HANDLES: usize = 4;

/// What differs from one command to the next.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Limits that depend on the moment.
    pub(crate) limits: Vec<Limit>,
    /// Which optional handles follow the fixed ones.
    pub(crate) has_ruleset: bool,
    pub(crate) has_stdin: bool,
    /// What to try before and after the steps, for a probe.
    pub(crate) tries: Vec<Try>,
}

/// Everything the helper is told.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) call: Call,
    /// The program and its arguments.
    pub(crate) argv: Vec<OsString>,
    /// `NAME=value`.
    pub(crate) env: Vec<OsString>,
}

/// What the helper says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// All steps are taken; the command is executed next.
    Done { steps: Vec<String>, attempts: Vec<Attempt> },
    /// A step failed; the helper ends.
    Failed { step: String, errno: i32 },
    /// The program could not be executed; the helper ends.
    NotExecuted { errno: i32 },
}

/// Descriptors that came with a plan.
#[derive(Debug)]
pub(crate) struct Handles {
    directory: Option<OwnedFd>,
    ruleset: Option<OwnedFd>,
    pub(crate) stdin: Option<OwnedFd>,
}

impl Handles {
    pub(crate) fn directory(&self) -> io::Result<BorrowedFd<'_>> {
        self.directory.as_ref().map(AsFd::as_fd).ok_or_else(malformed)
    }

    pub(crate) fn ruleset(&self) -> io::Result<BorrowedFd<'_>> {
        self.ruleset.as_ref().map(AsFd::as_fd).ok_or_else(malformed)
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed plan")
}

/// A pair of connected sockets: the caller's end and the helper's.
pub(crate) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Writes the parts of a plan, each with its length before it. The steps are the same for every command of a
/// sandbox and come encoded.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    steps: &[u8],
    call: &Call,
    argv: &[&OsStr],
    env: &[OsString],
    handles: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let call = serde_json::to_vec(call)?;
    let mut bytes = Vec::new();
    for part in [steps, &call, &block(argv), &block(env)] {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    let memory = rustix::fs::memfd_create("sandbox-plan", MemfdFlags::CLOEXEC)?;
    let file = File::from(memory);
    file.write_all_at(&bytes, 0)?;

    let mut all = vec![file.as_fd()];
    all.extend_from_slice(handles);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDLES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&all)) {
        return Err(malformed());
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(HELLO)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Reads a plan in the helper.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<(Plan, Handles)> {
    let mut hello = [0; HELLO.len() + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDLES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut hello)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if hello.get(..received.bytes) != Some(HELLO) {
        return Err(malformed());
    }
    let mut handles = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(handles) => Some(handles),
            _ => None,
        })
        .flatten();
    let file = File::from(handles.next().ok_or_else(malformed)?);
    let mut parts = Parts { file, at: 0 };
    let steps = serde_json::from_slice(&parts.next()?)?;
    let call: Call = serde_json::from_slice(&parts.next()?)?;
    let argv = unblock(&parts.next()?);
    let env = unblock(&parts.next()?);
    let directory = handles.next();
    let ruleset = if call.has_ruleset { handles.next() } else { None };
    let stdin = if call.has_stdin { handles.next() } else { None };
    Ok((Plan { steps, call, argv, env }, Handles { directory, ruleset, stdin }))
}

/// Strings, each ended by the NUL byte that none of them can hold.
fn block<S: AsRef<OsStr>>(strings: &[S]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for string in strings {
        bytes.extend_from_slice(string.as_ref().as_bytes());
        bytes.push(0);
    }
    bytes
}

fn unblock(bytes: &[u8]) -> Vec<OsString> {
    let mut strings: Vec<_> =
        bytes.split(|byte| *byte == 0).map(|string| OsString::from_vec(string.to_vec())).collect();
    // What comes after the last end is no string.
    strings.pop();
    strings
}

/// The parts of a plan, in order.
struct Parts {
    file: File,
    at: u64,
}

impl Parts {
    fn next(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 8];
        self.file.read_exact_at(&mut length, self.at)?;
        let length = u64::from_le_bytes(length);
        let mut bytes = vec![0; usize::try_from(length).map_err(|_| malformed())?];
        self.file.read_exact_at(&mut bytes, self.at + 8)?;
        self.at += 8 + length;
        Ok(bytes)
    }
}

/// Sends a report to the caller, if it still listens.
pub(crate) fn report(socket: BorrowedFd<'_>, report: &Report) -> io::Result<()> {
    let packet = serde_json::to_vec(report)?;
    rustix::net::send(socket, &packet, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Takes the next report that is there already; `None` when there is none, or the helper is gone.
pub(crate) fn next_report(socket: BorrowedFd<'_>) -> io::Result<Option<Report>> {
    let mut packet = vec![0; LONGEST_REPORT];
    match rustix::net::recv(socket, &mut packet[..], RecvFlags::DONTWAIT) {
        Ok((0, _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::CONNRESET) => Ok(None),
        Ok((length, _)) => Ok(Some(serde_json::from_slice(&packet[..length])?)),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::fd::AsFd as _;
    use std::os::unix::ffi::OsStringExt as _;

    use proptest::prelude::*;

    use super::{Call, HELLO, block, channel, receive, send, unblock};

    proptest! {
        #[test]
        fn strings_come_through_whole(
            strings in prop::collection::vec(prop::collection::vec(1_u8.., 0..20), 0..8)
        ) {
            let strings: Vec<OsString> = strings.into_iter().map(OsString::from_vec).collect();
            prop_assert_eq!(unblock(&block(&strings)), strings);
        }
    }

    fn open(path: &str) -> std::os::fd::OwnedFd {
        rustix::fs::open(path, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap()
    }

    #[test]
    fn a_plan_larger_than_any_packet_comes_through() {
        let (ours, theirs) = channel().unwrap();
        let long = OsString::from("x".repeat(1 << 20));
        let directory = open("/");
        send(ours.as_fd(), b"[]", &Call::default(), &[&long], &[], &[directory.as_fd()]).unwrap();
        let (plan, handles) = receive(theirs.as_fd()).unwrap();
        assert_eq!(plan.argv, [long]);
        assert!(plan.env.is_empty() && plan.steps.is_empty());
        assert!(handles.directory().is_ok());
        assert!(handles.ruleset().is_err());
    }

    #[test]
    fn a_stranger_on_standard_input_is_refused() {
        let (ours, theirs) = channel().unwrap();
        for packet in [&b""[..], b"plan 2", b"plan 1 and more", HELLO] {
            rustix::net::send(&ours, packet, rustix::net::SendFlags::empty()).unwrap();
            assert!(receive(theirs.as_fd()).is_err());
        }
        let file = open("/dev/null");
        assert!(receive(file.as_fd()).is_err());
    }
}
