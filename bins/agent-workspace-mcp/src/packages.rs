//! Packages of a language, installed into a native place before code runs there.
//!
//! A second shell in the same place has the operator's network while the packages are fetched, and is gone before the
//! place is handed out. Python packages go into a virtual environment, `.venv`, JavaScript ones into `node_modules`;
//! both are names that listings pass over. Invariants: what a caller writes reaches an installer as one word of a
//! package's form, never as an option, an address, a path or shell text; a failed installation leaves no place.
//! Non-goals: lock files, languages beside these two, packages for containers (an image holds them).
//!
//! # Threats
//!
//! A package runs code of strangers while it is installed. It runs as confined as any other code in the place, with the
//! place's files and the operator's network; it meets no secret there.

use crate::config::Network;
use crate::disposables::Native;
use crate::languages;
use crate::reply::{ErrorKind, Failure};
use crate::running::{self, Output};
use crate::workspace::Session;

/// Packages in one call.
const MOST: usize = 50;
/// Characters of one.
const LONGEST: usize = 200;
/// What an installation's line answers when its program is missing.
const NO_INSTALLER: i64 = 97;
/// Variables in which operators name their own index.
const INDEXES: &[&str] = &[
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "PIP_INDEX_URL",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
];

/// What is to be installed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packages {
    python: Vec<String>,
    javascript: Vec<String>,
}

/// One installer's work.
struct Installation<'p> {
    language: &'static str,
    packages: &'p [String],
    /// The shell line, without the packages.
    line: &'static str,
    /// What leads programs to the packages afterwards.
    preamble: &'static str,
    /// What would bring the installer.
    brought_by: &'static str,
}

impl Packages {
    /// Reads packages as callers name them: `numpy`, `requests==2.32`, `python:numpy`, `npm:left-pad@1.3`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgs`] for a language without packages here, for what is no package's name, for too many.
    ///
    /// # Security
    ///
    /// `given` is hostile. What passes holds letters, digits and `._-[],=<>!~*+^@` alone, a `/` only after an npm scope,
    /// and begins with a letter, a digit or that scope: it is no option, no path and no address, and has no meaning to a
    /// shell between single quotes.
    pub fn parse(given: &[String]) -> Result<Self, Failure> {
        if given.len() > MOST {
            return Err(Failure::invalid_args(format!("at most {MOST} packages are installed")));
        }
        let mut packages = Self::default();
        for text in given {
            let (language, name) = text.split_once(':').unwrap_or(("python", text));
            let language = language.trim().to_lowercase();
            let (list, is_package): (_, fn(&str) -> bool) = match language.as_str() {
                "pip" | "pypi" => (&mut packages.python, is_python),
                "npm" => (&mut packages.javascript, is_npm),
                other => match languages::find(other).map(|language| language.name) {
                    Some("python") => (&mut packages.python, is_python),
                    Some("javascript" | "typescript") => (&mut packages.javascript, is_npm),
                    _ => {
                        return Err(Failure::invalid_args(format!(
                            "no packages of '{other}' can be installed; python and npm ones can: \
                             [\"numpy\", \"npm:left-pad\"]"
                        )));
                    }
                },
            };
            let name = name.trim();
            if name.len() > LONGEST || !is_package(name) {
                return Err(Failure::invalid_args(format!(
                    "'{}' is not a package's name with versions, such as requests==2.32 or npm:left-pad@1.3; \
                     addresses, paths and options are not taken",
                    name.chars().take(LONGEST).collect::<String>().escape_default()
                )));
            }
            list.push(name.to_owned());
        }
        Ok(packages)
    }

    /// Whether there is nothing to install.
    pub fn is_empty(&self) -> bool {
        self.python.is_empty() && self.javascript.is_empty()
    }

    /// The network that fetches them; `None` where there is nothing to fetch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgs`] where the operator gives none.
    pub fn network(&self, allowed: &Network) -> Result<Option<Network>, Failure> {
        match allowed {
            _ if self.is_empty() => Ok(None),
            Network::Off => Err(Failure::invalid_args(
                "packages cannot be fetched: the operator gives no network; use what is installed, or ask the operator \
                 for --network allow=HOST with the package index's hosts",
            )),
            allowed => Ok(Some(allowed.clone())),
        }
    }

