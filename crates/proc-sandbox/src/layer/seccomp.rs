//! System calls commands have no use for, refused.
//!
//! A list of denials, not of permissions: build tools use most of the interface, and a call that is missing
//! from a list of permissions is a broken compiler. Refusals are errors, not deaths, so that programs fall back.
//!
//! One program: a call is refused (`EPERM`) by its number or for some of its arguments, said not to exist (`ENOSYS`:
//! `clone3(2)`, whose flags lie in memory a filter cannot read, and the other calling convention of `x86_64`), or
//! said to have worked (`setsid(2)`, `setpgid(2)`: the *pinned group*). A call in the 32-bit convention kills the
//! process.
//!
//! The pinned group is what keeps a command's processes together without a PID namespace: whatever they fork
//! stays in the leader's process group, and one `kill(2)` reaches all of it. The price: programs that want a
//! session of their own see a call that succeeded without effect.

mod program;

use std::collections::BTreeMap;
use std::io;

use crate::Net;
pub(crate) use program::Program;
use program::{Answer, Condition, Table};

/// Calls that some C libraries' lists lack; numbers above 423 are the same on every architecture.
const SYS_QUOTACTL_FD: libc::c_long = 443;
const SYS_PROCESS_MRELEASE: libc::c_long = 448;
const SYS_FCHMODAT2: libc::c_long = 452;
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;
const SYS_KEXEC_FILE_LOAD: libc::c_long = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

/// Calls refused whatever their arguments.
const REFUSED: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    SYS_PROCESS_MRELEASE,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    SYS_OPEN_TREE_ATTR,
    // Files past the directories that lead to them.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Large pieces of kernel with a history.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // The machine.
    libc::SYS_kexec_load,
    SYS_KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_quotactl,
    SYS_QUOTACTL_FD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// System V and POSIX message queues, semaphores and shared memory: one user's are open to each other, and without
/// an IPC namespace those of the operator's programs are among them.
const SHARED_BETWEEN_PROGRAMS: &[libc::c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Flags of `clone(2)` that make a namespace. That of time namespaces is a signal number to this call.
const NEW_NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `PRIO_USER` of `linux/resource.h`, whose type in the C library differs by system.
const PRIO_USER: u32 = 2;
/// `IOPRIO_WHO_USER` of `linux/ioprio.h`.
const IOPRIO_WHO_USER: u32 = 3;
/// Requests of `asm-generic/ioctls.h`, whose type in the C library differs by system.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
/// The bits of a socket's type argument that are the type.
const SOCKET_TYPE: u32 = 0xf;

/// What has to be refused because nothing else keeps it in.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is what another layer may leave open, whatever the others do"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    /// There are no namespaces: processes can leave their group, and other programs' objects are in reach.
    pub(crate) machine: bool,
    /// The network is the machine's, and no namespace is around its Unix sockets.
    pub(crate) unix_sockets: bool,
    /// No socket of any kind, there being no namespace of networks.
    pub(crate) no_sockets: bool,
    /// Landlock does not know truncation, and no read-only mount is around files outside.
    pub(crate) truncation: bool,
}

impl Open {
    /// On the rung without namespaces.
    pub(crate) fn without_namespaces(net: Net, truncation: bool) -> Self {
        Self { machine: true, unix_sockets: true, no_sockets: net != Net::On, truncation }
    }

    /// On the rungs with namespaces. `scoped`: Landlock keeps abstract Unix sockets apart.
    pub(crate) fn with_namespaces(net: Net, scoped: bool) -> Self {
        let unix_sockets = net == Net::On && !scoped;
        Self { machine: false, unix_sockets, no_sockets: false, truncation: false }
    }
}

/// Compiles the program for a policy.
///
/// # Errors
///
/// `Unsupported` on an architecture whose calls are not known here.
pub(crate) fn program(open: Open) -> io::Result<Program> {
    Program::compile(&table(open)?)
}

/// What is answered in the kernel's place; every other call is allowed.
fn table(open: Open) -> io::Result<Table> {
    let mut table = Table::new();
    let mut answer = |calls: &[libc::c_long], answer: &Answer| {
        for call in calls {
            table.insert(number(*call)?, answer.clone());
        }
        Ok::<(), io::Error>(())
    };
    answer(REFUSED, &Answer::Refused)?;
    answer(&[libc::SYS_clone3], &Answer::Missing)?;
    if open.machine {
        answer(SHARED_BETWEEN_PROGRAMS, &Answer::Refused)?;
        answer(&[libc::SYS_setsid, libc::SYS_setpgid], &Answer::Done)?;
    }
    if open.no_sockets {
        answer(&[libc::SYS_socket], &Answer::Refused)?;
    }
    if open.truncation {
        answer(&[libc::SYS_truncate], &Answer::Refused)?;
        // Its flags lie in memory a filter cannot read; programs fall back to `openat(2)`.
        answer(&[libc::SYS_openat2], &Answer::Missing)?;
    }
    for (call, rules) in judged(open)? {
        // What is refused whatever its arguments stays so.
        table.entry(call).or_insert(Answer::Judged(rules));
    }
    Ok(table)
}

