//! The operator's settings: a flag, else the environment, else the default. Never a file in the workspace.
//!
//! Every setting is one row of [`Settings`]. An empty environment variable counts as not set, since
//! clients' configuration files are full of them. Tools read the resolved [`Config`] alone.

mod containers;

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use egress_proxy::HostRules;
use proc_sandbox::Rung;
use workspace_jail::{Hardlinks, Protect};

pub use containers::{Containers, InContainer, Pull};

/// The settings as given, all optional.
#[derive(Debug, Clone, Default, Args)]
pub struct Settings {
    /// Root of the workspace [default: the current directory]
    #[arg(long, env = "WORKSPACE", global = true, value_name = "DIR")]
    workspace: Option<OsString>,
    /// Seconds for a command whose call gives none [default: 60]
    #[arg(long, env = "COMMAND_TIMEOUT", global = true, value_name = "SECONDS")]
    command_timeout: Option<String>,
    /// The most seconds that a call may ask for [default: 600]
    #[arg(long, env = "MAX_COMMAND_TIMEOUT", global = true, value_name = "SECONDS")]
    max_command_timeout: Option<String>,
    /// Matches shown by one search [default: 50]
    #[arg(long, env = "MAX_SEARCH_RESULTS", global = true, value_name = "N")]
    max_search_results: Option<String>,
    /// Bytes of one answer of a read [default: 1048576]
    #[arg(long, env = "MAX_READ_SIZE_BYTES", global = true, value_name = "BYTES")]
    max_read_bytes: Option<String>,
    /// Bytes of one content that is written [default: 5242880]
    #[arg(long, env = "MAX_WRITE_SIZE_BYTES", global = true, value_name = "BYTES")]
    max_write_bytes: Option<String>,
    /// Tokens of command output in one answer [default: 8000]
    #[arg(long, env = "OUTPUT_TOKEN_BUDGET", global = true, value_name = "TOKENS")]
    output_budget: Option<String>,
    /// File with recipes for the output of tools that the filter does not know; outside the workspace
    #[arg(long, env = "RECIPES", global = true, value_name = "FILE")]
    recipes: Option<OsString>,
    /// Raw output stored of one command [default: 1073741824]
    #[arg(long, env = "MAX_OUTPUT_BYTES", global = true, value_name = "BYTES")]
    max_output_bytes: Option<String>,
    /// Calls that may run at one time; more wait for their turn [default: 64]
    #[arg(long, env = "MAX_CONCURRENT_CALLS", global = true, value_name = "N")]
    max_concurrent_calls: Option<String>,
    /// error, warn, info, debug or trace [default: info]
    #[arg(long, env = "LOG_LEVEL", global = true, value_name = "LEVEL")]
    log_level: Option<String>,
    /// The strongest confinement to try: auto, native-full, native-noproc, container, landlock or none [default: auto]
    #[arg(long, env = "SANDBOX", global = true, value_name = "MODE")]
    sandbox: Option<String>,
    /// The least confinement a command may run under: native-full, native-noproc, container, landlock or none [default: landlock]
    #[arg(long, env = "REQUIRE", global = true, value_name = "RUNG")]
    require: Option<String>,
    /// Image of the container that commands run in; for --sandbox container, and for auto where native confinement fails
    #[arg(long, env = "CONTAINER_IMAGE", global = true, value_name = "IMAGE")]
    container_image: Option<String>,
    /// Images that the engine lacks: missing (pull any), never, or from=PREFIX,PREFIX [default: from=docker.io/library/]
    #[arg(long, env = "PULL", global = true, value_name = "MODE")]
    pull: Option<String>,
    /// Network of commands: off, on or allow=HOST,HOST [default: off]
    #[arg(long, env = "NETWORK", global = true, value_name = "MODE")]
    network: Option<String>,
    /// Protected names: default, off, or git-config to open .git/config alone [default: default]
    #[arg(long, env = "PROTECT", global = true, value_name = "MODE")]
    protect: Option<String>,
    /// Files with more than one name: allow or deny [default: allow]
    #[arg(long, env = "HARDLINKS", global = true, value_name = "MODE")]
    hardlinks: Option<String>,
    /// Directory of the audit log and of stored outputs [default: the user's state directory]
    #[arg(long, env = "AUDIT_DIR", global = true, value_name = "DIR")]
    audit_dir: Option<OsString>,
    /// Offer the reading tools alone
    #[arg(
        long,
        env = "READ_ONLY",
        global = true,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    read_only: Option<String>,
    /// Answer a second time as structured content, complete, for programs
    #[arg(
        long,
        env = "STRUCTURED",
        global = true,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    structured: Option<String>,
}

