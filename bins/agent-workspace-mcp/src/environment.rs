//! The environment of commands: built from nothing by an allow-list, so that no secret of the server leaks.
//!
//! What passes is what programs need to find each other, speak the user's language and trust the right
//! certificates. The operator's git name and address pass as `GIT_AUTHOR_*` and `GIT_COMMITTER_*`, so that
//! `git commit` works without the operator's home.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use egress_proxy::HostRules;
use proc_runner::{Cancel, Command, Discard, End, Limits};

use crate::config::Network;

/// The server's proxies, which pass only where the network does.
const PROXIES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
/// What a command without a `PATH` of its own gets.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Names and values; `places` are those of the command's private home and of toolchains.
///
/// # Security
///
/// `given` is the server's environment, secrets included. Only names that
/// [`proc_sandbox::environment::passes`] knows are taken from it, and proxies where the network is the host's.
pub fn build(
    given: impl Iterator<Item = (OsString, OsString)>,
    network: &Network,
    places: impl IntoIterator<Item = (OsString, OsString)>,
    identity: &Identity,
) -> BTreeMap<OsString, OsString> {
    let mut built: BTreeMap<OsString, OsString> =
        given.filter(|(name, _)| passes(name, network)).collect();
    built.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    built.entry("LANG".into()).or_insert_with(|| "C.UTF-8".into());
    built.entry("TERM".into()).or_insert_with(|| "dumb".into());
    built.extend(places);
    let mut set = |name: &str, value: &OsStr| built.insert(name.into(), value.into());
    // A prompt that nobody answers would only run into the timeout.
    set("GIT_TERMINAL_PROMPT", "0".as_ref());
    // A private home is another mount than the workspace, across which there are no hard links.
    set("UV_LINK_MODE", "copy".as_ref());
    for (role, value) in [("NAME", &identity.name), ("EMAIL", &identity.email)] {
        if let Some(value) = value {
            set(&format!("GIT_AUTHOR_{role}"), value.as_ref());
            set(&format!("GIT_COMMITTER_{role}"), value.as_ref());
        }
    }
    built
}

fn passes(name: &OsStr, network: &Network) -> bool {
    let is_proxy = PROXIES.iter().any(|proxy| name.eq_ignore_ascii_case(proxy));
    proc_sandbox::environment::passes(name) || (is_proxy && *network == Network::On)
}

/// Variables that lead programs to the server's own proxy, by the names that each of them looks for. A command's own
/// loopback is reached without it, but for names of it that the operator has put on the list.
pub fn proxy(address: SocketAddr, rules: &HostRules) -> impl Iterator<Item = (OsString, OsString)> {
    let url = format!("http://{address}");
    let names = [("localhost", "localhost"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")];
    let own = names.iter().filter(|(_, host)| !rules.mentions(host)).map(|(name, _)| *name);
    let local = own.collect::<Vec<_>>().join(",");
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        .map(|name| (name, url.clone()))
        .into_iter()
        .chain([("NO_PROXY", local)])
        .flat_map(|(name, value)| [(name.to_owned(), value.clone()), (name.to_lowercase(), value)])
        // Node looks at them when it is told to.
        .chain([("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned())])
        .map(|(name, value)| (name.into(), value.into()))
}

/// The operator's git name and address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// `user.name`.
    pub name: Option<String>,
    /// `user.email`.
    pub email: Option<String>,
}

impl Identity {
    /// What the operator's own git configuration says; nothing where there is no git, or no answer in time.
    pub fn of_operator() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        let git = std::env::split_paths(&path)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join("git"))
            .find(|git| git.is_file());
        let (Some(git), Some(home)) = (git, std::env::var_os("HOME")) else {
            return Self::default();
        };
        let ask = |key: &str| ask_git(&git, &home, key);
        Self { name: ask("user.name"), email: ask("user.email") }
    }
}

/// One value of the operator's global configuration; never a repository's, which a workspace could plant.
fn ask_git(git: &PathBuf, home: &OsStr, key: &str) -> Option<String> {
    let command = Command::new(git)
        .args(["config", "--global", "--get", key])
        .env("HOME", home)
        .envs(std::env::var_os("XDG_CONFIG_HOME").map(|place| ("XDG_CONFIG_HOME", place)));
    let limits = Limits::new(Duration::from_secs(2));
    let outcome = proc_runner::run(command, &limits, &Cancel::new().ok()?, &mut Discard).ok()?;
    if outcome.end != End::Exited(0) {
        return None;
    }
    let value = String::from_utf8(outcome.captured.head).ok()?;
    let value = value.trim();
    (!value.is_empty() && !value.contains('\n')).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(given: &[(&str, &str)], network: &Network) -> Vec<String> {
        let given = given.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let identity = Identity { name: Some("Ada".into()), email: None };
        let places =
            [("HOME", "/h"), ("TMPDIR", "/h")].map(|(name, place)| (name.into(), place.into()));
        build(given, network, places, &identity)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect()
    }

    #[test]
    fn only_listed_names_pass() {
        let given = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("MCP_API_KEY", "s"),
            ("LD_PRELOAD", "x"),
            ("BASH_ENV", "x"),
            ("HOME", "/root"),
            ("https_proxy", "http://user:secret@p"),
            ("SSL_CERT_FILE", "/c"),
        ];
        assert_eq!(
            built(&given, &Network::Off),
            [
                "GIT_AUTHOR_NAME=Ada",
                "GIT_COMMITTER_NAME=Ada",
                "GIT_TERMINAL_PROMPT=0",
                "HOME=/h",
                "LANG=C.UTF-8",
                "LC_ALL=C",
                "PATH=/bin",
                "SSL_CERT_FILE=/c",
                "TERM=dumb",
                "TMPDIR=/h",
                "UV_LINK_MODE=copy",
            ]
        );
        assert!(
            built(&given, &Network::On).contains(&"https_proxy=http://user:secret@p".to_owned())
        );
    }
}
