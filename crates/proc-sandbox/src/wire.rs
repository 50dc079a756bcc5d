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
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::Usage;
use crate::attempt::{Attempt, Bytes, Try};
use crate::layer::Step;
use crate::layer::rlimits::Limit;
use crate::view::View;

/// The packet that carries the handles.
const HELLO: &[u8] = b"plan 1";
/// The packet that asks a spare for a helper, whose standard input and output come beside it.
const ASK: &[u8] = b"start 1";
/// Longest packet of a report.
const LONGEST_REPORT: usize = 64 * 1024;
/// Handles one packet may carry.
const MOST_HANDLES: usize = 12;

/// What a descriptor that travels is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Slot {
    /// The working directory.
    Directory,
    /// The Landlock ruleset.
    Ruleset,
    /// What the command reads.
    Stdin,
    /// The workspace, for whoever prepares a place.
    Workspace,
    /// A namespace.
    Namespace(Namespace),
    /// A socket that listens inside a place.
    Listener,
}

/// Kinds of namespaces a place is made of, in the order in which they are entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Namespace {
    User,
    Mount,
    Network,
    Ipc,
    Uts,
}

/// What differs from one command to the next.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Limits that depend on the moment.
    pub(crate) limits: Vec<Limit>,
    /// What the handles are, in their order.
    pub(crate) slots: Vec<Slot>,
    /// Where the working directory lies in a prepared place.
    pub(crate) directory: Option<Bytes>,
    /// Places below the workspace to make read-only for this command, relative to it.
    pub(crate) protected: Vec<Bytes>,
    /// What to try before and after the steps, for a probe.
    pub(crate) tries: Vec<Try>,
    /// A place to prepare; then there are no steps and no command.
    pub(crate) view: Option<View>,
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
    /// The command has ended, and so many processes that it left running, where they can be counted, were ended with
    /// it.
    Ended { leftovers: Option<usize>, usage: Usage },
    /// A place is ready; its handles come beside this report.
    Prepared { slots: Vec<Slot>, notes: Vec<String> },
}

/// Descriptors that came with a plan or a report.
#[derive(Debug, Default)]
pub(crate) struct Handles(Vec<(Slot, OwnedFd)>);

impl Handles {
    pub(crate) fn get(&self, slot: Slot) -> io::Result<BorrowedFd<'_>> {
        let found = self.0.iter().find(|(known, _)| *known == slot);
        found.map(|(_, handle)| handle.as_fd()).ok_or_else(malformed)
    }

    pub(crate) fn take(&mut self, slot: Slot) -> Option<OwnedFd> {
        let at = self.0.iter().position(|(known, _)| *known == slot)?;
        Some(self.0.swap_remove(at).1)
    }

    fn pair(slots: &[Slot], handles: Vec<OwnedFd>) -> io::Result<Self> {
        if slots.len() != handles.len() {
            return Err(malformed());
        }
        Ok(Self(slots.iter().copied().zip(handles).collect()))
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
/// sandbox and come encoded; the handles are those `call` names.
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
    packet(socket, HELLO, &all)
}

/// Sends one packet with descriptors beside it.
fn packet(socket: BorrowedFd<'_>, bytes: &[u8], handles: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDLES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !handles.is_empty() && !control.push(SendAncillaryMessage::ScmRights(handles)) {
        return Err(malformed());
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one packet with what is beside it: its length, and the descriptors.
fn receive_packet(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: RecvFlags,
) -> Result<(usize, Vec<OwnedFd>), rustix::io::Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_HANDLES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received =
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    let handles = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(handles) => Some(handles),
            _ => None,
        })
        .flatten();
    Ok((received.bytes, handles.collect()))
}

/// Reads a plan in the helper.
pub(crate) fn receive(socket: BorrowedFd<'_>) -> io::Result<(Plan, Handles)> {
    let mut hello = [0; HELLO.len() + 1];
    let (length, mut handles) = receive_packet(socket, &mut hello, RecvFlags::empty())?;
    if hello.get(..length) != Some(HELLO) || handles.is_empty() {
        return Err(malformed());
    }
    let mut parts = Parts { file: File::from(handles.remove(0)), at: 0 };
    let steps = serde_json::from_slice(&parts.next()?)?;
    let call: Call = serde_json::from_slice(&parts.next()?)?;
    let argv = unblock(&parts.next()?);
    let env = unblock(&parts.next()?);
    let handles = Handles::pair(&call.slots, handles)?;
    Ok((Plan { steps, call, argv, env }, handles))
}

/// Asks a spare for a helper with these as standard input and output.
pub(crate) fn ask(
    socket: BorrowedFd<'_>,
    stdin: BorrowedFd<'_>,
    output: BorrowedFd<'_>,
) -> io::Result<()> {
    packet(socket, ASK, &[stdin, output])
}

/// Waits in a spare until it is asked for a helper; `None` when nobody can ask any more.
pub(crate) fn asked(socket: BorrowedFd<'_>) -> io::Result<Option<[OwnedFd; 2]>> {
    let mut bytes = [0; ASK.len() + 1];
    let (length, handles) = receive_packet(socket, &mut bytes, RecvFlags::empty())?;
    match (bytes.get(..length), <[OwnedFd; 2]>::try_from(handles)) {
        (Some(ASK), Ok(pair)) => Ok(Some(pair)),
        (Some([]), _) => Ok(None),
        _ => Err(malformed()),
    }
}

