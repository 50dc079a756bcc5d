//! A place is prepared once and entered by every command: namespaces with a root of their own in them.
//!
//! The helper makes it, hands its namespaces to the caller as descriptors and ends; they live as long as
//! somebody holds them. A command joins them and makes further ones of its own (users, mounts, processes), so
//! what it could do to its view dies with it, while `/tmp`, the private directory, the loopback network and
//! System V objects are those of the sandbox: a server left running in the background can be reached by the
//! next command.
//!
//! Privileges come from a user namespace with one user in it, who is never root outside: a process that is root
//! outside writes to `/proc/sys` without any capability. A caller that is root shows the workspace through a
//! mount that maps its owner to that user, so files keep their owner on disk.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags,
};
use rustix::process::WaitOptions;

use crate::layer::{landlock, privileges};
use crate::places::{Grant, Place};
use crate::sys::Forbid;
use crate::view::{Identity, SHARED_MEMORY, TEMPORARY, View};
use crate::wire::{Handles, Namespace, Slot};

/// Namespaces that all commands of a place share.
const SHARED: libc::c_int =
    libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
/// What a command finds as the machine's name.
const HOST_NAME: &[u8] = b"workspace";
/// Every machine has it, and it is shown again inside.
const PROC: &str = "/proc";

/// What failed, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) step: &'static str,
    pub(crate) source: io::Error,
}

/// Names what a call was for, for `map_err`.
fn step<E: Into<io::Error>>(step: &'static str) -> impl FnOnce(E) -> Failure {
    move |source| Failure { step, source: source.into() }
}

/// A place that is ready, on its way to the caller.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) handles: Vec<(Slot, OwnedFd)>,
    /// What could not be shown, and is no reason to do without the rest.
    pub(crate) notes: Vec<String>,
}

/// A mount that is not attached anywhere yet.
struct Tree {
    path: PathBuf,
    mount: OwnedFd,
}

/// Makes the place. The calling process is in it afterwards, and has no other use.
pub(crate) fn prepare(view: &View, handles: &Handles) -> Result<Ready, Failure> {
    let workspace = handles.get(Slot::Workspace).map_err(step("find the workspace"))?;
    let own = own_directory().map_err(step("open /proc"))?;
    let mut notes = Vec::new();
    let early = match view.identity {
        // Root can show what its user cannot reach, and only before it gives its rights up.
        Some(identity) => {
            let trees = clone_all(view, &mut notes)?;
            let workspace = clone_workspace(view, workspace, Some(identity))?;
            privileges::become_user(identity.user, identity.group)
                .map_err(step("become another user"))?;
            Some((trees, workspace))
        }
        None => None,
    };
    let network = if view.private_network { libc::CLONE_NEWNET } else { 0 };
    unshare_and_map(SHARED | network, own.as_fd()).map_err(step("make namespaces"))?;
    let (trees, workspace) = match early {
        Some(early) => early,
        None => (clone_all(view, &mut notes)?, clone_workspace(view, workspace, None)?),
    };
    if view.private_network {
        let socket = internet_socket(rustix::net::SocketType::DGRAM)
            .map_err(step("make a socket for the loopback interface"))?;
        crate::sys::loopback_up(socket.as_fd()).map_err(step("start the loopback interface"))?;
    }
    if let Err(errno) = rustix::system::sethostname(HOST_NAME) {
        // A container's profile may know the call and not the namespace it is made in.
        notes.push(format!("the machine's name is shown: {errno}"));
    }
    enter_root(view, &trees, &workspace, &mut notes)?;

    let mut handles = Vec::new();
    if let Some(ruleset) = ruleset(view)? {
        handles.push((Slot::Ruleset, ruleset));
    }
    let mut names = vec![
        (Namespace::User, "user"),
        (Namespace::Mount, "mnt"),
        (Namespace::Ipc, "ipc"),
        (Namespace::Uts, "uts"),
    ];
    names.extend(view.private_network.then_some((Namespace::Network, "net")));
    for (namespace, name) in names {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&own, format!("ns/{name}"), flags, Mode::empty())
            .map_err(step("keep a namespace"))?;
        handles.push((Slot::Namespace(namespace), handle));
    }
    if view.listen {
        handles.push((Slot::Listener, listen().map_err(step("listen inside"))?));
    }
    Ok(Ready { handles, notes })
}

