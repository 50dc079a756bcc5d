//! Where commands may read and write: the lists, and their handles.
//!
//! Landlock grants and cannot take away, so each list names the smallest places that work. A place that is
//! missing is left out, unless the policy named it.

use std::ffi::OsString;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::{Error, HostRead, Net, Policy};

/// What may be done below a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Grant {
    /// Read and execute.
    Read,
    /// Everything but device nodes.
    Write,
    /// Read and write one device.
    Device,
}

/// A place, opened.
#[derive(Debug)]
pub(crate) struct Place {
    /// As it is named.
    pub(crate) path: PathBuf,
    pub(crate) grant: Grant,
    pub(crate) handle: OwnedFd,
    pub(crate) is_directory: bool,
}

/// Programs and libraries.
const PROGRAMS: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system/sw",
    "/home/linuxbrew/.linuxbrew",
];

/// Settings without secrets. Not `/etc` as a whole: shadow, private keys, package managers' credentials.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/java",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/vimrc",
    "/etc/xdg",
];

/// Settings directories whose names carry a version.
const VERSIONED_SETTINGS: &[&str] = &["java-", "lua", "perl", "php", "python", "ruby"];

/// What the kernel tells. `/proc` of other processes is closed by Landlock where it shows more than a name.
const KERNEL: &[&str] = &[
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Devices that hold nothing.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Toolchains and their caches below a home. Beside several of them lie credentials
/// (`.cargo/credentials.toml`, `.npmrc`, `.config`), so subfolders are named.
const TOOLCHAINS: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".bun/install/cache",
    ".cache/pip",
    ".cache/uv",
    ".cargo/bin",
    ".cargo/config.toml",
    ".cargo/env",
    ".cargo/git",
    ".cargo/registry",
    ".deno/bin",
    ".local/bin",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv",
    ".nodenv",
    ".npm/_cacache",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman/candidates",
    ".volta",
    "go/bin",
    "go/pkg/mod",
];

/// Variables that lead to toolchains below a home, with the places they name.
const VARIABLES: &[(&str, &str)] = &[
    ("ASDF_DATA_DIR", ".asdf"),
    ("NVM_DIR", ".nvm"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("RUSTUP_HOME", ".rustup"),
    ("SDKMAN_DIR", ".sdkman"),
    ("VOLTA_HOME", ".volta"),
];

/// The same for caches that are of use only while nothing can be fetched into them.
const OFFLINE_VARIABLES: &[(&str, &str)] =
    &[("CARGO_HOME", ".cargo"), ("GOMODCACHE", "go/pkg/mod")];

/// The variables whose places are there.
pub(crate) fn toolchain_variables(home: Option<&Path>, net: Net) -> Vec<(OsString, OsString)> {
    let Some(home) = home else { return Vec::new() };
    let offline = if net == Net::Off { OFFLINE_VARIABLES } else { &[] };
    let pairs = VARIABLES.iter().chain(offline).map(|(name, place)| (name, home.join(place)));
    pairs.filter(|(_, path)| path.is_dir()).map(|(name, path)| (name.into(), path.into())).collect()
}

/// Opens everything a policy grants; the workspace comes first.
pub(crate) fn resolve(policy: &Policy, scratch: &OwnedFd) -> Result<Vec<Place>, Error> {
    let mut places = Vec::new();
    for directory in [&policy.workspace, scratch] {
        let handle = directory.try_clone().map_err(Error::system("keep a directory open"))?;
        let path = PathBuf::new();
        places.push(Place { path, grant: Grant::Write, handle, is_directory: true });
    }
    let named = |paths: &[PathBuf], grant| -> Result<Vec<Place>, Error> {
        let open = |path: &PathBuf| {
            open(path, grant)
                .map_err(|errno| Error::Place { path: path.clone(), source: errno.into() })
        };
        paths.iter().map(open).collect()
    };
    places.extend(named(&policy.extra_write, Grant::Write)?);
    places.extend(named(&policy.extra_read, Grant::Read)?);
    places.extend(found(DEVICES, Grant::Device));
    match policy.read {
        HostRead::All => places.extend(found(&["/"], Grant::Read)),
        HostRead::Toolchains => {
            for list in [PROGRAMS, SETTINGS, KERNEL] {
                places.extend(found(list, Grant::Read));
            }
            places.extend(versioned_settings());
            if let Some(home) = &policy.home {
                let paths = TOOLCHAINS.iter().map(|name| home.join(name));
                places.extend(paths.filter_map(|path| open(&path, Grant::Read).ok()));
            }
        }
    }
    Ok(places)
}

fn found(paths: &[&str], grant: Grant) -> impl Iterator<Item = Place> {
    // A place that is missing, or closed to the user, is one commands cannot use either way.
    paths.iter().filter_map(move |path| open(Path::new(path), grant).ok())
}

fn versioned_settings() -> Vec<Place> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open("/etc", flags, Mode::empty()) else { return Vec::new() };
    let Ok(entries) = rustix::fs::Dir::read_from(&directory) else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| VERSIONED_SETTINGS.iter().any(|start| name.starts_with(start)))
        .filter_map(|name| open(&Path::new("/etc").join(name), Grant::Read).ok())
        .collect()
}

/// Opens a place without any right to it: a handle to name it by.
pub(crate) fn open(path: &Path, grant: Grant) -> Result<Place, Errno> {
    let handle = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mode = rustix::fs::fstat(handle.as_fd())?.st_mode;
    let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
    Ok(Place { path: path.to_owned(), grant, handle, is_directory })
}
