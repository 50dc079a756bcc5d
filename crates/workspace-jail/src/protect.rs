//! Protected names: files that make a program on the operator's side run something.
//!
//! A write into `.git/hooks` or `.vscode/tasks.json` is a command that the user's next `git commit` or
//! editor start executes outside every sandbox. The check compares names, and it may: it can only
//! refuse, and it is made on the path as it stands after links. Letter case is ignored everywhere,
//! since a directory may fold it; this over-blocks on the others.
//!
//! Non-goal: keeping *commands* from these names. That takes mounts.

use std::ffi::OsStr;

/// Which names may not be written, created, renamed onto or removed; reading is always allowed.
///
/// The names, at any depth: `.git` itself as a file or link; below `.git`, below `.git/modules/**` and
/// below `.git/worktrees/**`: `hooks/**`, `config`, `config.worktree`, `commondir`, `info/attributes`;
/// `.gitmodules`, `.mcp.json`, `.vscode/**`, `.idea/**`, `.envrc`, `.claude/settings*.json`,
/// `.cursor/mcp.json`, `.codex/config.toml`, `.gemini/settings.json`.
///
/// `commondir` stands there because git takes hooks and configuration from the directory it names
/// (<https://git-scm.com/docs/gitrepository-layout>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Protect {
    /// All of them.
    #[default]
    Default,
    /// All but `.git/config`, for agents that manage remotes and branches.
    GitConfig,
    /// None.
    Off,
}

impl Protect {
    /// Whether a write to the file at these components, relative to the root, is refused.
    ///
    /// Directories on the way to a protected name do not match, the name itself and everything below a
    /// protected directory do.
    ///
    /// ```
    /// use workspace_jail::Protect;
    ///
    /// assert!(Protect::Default.matches(["sub", ".GIT", "hooks", "pre-commit"]));
    /// assert!(!Protect::Default.matches([".git", "HEAD"]));
    /// assert!(!Protect::GitConfig.matches([".git", "config"]));
    /// ```
    ///
    /// # Security
    ///
    /// The components must be those after links were resolved; [`Jail`](crate::Jail) sees to that for
    /// its own verbs.
    pub fn matches<I>(self, components: I) -> bool
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        if self == Self::Off {
            return false;
        }
        let names: Vec<String> = components.into_iter().map(|name| fold(name.as_ref())).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (0..names.len()).any(|start| self.starts(&names[start..]))
    }

    /// Whether a protected name starts at the first of `names`.
    fn starts(self, names: &[&str]) -> bool {
        match names {
            [".git"]
            | [".gitmodules" | ".mcp.json" | ".envrc" | ".vscode" | ".idea", ..]
            | [".cursor", "mcp.json", ..]
            | [".codex", "config.toml", ..]
            | [".gemini", "settings.json", ..] => true,
            [".claude", file, ..] => is_settings(file),
            [".git", "config"] => self != Self::GitConfig,
            [".git", "modules" | "worktrees", below @ ..] => {
                (1..below.len()).any(|start| steers_git(&below[start..]))
            }
            [".git", below @ ..] => steers_git(below),
            _ => false,
        }
    }
}

/// `settings*.json`
fn is_settings(file: &str) -> bool {
    file.strip_prefix("settings").is_some_and(|rest| rest.strip_suffix(".json").is_some())
}

/// Whether git takes commands to run, or the place to find them, from this name in its directory.
fn steers_git(names: &[&str]) -> bool {
    matches!(
        names,
        ["hooks" | "config" | "config.worktree" | "commondir", ..] | ["info", "attributes", ..]
    )
}

/// Folds letter case the way a case-folding directory may: `ſ` and the Kelvin sign included.
fn fold(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(protect: Protect, path: &str, expected: bool) {
        assert_eq!(protect.matches(path.split('/')), expected, "{protect:?} {path}");
    }

    #[test]
    fn names_of_the_table_match_at_any_depth_in_any_case() {
        for path in [
            ".git",
            ".git/hooks",
            ".git/hooks/pre-commit",
            ".git/hooks/deep/er",
            ".git/config",
            ".git/config.worktree",
            ".git/commondir",
            ".git/info/attributes",
            ".git/modules/lib/hooks/x",
            ".git/modules/a/b/config",
            ".git/worktrees/w/config.worktree",
            ".gitmodules",
            ".mcp.json",
            ".vscode",
            ".vscode/tasks.json",
            ".idea/a/b",
            ".envrc",
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".cursor/mcp.json",
            ".codex/config.toml",
            ".gemini/settings.json",
        ] {
            check(Protect::Default, path, true);
            check(Protect::Default, &format!("deep/er/{path}"), true);
            check(Protect::Default, &path.to_uppercase(), true);
            check(Protect::Off, path, false);
        }
        check(Protect::Default, ".v\u{17f}code/tasks.json", true);
    }

    #[test]
    fn neighbours_stay_writable() {
        for path in [
            "git",
            ".git/HEAD",
            ".git/info/exclude",
            ".git/modules/lib/HEAD",
            ".git/modules/hooks",
            ".gitignore",
            ".github/workflows/ci.yml",
            "vscode/tasks.json",
            ".claude/commands/x.md",
            ".claude/settings.toml",
            ".cursor/rules",
            "config",
            "hooks/pre-commit",
        ] {
            check(Protect::Default, path, false);
        }
    }

    #[test]
    fn git_config_opens_that_file_alone() {
        check(Protect::GitConfig, ".git/config", false);
        check(Protect::GitConfig, "sub/.git/CONFIG", false);
        check(Protect::GitConfig, ".git/config/x", true);
        check(Protect::GitConfig, ".git/hooks/x", true);
        check(Protect::GitConfig, ".git/modules/a/config", true);
        check(Protect::GitConfig, ".mcp.json", true);
    }
}
