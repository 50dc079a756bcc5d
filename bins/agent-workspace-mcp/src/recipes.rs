//! The operator's own recipes for the output filter, beside the built-in ones.
//!
//! A recipe decides what an agent does not see first, so nothing in a workspace is taken as one: a project's file counts
//! when the operator has read it, copied it out and named the copy. It is read once, at the start.

use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use anyhow::{Context as _, bail};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use token_filter::Recipes;

use crate::state::is_below;

/// More than the filter takes.
const MOST: u64 = 1024 * 1024;

/// The built-in recipes and those of the operator's file, which come first.
///
/// # Errors
///
/// When the file cannot be read, is no recipe file, or lies in the workspace.
///
/// # Security
///
/// `path` is the operator's; `workspace` is what a command could write to.
pub fn load(path: Option<&Path>, workspace: Option<BorrowedFd<'_>>) -> anyhow::Result<Recipes> {
    let Some(path) = path else { return Ok(Recipes::builtin()) };
    let named = || format!("RECIPES {}", path.display());
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let name = path.file_name().with_context(named)?;
    let dir = Dir::open_ambient_dir(parent.unwrap_or(Path::new(".")), ambient_authority())
        .with_context(named)?;
    if let Some(workspace) = workspace
        && is_below(dir.as_fd(), workspace).with_context(named)?
    {
        bail!(
            "{} lies inside the workspace, where a command could rewrite it; read it, and name a copy outside",
            path.display()
        );
    }
    // By name within the directory that was judged: a link that leads out of it is refused.
    let mut text = String::new();
    dir.open(name)
        .and_then(|file| file.take(MOST).read_to_string(&mut text))
        .with_context(named)?;
    let own = Recipes::parse(&text).with_context(named)?;
    Recipes::builtin().and(&own).with_context(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "[[recipe]]\nname = 'mine'\ncommands = ['mytool']\n\n[[recipe.line]]\nclass = 'group'\npattern = '^step [0-9]+$'\n";

    fn check(text: &str, inside: bool) -> Result<Vec<String>, String> {
        let fixture = testkit::Fixture::new("//- a\n");
        let place = if inside { fixture.root() } else { fixture.base().to_path_buf() };
        let path = place.join("recipes.toml");
        let dir = Dir::open_ambient_dir(&place, ambient_authority()).unwrap();
        dir.write("recipes.toml", text).unwrap();
        let workspace = Dir::open_ambient_dir(fixture.root(), ambient_authority()).unwrap();
        load(Some(&path), Some(workspace.as_fd()))
            .map(|recipes| recipes.names().map(str::to_owned).collect())
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn an_operators_file_comes_before_the_built_in_ones() {
        let names = check(OWN, false).unwrap();
        assert_eq!(names.first().map(String::as_str), Some("mine"));
        assert!(names.len() > 5, "{names:?}");
    }

    #[test]
    fn a_file_of_the_project_or_a_bad_one_is_refused_with_the_reason() {
        assert!(check(OWN, true).unwrap_err().contains("inside the workspace"));
        assert!(check("[[recipe]]\nnome = 'x'\n", false).unwrap_err().contains("nome"));
    }
}