/// The calling process under `/proc`, by a handle that stays good when that is covered.
pub(crate) fn own_directory() -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/proc/self", flags, Mode::empty())?)
}

/// Leaves namespaces for new ones, that of users among them, and maps the one user and the one group the calling
/// process has into it.
///
/// Every process may do so with itself; see `user_namespaces(7)`.
pub(crate) fn unshare_and_map(flags: libc::c_int, own: BorrowedFd<'_>) -> io::Result<()> {
    // Afterwards, unmapped, they have no numbers.
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    crate::sys::unshare(flags)?;
    write(own, "setgroups", "deny")?;
    write(own, "uid_map", &format!("{user} {user} 1\n"))?;
    write(own, "gid_map", &format!("{group} {group} 1\n"))
}

fn write(directory: BorrowedFd<'_>, name: &str, text: &str) -> io::Result<()> {
    let file =
        rustix::fs::openat(directory, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    // A map is taken in one write or not at all.
    rustix::io::write(&file, text.as_bytes())?;
    Ok(())
}

fn internet_socket(kind: rustix::net::SocketType) -> rustix::io::Result<OwnedFd> {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    rustix::net::socket_with(rustix::net::AddressFamily::INET, kind, flags, None)
}

/// A socket that listens on a loopback port inside, for somebody outside to accept from.
fn listen() -> io::Result<OwnedFd> {
    let socket = internet_socket(rustix::net::SocketType::STREAM)?;
    rustix::net::bind(&socket, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0))?;
    rustix::net::listen(&socket, 128)?;
    Ok(socket)
}

/// Copies of the mounts below a path, restricted to what `grant` allows.
fn clone(from: BorrowedFd<'_>, path: &Path, grant: Grant) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let mount = rustix::mount::open_tree(from, path, flags)?;
    let forbid = match grant {
        Grant::Read if path == Path::new(PROC) => Forbid::Execution,
        Grant::Read => Forbid::Changes,
        Grant::Write => Forbid::Devices,
        Grant::Device => Forbid::Nothing,
    };
    crate::sys::restrict_mount(mount.as_fd(), forbid, true)?;
    Ok(mount)
}

fn clone_all(view: &View, notes: &mut Vec<String>) -> Result<Vec<Tree>, Failure> {
    let mut trees = Vec::new();
    for shown in &view.shown {
        let path = shown.path.path();
        match clone(CWD, &path, shown.grant) {
            Ok(mount) => trees.push(Tree { path, mount }),
            Err(source) if shown.required => {
                return Err(Failure { step: "show a place the policy names", source });
            }
            Err(error) => notes.push(format!("{} is not shown: {error}", path.display())),
        }
    }
    Ok(trees)
}

/// The workspace, and nothing that was put in its place since it was opened.
fn clone_workspace(
    view: &View,
    workspace: BorrowedFd<'_>,
    identity: Option<Identity>,
) -> Result<Tree, Failure> {
    const SHOW: &str = "show the workspace";
    let path = view.workspace.path();
    let mount = match identity {
        // By the handle itself, as root can.
        Some(_) => clone(workspace, Path::new(""), Grant::Write),
        None => clone(CWD, &path, Grant::Write),
    }
    .map_err(step(SHOW))?;
    let is =
        |handle: BorrowedFd<'_>| rustix::fs::fstat(handle).map(|stat| (stat.st_dev, stat.st_ino));
    if is(mount.as_fd()).map_err(step(SHOW))? != is(workspace).map_err(step(SHOW))? {
        return Err(step(SHOW)(Errno::STALE));
    }
    if let Some(Identity { user, group, instead_of: Some(owner) }) = identity {
        let namespace = owner_map(owner, (user, group)).map_err(step("map the owner"))?;
        // What is mounted below it may be unable to; the workspace itself counts.
        crate::sys::map_owners(mount.as_fd(), namespace.as_fd(), true)
            .or_else(|_| crate::sys::map_owners(mount.as_fd(), namespace.as_fd(), false))
            .map_err(step("show the workspace under another owner"))?;
    }
    Ok(Tree { path, mount })
}