/// Values of `SANDBOX`: the highest native rung to try, and when commands run in a container instead.
const CEILINGS: [(&str, (Rung, InContainer)); 6] = [
    ("auto", (Rung::NativeFull, InContainer::Auto)),
    ("native-full", (Rung::NativeFull, InContainer::Never)),
    ("native-noproc", (Rung::NativeNoproc, InContainer::Never)),
    // The native rungs are for disposable sandboxes then.
    ("container", (Rung::NativeFull, InContainer::Always)),
    ("landlock", (Rung::Landlock, InContainer::Never)),
    ("none", (Rung::None, InContainer::Never)),
];

/// Values of `REQUIRE`: the lowest native rung, and whether a container does as well. It stands between the rungs with
/// namespaces and `landlock`.
const FLOORS: [(&str, (Rung, bool)); 5] = [
    ("landlock", (Rung::Landlock, true)),
    ("native-full", (Rung::NativeFull, false)),
    ("native-noproc", (Rung::NativeNoproc, false)),
    ("container", (Rung::NativeNoproc, true)),
    ("none", (Rung::None, true)),
];

const SWITCH: [(&str, bool); 4] = [("false", false), ("true", true), ("0", false), ("1", true)];

/// The network of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// None.
    Off,
    /// These hosts alone, through a proxy of the server's.
    Allow(HostRules),
    /// The host's.
    On,
}

/// The settings, resolved.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Root of the workspace.
    pub workspace: PathBuf,
    /// For calls that give no timeout.
    pub command_timeout: Duration,
    /// Longer ones are cut to this.
    pub max_command_timeout: Duration,
    /// Matches shown by one search.
    pub max_search_results: usize,
    /// Bytes of one answer of `read_file`.
    pub max_read_bytes: u64,
    /// Bytes of one content that is written.
    pub max_write_bytes: u64,
    /// Tokens of command output in one answer.
    pub output_budget: u64,
    /// The operator's own recipes for the output filter.
    pub recipes: Option<PathBuf>,
    /// Raw output stored of one command, in bytes.
    pub max_output_bytes: u64,
    /// Calls that may run at one time.
    pub max_concurrent_calls: usize,
    /// Level of the log on stderr.
    pub log_level: tracing::Level,
    /// The highest rung that is tried; with [`Rung::None`] there is no kernel boundary, and every result says so.
    pub ceiling: Rung,
    /// The rung below which no command is run.
    pub floor: Rung,
    /// Containers.
    pub containers: Containers,
    /// Network of commands.
    pub network: Network,
    /// Which names may not be written.
    pub protect: Protect,
    /// Files with more than one name.
    pub hardlinks: Hardlinks,
    /// Where audit log and outputs go, when the operator says so.
    pub audit_dir: Option<PathBuf>,
    /// The reading tools alone.
    pub read_only: bool,
    /// Answers carry a complete structured copy.
    pub structured: bool,
    /// Who works in this workspace, where several do in theirs; named in the audit log.
    pub client: Option<String>,
    /// A program that is this server, for an embedding program that is not. Never from flag or environment.
    pub helper: Option<PathBuf>,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
pub struct BadSetting {
    /// The environment variable's name; the flag is the same in small letters.
    pub name: &'static str,
    /// What is wrong, and what is valid.
    pub problem: String,
}