/// Answers with the new helper's process id, or why there is none.
pub(crate) fn answer(socket: BorrowedFd<'_>, made: io::Result<Pid>) -> io::Result<()> {
    let number = match made {
        Ok(pid) => pid.as_raw_nonzero().get(),
        Err(error) => -error.raw_os_error().unwrap_or(libc::EINVAL),
    };
    packet(socket, &number.to_le_bytes(), &[])
}

/// Takes the answer, which is there or will be; `None` when nobody is left to give one.
pub(crate) fn answered(socket: BorrowedFd<'_>) -> io::Result<Option<io::Result<Pid>>> {
    let mut bytes = [0; 4];
    let number = match receive_packet(socket, &mut bytes, RecvFlags::empty()) {
        Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => return Ok(None),
        Ok((4, _)) => i32::from_le_bytes(bytes),
        Ok(_) => return Err(malformed()),
        Err(errno) => return Err(errno.into()),
    };
    let refused = || io::Error::from_raw_os_error(number.saturating_neg());
    let pid = if number > 0 { Pid::from_raw(number) } else { None };
    Ok(Some(pid.ok_or_else(refused)))
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
    report_with(socket, report, &[])
}

/// Sends a report with the handles it names.
pub(crate) fn report_with(
    socket: BorrowedFd<'_>,
    report: &Report,
    handles: &[BorrowedFd<'_>],
) -> io::Result<()> {
    packet(socket, &serde_json::to_vec(report)?, handles)
}

/// Takes the next report that is there already; `None` when there is none, or the helper is gone.
pub(crate) fn next_report(socket: BorrowedFd<'_>) -> io::Result<Option<(Report, Handles)>> {
    let mut packet = vec![0; LONGEST_REPORT];
    match receive_packet(socket, &mut packet, RecvFlags::DONTWAIT) {
        Ok((0, _)) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::CONNRESET) => Ok(None),
        Ok((length, handles)) => {
            let report = serde_json::from_slice(packet.get(..length).unwrap_or_default())?;
            let handles = match &report {
                Report::Prepared { slots, .. } => Handles::pair(slots, handles)?,
                _ => Handles::default(),
            };
            Ok(Some((report, handles)))
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::fd::AsFd as _;
    use std::os::unix::ffi::OsStringExt as _;

    use proptest::prelude::*;

    use super::{
        Call, HELLO, Namespace, Report, Slot, answer, answered, ask, asked, block, channel,
        next_report, receive, report_with, send, unblock,
    };

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
        let call = Call { slots: vec![Slot::Directory], ..Call::default() };
        send(ours.as_fd(), b"[]", &call, &[&long], &[], &[directory.as_fd()]).unwrap();
        let (plan, mut handles) = receive(theirs.as_fd()).unwrap();
        assert_eq!(plan.argv, [long]);
        assert!(plan.env.is_empty() && plan.steps.is_empty());
        assert!(handles.get(Slot::Directory).is_ok());
        assert!(handles.get(Slot::Ruleset).is_err());
        assert!(handles.take(Slot::Directory).is_some());
        assert!(handles.take(Slot::Directory).is_none());
    }

    #[test]
    fn handles_that_do_not_match_their_names_are_refused() {
        let (ours, theirs) = channel().unwrap();
        let directory = open("/");
        send(ours.as_fd(), b"[]", &Call::default(), &[], &[], &[directory.as_fd()]).unwrap();
        assert!(receive(theirs.as_fd()).is_err());
    }

    #[test]
    fn a_report_brings_handles_back() {
        let (ours, theirs) = channel().unwrap();
        let directory = open("/");
        let slot = Slot::Namespace(Namespace::Mount);
        let prepared = Report::Prepared { slots: vec![slot], notes: Vec::new() };
        report_with(theirs.as_fd(), &prepared, &[directory.as_fd()]).unwrap();
        let (report, handles) = next_report(ours.as_fd()).unwrap().unwrap();
        assert!(matches!(report, Report::Prepared { .. }));
        assert!(handles.get(slot).is_ok());
        assert!(next_report(ours.as_fd()).unwrap().is_none());
    }

    #[test]
    fn a_spare_is_asked_and_answers() {
        let (ours, theirs) = channel().unwrap();
        let (input, output) = (open("/"), open("/proc"));
        ask(ours.as_fd(), input.as_fd(), output.as_fd()).unwrap();
        let pair = asked(theirs.as_fd()).unwrap().unwrap();
        let is = |handle: &std::os::fd::OwnedFd| rustix::fs::fstat(handle).unwrap().st_dev;
        assert_eq!(pair.each_ref().map(is), [is(&input), is(&output)]);
        answer(theirs.as_fd(), Ok(rustix::process::getpid())).unwrap();
        let pid = answered(ours.as_fd()).unwrap().unwrap().unwrap();
        assert_eq!(pid, rustix::process::getpid());
        answer(theirs.as_fd(), Err(std::io::Error::from_raw_os_error(libc::EAGAIN))).unwrap();
        let refused = answered(ours.as_fd()).unwrap().unwrap().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EAGAIN));
        for packet in [&b"start 1"[..], b"start 2", b"start 1 and more"] {
            rustix::net::send(&ours, packet, rustix::net::SendFlags::empty()).unwrap();
            assert!(asked(theirs.as_fd()).is_err());
        }
        drop(theirs);
        assert!(answered(ours.as_fd()).unwrap().is_none());
    }

    #[test]
    fn a_spare_whose_caller_is_gone_is_not_asked() {
        let (ours, theirs) = channel().unwrap();
        drop(ours);
        assert!(asked(theirs.as_fd()).unwrap().is_none());
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