/// A user namespace that stands for "shown as", for `mount_setattr(2)`: a child makes it, and its parent, who has
/// the right, writes the map.
fn owner_map(from: (u32, u32), to: (u32, u32)) -> io::Result<OwnedFd> {
    let (made, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let (stay, release) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let Some(child) = crate::sys::fork()? else {
        drop(release);
        if crate::sys::unshare(libc::CLONE_NEWUSER).is_ok() {
            rustix::io::write(&tell, b"!").ok();
        }
        drop(tell);
        // Until the parent has what it needs.
        rustix::io::read(&stay, &mut [0; 1]).ok();
        crate::guardian::end(0);
    };
    drop(tell);
    drop(stay);
    let namespace = (|| {
        if rustix::io::read(&made, &mut [0; 1])? == 0 {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = format!("/proc/{}", child.as_raw_nonzero());
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        write(directory.as_fd(), "uid_map", &format!("{} {} 1\n", from.0, to.0))?;
        write(directory.as_fd(), "gid_map", &format!("{} {} 1\n", from.1, to.1))?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&directory, "ns/user", flags, Mode::empty())?)
    })();
    drop(release);
    rustix::process::waitpid(Some(child), WaitOptions::empty())?;
    namespace
}

/// Builds the new root and moves into it.
fn enter_root(
    view: &View,
    trees: &[Tree],
    workspace: &Tree,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    const BUILD: &str = "build the view";
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(step("part from the machine's mounts"))?;
    let kernel = clone(CWD, Path::new(PROC), Grant::Read).map_err(step("show /proc"))?;
    let root = if view.whole {
        clone(CWD, Path::new("/"), Grant::Read)
    } else {
        tmpfs(&[("mode", "0755"), ("size", "4m")])
    }
    .map_err(step(BUILD))?;
    // The whole is covered by it and left behind; any directory will do.
    attach(root.as_fd(), CWD, PROC).map_err(step(BUILD))?;
    rustix::process::fchdir(&root).map_err(step("enter the view"))?;
    rustix::process::pivot_root(".", ".").map_err(step("enter the view"))?;
    rustix::mount::unmount(".", UnmountFlags::DETACH).map_err(step("leave the machine's root"))?;
    rustix::process::chdir("/").map_err(step("enter the view"))?;

    let put = |tree: &Tree| put(root.as_fd(), &tree.path, &tree.mount);
    let fixed = |path: &str, mount| Tree { path: path.into(), mount };
    put(&fixed(PROC, kernel)).map_err(step("show /proc"))?;
    let size = view.tmp_bytes.map(|bytes| bytes.to_string());
    let mut options = vec![("mode", "1777")];
    options.extend(size.as_deref().map(|size| ("size", size)));
    let temporary = tmpfs(&options).map_err(step("make /tmp"))?;
    put(&fixed(TEMPORARY, temporary)).map_err(step("make /tmp"))?;
    let size = SHARED_MEMORY.to_string();
    let shared = tmpfs(&[("mode", "1777"), ("size", &size)]).map_err(step("make /dev/shm"))?;
    put(&fixed("/dev/shm", shared)).map_err(step("make /dev/shm"))?;
    match terminals().and_then(|mount| put(&fixed("/dev/pts", mount))) {
        Ok(()) => {}
        Err(error) => notes.push(format!("no pseudo-terminals: {error}")),
    }
    for tree in trees {
        put(tree).map_err(step(BUILD))?;
    }
    put(workspace).map_err(step("show the workspace"))?;
    for (path, target) in &view.links {
        link(root.as_fd(), &path.path(), &target.path()).map_err(step(BUILD))?;
    }
    for (path, text) in &view.texts {
        text_file(root.as_fd(), &path.path(), text).map_err(step(BUILD))?;
    }
    crate::sys::restrict_mount(root.as_fd(), Forbid::Changes, false).map_err(step(BUILD))
}

fn tmpfs(options: &[(&str, &str)]) -> io::Result<OwnedFd> {
    mount("tmpfs", options, MountAttrFlags::MOUNT_ATTR_NODEV)
}

/// Pseudo-terminals of the place's own.
fn terminals() -> io::Result<OwnedFd> {
    let options = [("mode", "0620"), ("ptmxmode", "0666")];
    mount("devpts", &options, MountAttrFlags::MOUNT_ATTR_NOEXEC)
}