impl Settings {
    /// Resolves the settings.
    ///
    /// # Errors
    ///
    /// The first setting that is not of its kind.
    pub fn resolve(&self) -> Result<Config, BadSetting> {
        let workspace = match set_path(self.workspace.as_ref()) {
            Some(path) => path,
            None => std::env::current_dir().map_err(|error| BadSetting {
                name: "WORKSPACE",
                problem: format!("not given, and the current directory is unusable: {error}"),
            })?,
        };
        let defaults = Config::new(workspace);
        let max_command_timeout = seconds(
            "MAX_COMMAND_TIMEOUT",
            self.max_command_timeout.as_deref(),
            defaults.max_command_timeout,
        )?;
        let command_timeout = seconds(
            "COMMAND_TIMEOUT",
            self.command_timeout.as_deref(),
            defaults.command_timeout.min(max_command_timeout),
        )?;
        let (ceiling, commands) = choice("SANDBOX", self.sandbox.as_deref(), &CEILINGS)?;
        let (floor, suffices) = match set(self.require.as_deref()) {
            // Asking for no boundary by name is asking for the floor that allows it.
            None => (Rung::Landlock.min(ceiling), true),
            given => choice("REQUIRE", given, &FLOORS)?,
        };
        let image = set(self.container_image.as_deref()).map(str::to_owned);
        let pull = containers::pull(self.pull.as_deref())?;
        let containers = Containers { commands, image, suffices, pull };
        containers.check()?;
        Ok(Config {
            command_timeout: command_timeout.min(max_command_timeout),
            max_command_timeout,
            max_search_results: number(
                "MAX_SEARCH_RESULTS",
                self.max_search_results.as_deref(),
                defaults.max_search_results,
            )?,
            max_read_bytes: number(
                "MAX_READ_SIZE_BYTES",
                self.max_read_bytes.as_deref(),
                defaults.max_read_bytes,
            )?,
            max_write_bytes: number(
                "MAX_WRITE_SIZE_BYTES",
                self.max_write_bytes.as_deref(),
                defaults.max_write_bytes,
            )?,
            output_budget: number(
                "OUTPUT_TOKEN_BUDGET",
                self.output_budget.as_deref(),
                defaults.output_budget,
            )?,
            recipes: set_path(self.recipes.as_ref()),
            max_output_bytes: number(
                "MAX_OUTPUT_BYTES",
                self.max_output_bytes.as_deref(),
                defaults.max_output_bytes,
            )?,
            max_concurrent_calls: number(
                "MAX_CONCURRENT_CALLS",
                self.max_concurrent_calls.as_deref(),
                defaults.max_concurrent_calls,
            )?,
            log_level: log_level(self.log_level.as_deref())?,
            ceiling,
            floor,
            containers,
            network: network(self.network.as_deref())?,
            protect: choice(
                "PROTECT",
                self.protect.as_deref(),
                &[
                    ("default", Protect::Default),
                    ("off", Protect::Off),
                    ("git-config", Protect::GitConfig),
                ],
            )?,
            hardlinks: choice(
                "HARDLINKS",
                self.hardlinks.as_deref(),
                &[("allow", Hardlinks::Allow), ("deny", Hardlinks::Deny)],
            )?,
            audit_dir: set_path(self.audit_dir.as_ref()),
            read_only: choice("READ_ONLY", self.read_only.as_deref(), &SWITCH)?,
            structured: choice("STRUCTURED", self.structured.as_deref(), &SWITCH)?,
            ..defaults
        })
    }
}

impl Containers {
    /// What cannot work whatever engine there is.
    fn check(&self) -> Result<(), BadSetting> {
        let bad = |name, problem: &str| Err(BadSetting { name, problem: problem.to_owned() });
        if self.commands != InContainer::Always {
            return Ok(());
        }
        if !cfg!(feature = "container") {
            return bad("SANDBOX", "containers are not built into this binary");
        }
        if self.image.is_none() {
            return bad("CONTAINER_IMAGE", "SANDBOX=container needs an image with a shell");
        }
        if !self.suffices {
            return bad("REQUIRE", "SANDBOX=container is below it; require container or landlock");
        }
        Ok(())
    }
}

impl Config {
    /// The name of the floor, as `REQUIRE` takes it.
    pub fn floor_name(&self) -> String {
        let given = (self.floor, self.containers.suffices);
        let named = FLOORS.iter().find(|(_, floor)| *floor == given);
        named.map_or_else(|| self.floor.to_string(), |(name, _)| (*name).to_owned())
    }

    /// Every default, for the workspace at `workspace`.
    pub fn new(workspace: PathBuf) -> Self {
        Self {
            workspace,
            command_timeout: Duration::from_mins(1),
            max_command_timeout: Duration::from_mins(10),
            max_search_results: 50,
            max_read_bytes: 1_048_576,
            max_write_bytes: 5_242_880,
            output_budget: 8000,
            recipes: None,
            max_output_bytes: 1_073_741_824,
            max_concurrent_calls: 64,
            log_level: tracing::Level::INFO,
            ceiling: Rung::NativeFull,
            floor: Rung::Landlock,
            containers: Containers {
                commands: InContainer::Auto,
                image: None,
                suffices: true,
                pull: Pull::default(),
            },
            network: Network::Off,
            protect: Protect::Default,
            hardlinks: Hardlinks::Allow,
            audit_dir: None,
            read_only: false,
            structured: false,
            client: None,
            helper: None,
        }
    }
}

fn set(value: Option<&str>) -> Option<&str> {
    value.map(str::trim).filter(|value| !value.is_empty())
}

fn set_path(value: Option<&OsString>) -> Option<PathBuf> {
    value.filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn number<T: FromStr + Default + PartialEq>(
    name: &'static str,
    value: Option<&str>,
    default: T,
) -> Result<T, BadSetting> {
    let Some(text) = set(value) else { return Ok(default) };
    text.parse().ok().filter(|number| *number != T::default()).ok_or_else(|| BadSetting {
        name,
        problem: format!("'{text}' is not a whole number above 0"),
    })
}

fn seconds(
    name: &'static str,
    value: Option<&str>,
    default: Duration,
) -> Result<Duration, BadSetting> {
    number(name, value, default.as_secs()).map(Duration::from_secs)
}

/// The value of a named choice; the first one is the default.
fn choice<T: Copy>(
    name: &'static str,
    value: Option<&str>,
    choices: &[(&str, T)],
) -> Result<T, BadSetting> {
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let bad = |problem| BadSetting { name, problem };
    match set(value) {
        None => choices.first().map(|(_, value)| *value).ok_or_else(|| bad("no choice".into())),
        Some(text) => choices
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, value)| *value)
            .ok_or_else(|| bad(format!("'{text}' is not one of {}", names()))),
    }
}

