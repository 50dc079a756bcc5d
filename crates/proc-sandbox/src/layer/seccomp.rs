//! System calls commands have no use for, refused.
//!
//! A list of denials, not of permissions: build tools use most of the interface, and a call that is missing
//! from a list of permissions is a broken compiler. Refusals are errors, not deaths, so that programs fall back.
//!
//! Two programs. One, written by hand, judges by the call's number alone: refused (`EPERM`), said not to exist
//! (`ENOSYS`: `clone3(2)`, whose flags lie in memory a filter cannot read, and the other calling convention of
//! `x86_64`), or said to have worked (`setsid(2)`, `setpgid(2)`: the *pinned group*). The other, compiled, refuses
//! calls for some of their arguments. A call in the 32-bit convention kills the process.
//!
//! The pinned group is what keeps a command's processes together without a PID namespace: whatever they fork
//! stays in the leader's process group, and one `kill(2)` reaches all of it. The price: programs that want a
//! session of their own see a call that succeeded without effect.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};
use serde::{Deserialize, Serialize};

use crate::Net;

/// A program as it travels: code, two jump distances, operand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program(Vec<(u16, u8, u8, u32)>);

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
const PRIO_USER: u64 = 2;
/// `IOPRIO_WHO_USER` of `linux/ioprio.h`.
const IOPRIO_WHO_USER: u64 = 3;
/// Requests of `asm-generic/ioctls.h`, whose type in the C library differs by system.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
/// The bits of a socket's type argument that are the type.
const SOCKET_TYPE: u64 = 0xf;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// What has to be refused because nothing else keeps it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    /// There are no namespaces: processes can leave their group, and other programs' objects are in reach.
    pub(crate) machine: bool,
    /// The network is the machine's, and no namespace is around its Unix sockets.
    pub(crate) unix_sockets: bool,
    /// No socket of any kind, there being no namespace of networks.
    pub(crate) no_sockets: bool,
}

impl Open {
    /// On the rung without namespaces.
    pub(crate) fn without_namespaces(net: Net) -> Self {
        Self { machine: true, unix_sockets: true, no_sockets: net != Net::On }
    }

    /// On the rungs with namespaces. `scoped`: Landlock keeps abstract Unix sockets apart.
    pub(crate) fn with_namespaces(net: Net, scoped: bool) -> Self {
        Self { machine: false, unix_sockets: net == Net::On && !scoped, no_sockets: false }
    }
}

/// Compiles the programs for a policy, in the order they are to be loaded.
pub(crate) fn programs(open: Open) -> Result<Vec<Program>, seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let errno = |errno: libc::c_int| SeccompAction::Errno(errno.unsigned_abs());
    let compile = |rules: Rules, action| -> Result<BpfProgram, seccompiler::Error> {
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?;
        Ok(BpfProgram::try_from(filter)?)
    };
    let programs = [answered(open), Some(compile(judged(open)?, errno(libc::EPERM))?)];
    let programs = programs.into_iter().flatten();
    Ok(programs.map(Program::from).collect())
}

/// Calls refused for some of their arguments.
fn judged(open: Open) -> Result<Rules, seccompiler::Error> {
    let mut rules = Rules::new();
    let mut refuse = |call: libc::c_long, conditions: &[(u8, Op, u64)]| {
        let conditions = conditions
            .iter()
            .map(|(index, op, value)| SeccompCondition::new(*index, Len::Dword, op.clone(), *value))
            .collect::<Result<Vec<_>, _>>()?;
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok::<(), seccompiler::Error>(())
    };
    let word = |value: libc::c_int| u64::from(value.unsigned_abs());
    let has = |bits: u64| Op::MaskedEq(bits);

    for flag in NEW_NAMESPACES.map(word) {
        refuse(libc::SYS_clone, &[(0, has(flag), flag)])?;
    }
    // Limits and priorities of processes that are not the caller's own: one user's are open to each other, and
    // Landlock does not know these calls.
    refuse(libc::SYS_prlimit64, &[(0, Op::Ne, 0)])?;
    refuse(libc::SYS_setpriority, &[(0, Op::Eq, PRIO_USER)])?;
    refuse(libc::SYS_ioprio_set, &[(0, Op::Eq, IOPRIO_WHO_USER)])?;
    // Typing into a terminal that somebody else reads.
    refuse(libc::SYS_ioctl, &[(1, Op::Eq, TIOCSTI)])?;
    refuse(libc::SYS_ioctl, &[(1, Op::Eq, TIOCLINUX)])?;
    // A setuid bit on a file that others may execute; outside files of the same user can be reached by chmod.
    let setuid = u64::from(libc::S_ISUID);
    #[cfg(target_arch = "x86_64")]
    refuse(libc::SYS_chmod, &[(1, has(setuid), setuid)])?;
    refuse(libc::SYS_fchmod, &[(1, has(setuid), setuid)])?;
    refuse(libc::SYS_fchmodat, &[(2, has(setuid), setuid)])?;
    refuse(SYS_FCHMODAT2, &[(2, has(setuid), setuid)])?;
    if open.unix_sockets {
        // A datagram socket of a pair can send to a path; a stream of a pair is bound to its peer for good. Raw
        // Unix sockets are datagram sockets.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW].map(word) {
            refuse(libc::SYS_socketpair, &[(1, has(SOCKET_TYPE), kind)])?;
        }
    }
    if open.no_sockets {
        // Refused whatever its arguments.
        return Ok(rules);
    }
    let netlink = word(libc::AF_NETLINK);
    let mut families = vec![word(libc::AF_INET), word(libc::AF_INET6), netlink];
    families.extend((!open.unix_sockets).then_some(word(libc::AF_UNIX)));
    let others: Vec<_> = families.into_iter().map(|family| (0, Op::Ne, family)).collect();
    refuse(libc::SYS_socket, &others)?;
    // Name resolution asks the kernel for its addresses; no other netlink family is needed.
    refuse(libc::SYS_socket, &[(0, Op::Eq, netlink), (2, Op::Ne, word(libc::NETLINK_ROUTE))])?;
    Ok(rules)
}