    /// What an answer says of them.
    pub fn told(&self) -> String {
        let names: Vec<_> =
            self.python.iter().chain(&self.javascript).map(String::as_str).collect();
        if names.is_empty() { String::new() } else { format!("; installed: {}", names.join(", ")) }
    }

    /// Installs them, with this network while it lasts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InterpreterMissing`] without an installer; [`ErrorKind::InvalidArgs`] when it fails,
    /// [`ErrorKind::Timeout`] and [`ErrorKind::Cancelled`], each with what it said.
    pub fn install(
        &self,
        session: &Session,
        native: &mut Native,
        network: Network,
    ) -> Result<(), Failure> {
        let workspace = &session.workspace;
        let shell = native.shell_with(&workspace.config, network)?;
        if let Some(refused) = shell.refused() {
            return Err(refused);
        }
        let index = indexes(|name| std::env::var(name).ok());
        for installation in self.installations() {
            let Installation { language, packages, line, preamble, brought_by } = installation;
            let line = format!("{index}{line} '{}'", packages.join("' '"));
            let timeout = workspace.config.max_command_timeout;
            let mut output = Output::begin(session)?;
            let ready = shell.prepare(&line, native.jail().open_dir(".")?, &[])?;
            let (ended, rung) =
                running::run(ready, timeout, &session.cancel, &mut output, shell.rung())?;
            if ended.exit_code == NO_INSTALLER {
                return Err(Failure::new(
                    ErrorKind::InterpreterMissing,
                    format!(
                        "this machine, as far as sandboxes see it, has no installer of {language} packages; \
                         {brought_by} would bring one"
                    ),
                ));
            }
            let denials: Vec<_> = shell.denials().iter().map(ToString::to_string).collect();
            if !denials.is_empty() {
                workspace.audit.denied_network(&denials);
            }
            let notes = denials.iter().map(|denied| format!("[network: {denied}]")).collect();
            let code = ended.exit_code;
            let reply = running::answer("install packages", timeout, &ended, output, &rung, notes)?;
            if code != 0 {
                return Err(Failure::new(
                    ErrorKind::InvalidArgs,
                    format!(
                        "{}\n[the packages could not be installed; no sandbox is open]",
                        reply.text.trim_end()
                    ),
                )
                .facts(reply.facts));
            }
            native.preamble.push_str(preamble);
        }
        Ok(())
    }

    fn installations(&self) -> impl Iterator<Item = Installation<'_>> {
        let python = Installation {
            language: "python",
            packages: &self.python,
            line: PYTHON,
            preamble: "export VIRTUAL_ENV=\"$PWD/.venv\" PATH=\"$PWD/.venv/bin:$PATH\"; ",
            brought_by: "uv, or the packages python3 and python3-pip,",
        };
        let javascript = Installation {
            language: "javascript",
            packages: &self.javascript,
            line: JAVASCRIPT,
            preamble: "export PATH=\"$PWD/node_modules/.bin:$PATH\"; ",
            brought_by: "the package npm",
        };
        [python, javascript].into_iter().filter(|installation| !installation.packages.is_empty())
    }
}

/// The interpreter is the one that code would run by without packages, itself and not a version manager's shim, which may
/// want to write beside itself after an installation. `uv` may not fetch another.
const PYTHON: &str = r#"python=$(python3 -c 'import sys; print(sys.executable)') || exit 97
if command -v uv >/dev/null; then
  add() { uv venv -q --no-python-downloads --python "$python" .venv && uv pip install --no-progress --python .venv/bin/python -- "$@"; }
elif "$python" -m pip --version >/dev/null 2>&1; then
  add() { "$python" -m venv --without-pip .venv && "$python" -m pip --python .venv/bin/python install --no-input --disable-pip-version-check --progress-bar off -- "$@"; }
else exit 97; fi
add"#;