/// The processes of the calling process's own namespace.
pub(crate) fn processes() -> io::Result<OwnedFd> {
    let flags = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    mount("proc", &[], flags)
}

fn mount(kind: &str, options: &[(&str, &str)], flags: MountAttrFlags) -> io::Result<OwnedFd> {
    let system = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        rustix::mount::fsconfig_set_string(&system, *name, *value)?;
    }
    rustix::mount::fsconfig_create(&system)?;
    let flags = flags | MountAttrFlags::MOUNT_ATTR_NOSUID;
    Ok(rustix::mount::fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}

/// Attaches a mount at a path below `to`, or at `to` itself where the path is empty.
pub(crate) fn attach(mount: BorrowedFd<'_>, to: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    let mut flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    if path.is_empty() {
        flags |= MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    }
    Ok(rustix::mount::move_mount(mount, "", to, path, flags)?)
}

/// Attaches a mount at a path of the view, which is made where it is missing.
fn put(root: BorrowedFd<'_>, path: &Path, mount: &OwnedFd) -> io::Result<()> {
    let mode = rustix::fs::fstat(mount)?.st_mode;
    let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
    let (parent, name) = parent(root, path)?;
    let found = |flags| rustix::fs::openat(&parent, &name, flags, Mode::empty());
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let point = match found(flags) {
        Ok(point) => point,
        Err(Errno::NOENT) if is_directory => {
            rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o755))?;
            found(flags)?
        }
        Err(Errno::NOENT) => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            rustix::fs::openat(&parent, &name, flags, Mode::from_raw_mode(0o644))?;
            found(OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?
        }
        Err(errno) => return Err(errno.into()),
    };
    attach(mount.as_fd(), point.as_fd(), "")
}

/// The directory that holds a path of the view, made where it is missing, without following links.
fn parent(root: BorrowedFd<'_>, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let names: Vec<_> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let Some((last, before)) = names.split_last() else {
        return Err(Errno::INVAL.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut directory = rustix::fs::openat(root, ".", flags, Mode::empty())?;
    for name in before {
        directory = match rustix::fs::openat(&directory, *name, flags, Mode::empty()) {
            Err(Errno::NOENT) => {
                rustix::fs::mkdirat(&directory, *name, Mode::from_raw_mode(0o755))?;
                rustix::fs::openat(&directory, *name, flags, Mode::empty())?
            }
            other => other?,
        };
    }
    Ok((directory, PathBuf::from(last)))
}

fn link(root: BorrowedFd<'_>, path: &Path, target: &Path) -> io::Result<()> {
    let (parent, name) = parent(root, path)?;
    match rustix::fs::symlinkat(target, &parent, &name) {
        // A part of the machine that is shown has it already.
        Ok(()) | Err(Errno::EXIST | Errno::ROFS) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn text_file(root: BorrowedFd<'_>, path: &Path, text: &str) -> io::Result<()> {
    let (parent, name) = parent(root, path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&parent, &name, flags, Mode::from_raw_mode(0o644))?;
    io::Write::write_all(&mut std::fs::File::from(file), text.as_bytes())
}

/// What Landlock adds to the view: a second wall around the places that can be written to, and signals.
fn ruleset(view: &View) -> Result<Option<OwnedFd>, Failure> {
    const MAKE: &str = "make a Landlock ruleset";
    if crate::sys::landlock_abi().is_err() {
        return Ok(None);
    }
    let open = |path: &Path, grant| {
        crate::places::open(path, grant).map_err(|errno| step(MAKE)(io::Error::from(errno)))
    };
    let mut places: Vec<Place> = vec![open(Path::new("/"), Grant::Read)?];
    for shown in view.shown.iter().filter(|shown| shown.grant != Grant::Read) {
        // What could not be shown is noted already.
        places.extend(crate::places::open(&shown.path.path(), shown.grant).ok());
    }
    for path in [view.workspace.path(), TEMPORARY.into(), "/dev/shm".into()] {
        places.push(open(&path, Grant::Write)?);
    }
    places.extend(crate::places::open(Path::new("/dev/pts"), Grant::Device).ok());
    landlock::second_wall(&places).map(Some).map_err(step(MAKE))
}
