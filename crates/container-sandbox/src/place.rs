//! Where a container engine may be listening: a list, made from the environment alone.
//!
//! Invariant: nothing here touches the file system or the network, and no expanded value reaches the
//! name of a place. Order matters: what the user said first, then the system's engines, then the user's.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::WhyNot;

/// A place and how to reach it, or why it cannot even be tried.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) socket: Result<PathBuf, WhyNot>,
}

/// The places in the order they are tried. A socket named by `DOCKER_HOST` is the only one: a user who
/// points at one engine must not be given another behind their back. A host elsewhere cannot be used; the
/// usual places are tried then, and the list says what became of the variable.
pub(crate) fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<Place> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let host = set("DOCKER_HOST").map_or(Err(WhyNot::Unset), unix_path);
    let host = Place { name: "DOCKER_HOST", socket: host };
    if host.socket.is_ok() {
        return vec![host];
    }
    let below = |name: &str, rest: &str| {
        set(name).map(|base| PathBuf::from(base).join(rest)).ok_or(WhyNot::Unset)
    };
    vec![
        host,
        Place { name: "/var/run/docker.sock", socket: Ok("/var/run/docker.sock".into()) },
        Place { name: "/run/podman/podman.sock", socket: Ok("/run/podman/podman.sock".into()) },
        Place {
            name: "$XDG_RUNTIME_DIR/podman/podman.sock",
            socket: below("XDG_RUNTIME_DIR", "podman/podman.sock"),
        },
        Place {
            name: "$XDG_RUNTIME_DIR/docker.sock",
            socket: below("XDG_RUNTIME_DIR", "docker.sock"),
        },
        Place {
            name: "~/.docker/run/docker.sock",
            socket: below("HOME", ".docker/run/docker.sock"),
        },
    ]
}

/// The path in `unix:///path`, or a bare absolute path, as Docker's own tools take it.
fn unix_path(value: OsString) -> Result<PathBuf, WhyNot> {
    let text = value.into_string().map_err(|_| WhyNot::NotUnix)?;
    let path = PathBuf::from(text.strip_prefix("unix://").unwrap_or(&text));
    if path.is_absolute() { Ok(path) } else { Err(WhyNot::NotUnix) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(environment: &[(&str, &str)], expected: &[(&str, Result<&str, WhyNot>)]) {
        let found = places(|name| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
        });
        let found: Vec<_> = found
            .iter()
            .map(|place| {
                (place.name, place.socket.as_ref().map(|p| p.to_str().unwrap()).map_err(|e| *e))
            })
            .collect();
        assert_eq!(found, expected);
    }

    const USUAL: [(&str, Result<&str, WhyNot>); 5] = [
        ("/var/run/docker.sock", Ok("/var/run/docker.sock")),
        ("/run/podman/podman.sock", Ok("/run/podman/podman.sock")),
        ("$XDG_RUNTIME_DIR/podman/podman.sock", Ok("/run/user/7/podman/podman.sock")),
        ("$XDG_RUNTIME_DIR/docker.sock", Ok("/run/user/7/docker.sock")),
        ("~/.docker/run/docker.sock", Ok("/h/.docker/run/docker.sock")),
    ];

    fn check_usual(docker_host: &str, why_not: WhyNot) {
        let mut expected = vec![("DOCKER_HOST", Err(why_not))];
        expected.extend(USUAL);
        check(
            &[("DOCKER_HOST", docker_host), ("XDG_RUNTIME_DIR", "/run/user/7"), ("HOME", "/h")],
            &expected,
        );
    }

    #[test]
    fn a_socket_in_docker_host_is_the_only_place() {
        for value in ["unix:///run/x.sock", "/run/x.sock"] {
            check(&[("DOCKER_HOST", value), ("HOME", "/h")], &[("DOCKER_HOST", Ok("/run/x.sock"))]);
        }
    }

    #[test]
    fn a_host_elsewhere_is_passed_over() {
        for value in
            ["tcp://user:pw@host:2376", "ssh://host", "npipe:////./pipe/x", "unix://relative", "x"]
        {
            check_usual(value, WhyNot::NotUnix);
        }
    }

    #[test]
    fn an_empty_docker_host_is_not_set() {
        check_usual("", WhyNot::Unset);
    }

    #[test]
    fn a_place_below_an_unset_variable_says_so() {
        let mut expected = vec![("DOCKER_HOST", Err(WhyNot::Unset))];
        expected.extend(USUAL);
        for place in &mut expected[3..] {
            place.1 = Err(WhyNot::Unset);
        }
        check(&[], &expected);
    }
}