const JAVASCRIPT: &str = "command -v npm >/dev/null || exit 97
npm install --prefix . --no-save --no-package-lock --no-audit --no-fund --no-progress --no-update-notifier --";

/// Shell words that tell installers the operator's own index. An address with credentials is not told: what is installed
/// could read it.
fn indexes(variable: impl Fn(&str) -> Option<String>) -> String {
    let mut words = String::new();
    for name in INDEXES {
        let Some(address) = variable(name).filter(|address| !address.is_empty()) else { continue };
        let is_plain =
            address.bytes().all(|byte| byte.is_ascii_graphic() && !b"'@".contains(&byte));
        if is_plain && (address.starts_with("https://") || address.starts_with("http://")) {
            words.extend(["export ", name, "='", &address, "'; "]);
        } else {
            tracing::warn!(
                name,
                "not told to installers: no plain address, or one with credentials"
            );
        }
    }
    words
}

fn begins_well(name: &str) -> bool {
    name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
}

/// A name, extras and versions, in the order of PEP 508 or not: the installer is the judge of that.
fn is_python(name: &str) -> bool {
    begins_well(name)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-[],=<>!~*+".contains(&byte))
}

/// `name`, `@scope/name`, either with `@version`.
fn is_npm(name: &str) -> bool {
    let is_plain = |text: &str| {
        begins_well(text)
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-=<>~^*+".contains(&byte))
    };
    let name = match name.strip_prefix('@') {
        None => name,
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, name)) if is_plain(scope) => name,
            _ => return false,
        },
    };
    let (name, version) = name.split_once('@').unwrap_or((name, "latest"));
    let version = version.trim_start_matches(['^', '~', '<', '>', '=']);
    is_plain(name) && is_plain(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: &str) {
        let got = match Packages::parse(&[given.to_owned()]) {
            Ok(Packages { python, javascript }) => {
                format!("{}|{}", python.join(" "), javascript.join(" "))
            }
            Err(failure) => failure.kind().as_str().to_owned(),
        };
        assert_eq!(got, expected, "{given:?}");
    }

    #[test]
    fn packages_are_told_by_their_language() {
        check("numpy", "numpy|");
        check("python: requests[socks]>=2.32,<3", "requests[socks]>=2.32,<3|");
        check("pip:six==1.16.*", "six==1.16.*|");
        check("npm:left-pad@^1.3.0", "|left-pad@^1.3.0");
        check("JavaScript:@types/node@22", "|@types/node@22");
        check("ruby:rails", "invalid_args");
        check("cobol:x", "invalid_args");
    }

    #[test]
    fn nothing_but_a_package_reaches_an_installer() {
        for hostile in [
            "",
            "-r",
            "--index-url=http://x",
            "a'; id; '",
            "a b",
            "a\nb",
            "./a",
            "/etc/x",
            "a/b",
            "..",
            "a\0b",
            "https://example.org/a.whl",
            "git+https://example.org/a",
            "a @ https://example.org/a",
            "npm:a/b",
            "npm:-g",
            "npm:../a",
            "npm:@a",
            "npm:@/a",
            "npm:@a/b/c",
            "npm:file:../a",
            "npm:a@file:..",
            "npm:a@npm:b",
            "a;b",
            "a$(id)",
            "a`id`",
            "npm:a@",
            "é",
        ] {
            check(hostile, "invalid_args");
        }
        check(&"a".repeat(201), "invalid_args");
        let many = vec!["a".to_owned(); 51];
        assert!(Packages::parse(&many).is_err());
    }

    #[test]
    fn an_index_with_credentials_is_not_told() {
        let told = |address: &'static str| {
            indexes(move |name| (name == "PIP_INDEX_URL").then(|| address.to_owned()))
        };
        assert_eq!(
            told("https://mirror.example/simple"),
            "export PIP_INDEX_URL='https://mirror.example/simple'; "
        );
        for kept in [
            "https://me:secret@mirror.example/",
            "file:///x",
            "https://a'; id; '",
            "https://a b",
            "",
        ] {
            assert_eq!(told(kept), "", "{kept}");
        }
    }
}