/// Calls that are answered by their number alone: refused, said not to exist (`clone3(2)`), or, where the group is
/// pinned, said to have worked. A call in the x32 convention does not exist either: it has the same architecture as a
/// native one and another number, so no other rule would match it.
///
/// Written by hand: the kernel compiles each program anew for every command, and the crate's compiler takes three
/// steps a call and one answer a program. `None` only if a constant of the C library did not fit.
fn answered(open: Open) -> Option<BpfProgram> {
    /// `__X32_SYSCALL_BIT` of `asm/unistd.h`.
    const X32_BIT: u32 = 0x4000_0000;
    let step = |code: libc::c_uint, jt: usize, k: u32| {
        let (code, jt) = (u16::try_from(code).ok()?, u8::try_from(jt).ok()?);
        Some(sock_filter { code, jt, jf: 0, k })
    };
    let number = |call: libc::c_long| u32::try_from(call).ok();
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    // Comparison, operand, and which of the answers behind the comparisons it leads to.
    let mut comparisons = vec![(equal, number(libc::SYS_clone3)?, 1)];
    if cfg!(target_arch = "x86_64") {
        comparisons.push((libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, X32_BIT, 1));
    }
    let pinned: &[libc::c_long] =
        if open.machine { &[libc::SYS_setsid, libc::SYS_setpgid] } else { &[] };
    let shared = if open.machine { SHARED_BETWEEN_PROGRAMS } else { &[] };
    let sockets: &[libc::c_long] = if open.no_sockets { &[libc::SYS_socket] } else { &[] };
    for call in pinned {
        comparisons.push((equal, number(*call)?, 2));
    }
    for call in REFUSED.iter().chain(shared).chain(sockets) {
        comparisons.push((equal, number(*call)?, 3));
    }
    let answers = [
        SeccompAction::Allow,
        SeccompAction::Errno(libc::ENOSYS.unsigned_abs()),
        SeccompAction::Errno(0),
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
    ];
    // The call's number is the first word of what a program sees; see seccomp(2).
    let load = step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    let count = comparisons.len();
    let comparisons = comparisons
        .into_iter()
        .enumerate()
        .map(|(at, (code, operand, answer))| step(code, count - 1 - at + answer, operand));
    let answers =
        answers.into_iter().map(|action| step(libc::BPF_RET | libc::BPF_K, 0, u32::from(action)));
    std::iter::once(load).chain(comparisons).chain(answers).collect()
}

impl From<BpfProgram> for Program {
    fn from(program: BpfProgram) -> Self {
        Self(program.into_iter().map(|step| (step.code, step.jt, step.jf, step.k)).collect())
    }
}

/// Loads the programs; from then on the calling thread and what it starts are held to them.
pub(crate) fn apply(programs: &[Program]) -> io::Result<()> {
    for Program(steps) in programs {
        let program: BpfProgram =
            steps.iter().map(|&(code, jt, jf, k)| sock_filter { code, jt, jf, k }).collect();
        seccompiler::apply_filter(&program).map_err(|error| match error {
            seccompiler::Error::Prctl(source) | seccompiler::Error::Seccomp(source) => source,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Open, Program, programs};
    use crate::Net;

    #[test]
    fn every_policy_compiles_on_this_architecture() {
        for open in [Net::Off, Net::On, Net::Proxy].into_iter().flat_map(|net| {
            [
                Open::without_namespaces(net),
                Open::with_namespaces(net, false),
                Open::with_namespaces(net, true),
            ]
        }) {
            let programs = programs(open).unwrap();
            assert!(programs.iter().all(|Program(steps)| steps.len() > 3 && steps.len() < 4096));
            let json = serde_json::to_string(&programs).unwrap();
            assert_eq!(serde_json::from_str::<Vec<Program>>(&json).unwrap(), programs);
        }
    }
}
