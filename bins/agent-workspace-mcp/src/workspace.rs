//! One workspace with everything that serves it: files, commands, outputs, the record of calls.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context as _;
use cap_std::fs::Dir;
use proc_runner::Cancel;
use serde_json::json;
use token_filter::Policy;
use tokio::sync::Semaphore;
use workspace_jail::{Jail, Options};

use crate::audit::Audit;
use crate::config::Config;
use crate::disposables::{self, Disposables};
use crate::jobs::Jobs;
use crate::output_store::OutputStore;
use crate::progress::Heard;
use crate::protected::Protected;
use crate::recipes;
use crate::shell::{Shell, with_source};
use crate::state::{self, StateError};

/// What tools work on; shared by all calls.
#[derive(Debug)]
#[non_exhaustive]
pub struct Workspace {
    /// The operator's settings.
    pub config: Config,
    /// Files, by descriptor.
    pub jail: Jail,
    /// Names that commands must not change unseen.
    pub protected: Protected,
    /// Places that share nothing with the workspace.
    pub disposables: Disposables,
    /// Commands that go on after their call. Before what they run by, so that they end before it goes.
    pub jobs: Jobs,
    /// How commands are run.
    pub shell: Shell,
    /// How outputs are shortened.
    pub policy: Policy,
    /// Outputs that answers refer to.
    pub outputs: OutputStore,
    /// One for each call that may run at one time.
    pub turns: Semaphore,
    /// The record of calls.
    pub audit: Audit,
    /// Why there is no record, where there is none.
    pub unrecorded: Option<String>,
}

/// What one call has beside the workspace.
#[derive(Debug)]
pub struct Session {
    /// What tools work on.
    pub workspace: Arc<Workspace>,
    /// Ends the command of this call.
    pub cancel: Cancel,
    /// What its command prints is heard here while it runs.
    pub heard: Heard,
}

impl Workspace {
    /// Opens the workspace's directory and everything around it, and tries out how commands can be confined.
    ///
    /// # Errors
    ///
    /// When the directory cannot be opened, or the operator's own `AUDIT_DIR` cannot be used. A default state
    /// directory that cannot be used costs the record and the stored outputs, and is said.
    ///
    /// # Security
    ///
    /// The paths in `config` are the operator's and used as they are: this is where ambient authority ends.
    pub fn open(config: Config) -> anyhow::Result<Self> {
        let options = Options::new()
            .hardlinks(config.hardlinks)
            .protect(config.protect)
            .read_only(config.read_only);
        let jail = Jail::open(&config.workspace, options)
            .with_context(|| format!("workspace {}", config.workspace.display()))?;

        let named = config.audit_dir.clone();
        let place = named
            .clone()
            .or_else(|| state::default_place(|name| std::env::var_os(name).map(PathBuf::from)));
        let opened = place.ok_or(StateError::NoPlace).and_then(|place| {
            let dir = state::open(&place, jail.dir())?;
            let stored = outputs_of(&dir, &config);
            stored
                .map(|stored| (dir, stored))
                .map_err(|source| StateError::Io { path: place, source })
        });
        let (dir, stored, unrecorded) = match opened {
            Ok((dir, stored)) => (Some(dir), Some(stored), None),
            Err(error) if named.is_some() => return Err(error).context("AUDIT_DIR"),
            Err(error) => (None, None, Some(with_source(&error))),
        };
        let recipes = recipes::load(config.recipes.as_deref(), Some(jail.dir()))?;
        let policy =
            Policy::default().with_budget_tokens(config.output_budget).with_recipes(recipes);
        let outputs = OutputStore::new(stored, config.max_output_bytes);
        outputs.sweep();
        // Found beside each other: the names by walking the tree, the rung by trying.
        let (masks, awaited) = std::sync::mpsc::channel();
        let shell = Shell::with_containers(&config, &jail, awaited)?;
        let protected = Protected::new(&jail, config.protect).context("no descriptor")?;
        // Native rungs do not wait for them.
        masks.send(protected.masks().to_vec()).ok();
        let (jobs, disposables) = (Jobs::default(), Disposables::default());
        disposables::sweep(&jail);
        let audit = Audit::new(dir, config.client.clone());
        let turns = Semaphore::new(config.max_concurrent_calls.min(Semaphore::MAX_PERMITS));
        Ok(Self {
            config,
            jail,
            protected,
            disposables,
            jobs,
            shell,
            policy,
            outputs,
            turns,
            audit,
            unrecorded,
        })
    }

    /// Says on the log and in the record on what terms the server works; about commands as soon as that is known, from
    /// a thread that whoever lets the workspace go waits for.
    ///
    /// # Errors
    ///
    /// When there is no thread.
    pub fn announce(self: &Arc<Self>) -> std::io::Result<JoinHandle<()>> {
        tracing::info!(
            workspace = %self.config.workspace.display(),
            version = env!("CARGO_PKG_VERSION"),
            "serving"
        );
        if let Some(reason) = &self.unrecorded {
            tracing::warn!(%reason, "no audit log and no stored outputs");
        }
        self.audit.start(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "workspace": self.config.workspace,
            "read_only": self.config.read_only,
        }));
        let workspace = Arc::clone(self);
        std::thread::Builder::new().name("announce".to_owned()).spawn(move || {
            let rung = workspace.shell.standing();
            tracing::info!(sandbox = %rung, "commands");
            let refusal = workspace.shell.refusal();
            if let Some(reason) = &refusal {
                tracing::warn!(%reason, "commands are refused");
            }
            workspace.audit.sandbox(&rung, refusal.as_deref());
        })
    }
}

/// Outputs of one workspace, named by a hash of its path: another workspace's ids mean nothing here.
fn outputs_of(dir: &Dir, config: &Config) -> std::io::Result<Dir> {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::path::absolute(&config.workspace)?;
    let name = workspace_jail::Sha256::of(path.as_os_str().as_bytes()).to_string();
    let name: String = name.chars().take(16).collect();
    let outputs = state::subdirectory(dir, "outputs")?;
    state::subdirectory(&outputs, &name)
}