fn number(call: libc::c_long) -> io::Result<u32> {
    u32::try_from(call).map_err(|_| io::ErrorKind::Unsupported.into())
}

/// Calls refused for some of their arguments: where all conditions of one of the rules hold.
fn judged(open: Open) -> io::Result<BTreeMap<u32, Vec<Vec<Condition>>>> {
    let mut rules: BTreeMap<u32, Vec<Vec<Condition>>> = BTreeMap::new();
    let mut refuse = |call: libc::c_long, conditions: &[Condition]| {
        rules.entry(number(call)?).or_default().push(conditions.to_vec());
        Ok::<(), io::Error>(())
    };
    let is = Condition::is;
    let is_not = Condition::is_not;
    let has = Condition::has;
    let word = libc::c_int::unsigned_abs;

    for flag in NEW_NAMESPACES.map(word) {
        refuse(libc::SYS_clone, &[has(0, flag, flag)])?;
    }
    // Limits and priorities of processes that are not the caller's own: one user's are open to each other, and
    // Landlock does not know these calls.
    refuse(libc::SYS_prlimit64, &[is_not(0, 0)])?;
    refuse(libc::SYS_setpriority, &[is(0, PRIO_USER)])?;
    refuse(libc::SYS_ioprio_set, &[is(0, IOPRIO_WHO_USER)])?;
    // Typing into a terminal that somebody else reads.
    refuse(libc::SYS_ioctl, &[is(1, TIOCSTI)])?;
    refuse(libc::SYS_ioctl, &[is(1, TIOCLINUX)])?;
    // A setuid bit on a file that others may execute; outside files of the same user can be reached by chmod.
    let setuid = libc::S_ISUID;
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_chmod, &[has(1, setuid, setuid)])?;
    refuse(libc::SYS_fchmod, &[has(1, setuid, setuid)])?;
    refuse(libc::SYS_fchmodat, &[has(2, setuid, setuid)])?;
    refuse(SYS_FCHMODAT2, &[has(2, setuid, setuid)])?;
    if open.truncation {
        // To open a file for reading truncates it all the same, and so does the mode that is neither reading nor
        // writing, for which Landlock asks for no right at all.
        let (mode, truncating) = (word(libc::O_ACCMODE), word(libc::O_TRUNC));
        for neither in [word(libc::O_RDONLY), mode] {
            let flags = |argument| has(argument, mode | truncating, neither | truncating);
            #[cfg(target_arch = "x86_64")]
            refuse(libc::SYS_open, &[flags(1)])?;
            refuse(libc::SYS_openat, &[flags(2)])?;
        }
    }
    if open.unix_sockets {
        // A datagram socket of a pair can send to a path; a stream of a pair is bound to its peer for good. Raw
        // Unix sockets are datagram sockets.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW].map(word) {
            refuse(libc::SYS_socketpair, &[has(1, SOCKET_TYPE, kind)])?;
        }
    }
    let netlink = word(libc::AF_NETLINK);
    let mut families = vec![word(libc::AF_INET), word(libc::AF_INET6), netlink];
    families.extend((!open.unix_sockets).then_some(word(libc::AF_UNIX)));
    let others: Vec<_> = families.into_iter().map(|family| is_not(0, family)).collect();
    refuse(libc::SYS_socket, &others)?;
    // Name resolution asks the kernel for its addresses; no other netlink family is needed.
    refuse(libc::SYS_socket, &[is(0, netlink), is_not(2, word(libc::NETLINK_ROUTE))])?;
    Ok(rules)
}

/// Loads the program; from then on the calling thread and what it starts are held to it.
pub(crate) fn apply(program: &Program) -> io::Result<()> {
    seccompiler::apply_filter(&program.filter()).map_err(|error| match error {
        seccompiler::Error::Prctl(source) | seccompiler::Error::Seccomp(source) => source,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    })
}

#[cfg(test)]
mod tests {
    use super::{Open, Program, program};
    use crate::Net;

    #[test]
    fn every_policy_compiles_on_this_architecture_and_travels() {
        for open in [Net::Off, Net::On, Net::Proxy].into_iter().flat_map(|net| {
            [
                Open::without_namespaces(net, false),
                Open::without_namespaces(net, true),
                Open::with_namespaces(net, false),
                Open::with_namespaces(net, true),
            ]
        }) {
            let program = program(open).unwrap();
            let json = serde_json::to_string(&program).unwrap();
            assert_eq!(serde_json::from_str::<Program>(&json).unwrap(), program);
        }
    }
}