fn network(value: Option<&str>) -> Result<Network, BadSetting> {
    let bad = |problem| BadSetting { name: "NETWORK", problem };
    let text = set(value).unwrap_or("off");
    let lower = text.to_ascii_lowercase();
    match (lower.as_str(), text.split_once('=')) {
        ("off", _) => Ok(Network::Off),
        ("on", _) => Ok(Network::On),
        (_, Some((verb, hosts))) if verb.trim().eq_ignore_ascii_case("allow") => {
            HostRules::parse(hosts)
                .map(Network::Allow)
                .map_err(|error| bad(crate::shell::with_source(&error)))
        }
        _ => Err(bad(format!("'{text}' is not one of off, on, allow=HOST,HOST"))),
    }
}

fn log_level(value: Option<&str>) -> Result<tracing::Level, BadSetting> {
    use tracing::Level;
    choice(
        "LOG_LEVEL",
        value,
        &[
            ("info", Level::INFO),
            ("error", Level::ERROR),
            ("critical", Level::ERROR),
            ("warn", Level::WARN),
            ("warning", Level::WARN),
            ("debug", Level::DEBUG),
            ("trace", Level::TRACE),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(settings: &Settings, expected: Result<(), &str>) {
        let got = settings.resolve().map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned));
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let config = Settings::default().resolve().unwrap();
        assert_eq!(config.command_timeout, Duration::from_mins(1));
        assert_eq!(config.max_search_results, 50);
        assert_eq!(config.max_read_bytes, 1_048_576);
        assert_eq!(config.max_write_bytes, 5_242_880);
        assert_eq!(config.output_budget, 8000);
        assert_eq!((config.ceiling, config.floor), (Rung::NativeFull, Rung::Landlock));
        assert!(!config.read_only);
    }

    #[test]
    fn an_empty_value_is_no_value() {
        let settings = Settings {
            command_timeout: Some(String::new()),
            log_level: Some(" ".into()),
            workspace: Some(OsString::new()),
            ..Settings::default()
        };
        check(&settings, Ok(()));
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_named() {
        let settings = Settings { command_timeout: Some("soon".into()), ..Settings::default() };
        check(&settings, Err("COMMAND_TIMEOUT: 'soon' is not a whole number above 0"));
        let settings = Settings { hardlinks: Some("maybe".into()), ..Settings::default() };
        check(&settings, Err("HARDLINKS: 'maybe' is not one of allow, deny"));
        let settings = Settings { network: Some("allow".into()), ..Settings::default() };
        check(&settings, Err("NETWORK: 'allow' is not one of off, on, allow=HOST,HOST"));
        let settings = Settings { network: Some("allow=*.com".into()), ..Settings::default() };
        assert!(settings.resolve().is_err());
    }

    #[test]
    fn hosts_are_allowed_by_name() {
        let settings = Settings {
            network: Some("allow=index.example.net, *.example.org".into()),
            ..Settings::default()
        };
        let Network::Allow(rules) = settings.resolve().unwrap().network else { panic!("no list") };
        assert_eq!(rules.to_string(), "index.example.net,*.example.org");
    }

    #[test]
    fn a_container_is_asked_for_with_its_image() {
        let container = Settings { sandbox: Some("container".into()), ..Settings::default() };
        check(&container, Err("CONTAINER_IMAGE: SANDBOX=container needs an image with a shell"));
        let whole = Settings { container_image: Some("debian:bookworm".into()), ..container };
        check(&whole, Ok(()));
        assert_eq!(whole.resolve().unwrap().floor_name(), "landlock");
        let below = Settings { require: Some("native-full".into()), ..whole.clone() };
        check(&below, Err("REQUIRE: SANDBOX=container is below it; require container or landlock"));
        let exact = Settings { require: Some("container".into()), ..whole };
        assert_eq!(exact.resolve().unwrap().floor_name(), "container");
    }

    #[test]
    fn asking_for_no_sandbox_lowers_the_floor_and_nothing_else_does() {
        let none = Settings { sandbox: Some("none".into()), ..Settings::default() };
        assert_eq!(none.resolve().unwrap().floor, Rung::None);
        let both = Settings { require: Some("landlock".into()), ..none };
        assert_eq!(both.resolve().unwrap().floor, Rung::Landlock);
    }
}
