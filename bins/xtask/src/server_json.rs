//! `cargo xtask server-json --name OWNER/NAME --repository URL [--image REFERENCE]`: the entry for a registry of servers.
//!
//! Prints a `server.json` with the version and description of the manifests. Name, repository and image are known to
//! whoever publishes alone. The rules checked here are those of the format's schema
//! (<https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json>) and of images
//! (<https://github.com/modelcontextprotocol/registry/blob/main/docs/reference/server-json/official-registry-requirements.md>).
//! Non-goal: sending it anywhere; `mcp-publisher` does.
#![expect(clippy::disallowed_methods, reason = "chores read the source tree itself")]

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::run::say;

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// The longest description and the longest name that the schema takes.
const DESCRIPTION: usize = 100;
const NAME: usize = 200;
/// Flags of the README's line for the image that take no value.
const FLAGS: &[&str] = &["--rm", "--init", "--read-only"];
/// And those that take one.
const VALUES: &[(&str, &str)] = &[
    ("--cap-drop", "ALL"),
    ("--security-opt", "no-new-privileges:true"),
    ("--pids-limit", "256"),
    ("--memory", "2g"),
    ("--cpus", "2"),
    ("--tmpfs", "/tmp:exec,size=1g"),
];

pub(crate) fn run(root: &Path, given: &[&str]) -> Result<()> {
    let (mut name, mut repository, mut image) = (None, None, None);
    for pair in given.chunks(2) {
        match pair {
            ["--name", value] => name = Some(*value),
            ["--repository", value] => repository = Some(*value),
            ["--image", value] => image = Some(*value),
            _ => bail!("server-json --name OWNER/NAME --repository URL [--image REFERENCE]"),
        }
    }
    let read = |path: &str| -> Result<toml::Table> {
        let text = std::fs::read_to_string(root.join(path)).context(path.to_owned())?;
        text.parse().context(path.to_owned())
    };
    let (workspace, server) = (read("Cargo.toml")?, read("bins/agent-workspace-mcp/Cargo.toml")?);
    let text = |table: &toml::Table, path: &[&str]| -> Result<String> {
        let mut at = table.get(*path.first().context("no path")?);
        for key in path.iter().skip(1) {
            at = at.and_then(|value| value.get(*key));
        }
        Ok(at.and_then(toml::Value::as_str).with_context(|| path.join("."))?.to_owned())
    };
    let entry = entry(
        name.context("--name is missing: OWNER/NAME, as io.github.someone/agent-workspace-mcp")?,
        repository.context("--repository is missing: the address of the source")?,
        image,
        &text(&workspace, &["workspace", "package", "version"])?,
        &text(&server, &["package", "description"])?,
    )?;
    say(&serde_json::to_string_pretty(&entry)?);
    Ok(())
}

fn entry(
    name: &str,
    repository: &str,
    image: Option<&str>,
    version: &str,
    description: &str,
) -> Result<Value> {
    let (owner, own) = name.split_once('/').context("--name has no slash: OWNER/NAME")?;
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    ensure!(
        plain(owner, ".-") && plain(own, "._-") && name.len() <= NAME,
        "--name '{name}': letters, digits, dots and hyphens, one slash, underscores behind it"
    );
    ensure!(
        description.chars().count() <= DESCRIPTION,
        "the description has more than {DESCRIPTION} characters"
    );
    let source = match repository.strip_prefix("https://").and_then(|rest| rest.split_once('/')) {
        Some(("github.com", _)) => "github",
        Some(("gitlab.com", _)) => "gitlab",
        _ => bail!("--repository '{repository}': https://github.com/… or https://gitlab.com/…"),
    };
    let mut entry = json!({
        "$schema": SCHEMA,
        "name": name,
        "title": "Agent Workspace",
        "description": description,
        "version": version,
        "repository": {"url": repository, "source": source, "subfolder": "bins/agent-workspace-mcp"},
    });
    if let (Some(image), Some(object)) = (image, entry.as_object_mut()) {
        object.insert("packages".to_owned(), json!([package(image)?]));
    }
    Ok(entry)
}

/// The image, started by the README's line on a directory that the user names.
fn package(image: &str) -> Result<Value> {
    let last = image.rsplit('/').next().unwrap_or_default();
    let fixed = last.contains("@sha256:")
        || last.split_once(':').is_some_and(|(_, tag)| !tag.is_empty() && tag != "latest");
    ensure!(
        image.contains('/') && fixed,
        "--image '{image}': REGISTRY/OWNER/NAME with a tag other than latest, or a digest"
    );
    let flags = FLAGS.iter().map(|name| json!({"type": "named", "name": name}));
    let values =
        VALUES.iter().map(|(name, value)| json!({"type": "named", "name": name, "value": value}));
    let workspace = json!({
        "type": "named",
        "name": "--mount",
        "value": "type=bind,src={workspace},dst=/workspace",
        "variables": {
            "workspace": {
                "description": "The directory to work in; nothing else of the machine is reachable",
                "format": "filepath",
                "isRequired": true,
            },
        },
    });
    let state = json!({
        "type": "named",
        "name": "--mount",
        "value": "type=volume,src=agent-workspace-state,dst=/var/lib/agent-workspace-mcp",
    });
    Ok(json!({
        "registryType": "oci",
        "identifier": image,
        "transport": {"type": "stdio"},
        "runtimeHint": "docker",
        "runtimeArguments": flags.chain(values).chain([workspace, state]).collect::<Vec<_>>(),
        "environmentVariables": [{
            "name": "NETWORK",
            "description": "What commands reach: off, on, or allow=HOST,HOST",
            "default": "off",
        }],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &str = "registry.example/owner/agent-workspace-mcp:0.1.0";
    const SOURCE: &str = "https://github.com/owner/agent-workspace-mcp";

    fn refused(name: &str, repository: &str, image: Option<&str>) -> String {
        entry(name, repository, image, "0.1.0", "words").unwrap_err().to_string()
    }

    #[test]
    fn what_a_registry_refuses_is_refused_here() {
        let name = "com.example/it";
        assert!(refused("it", SOURCE, None).contains("no slash"));
        for bad in ["com.example/it/2", "com_example/it", "/it", "com.example/"] {
            assert!(refused(bad, SOURCE, None).contains("one slash"), "{bad}");
        }
        assert!(refused(name, "github.com/owner/it", None).contains("--repository"));
        for bad in ["it:1", "a.example/it", "a.example/it:latest", "a.example:5000/it"] {
            assert!(refused(name, SOURCE, Some(bad)).contains("--image"), "{bad}");
        }
        let long = entry(name, SOURCE, None, "0.1.0", &"x".repeat(101)).unwrap_err();
        assert!(long.to_string().contains("100 characters"));
        entry(name, SOURCE, Some("a.example/it@sha256:00"), "0.1.0", "words").unwrap();
    }

    /// A flag that the README's line loses or gains is lost or gained here.
    #[test]
    fn the_image_is_started_by_the_readmes_line() {
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        let readme = std::fs::read_to_string(readme).unwrap();
        let line = readme.split("docker run -i ").nth(1).and_then(|it| it.split("```").next());
        let mut said: Vec<String> = line
            .unwrap()
            .split_whitespace()
            .filter(|word| word.starts_with("--"))
            .map(str::to_owned)
            .collect();
        let values = VALUES.iter().map(|(name, value)| format!("{name}={value}"));
        let mut ours: Vec<String> =
            FLAGS.iter().map(|flag| (*flag).to_owned()).chain(values).collect();
        said.sort();
        ours.sort();
        assert_eq!(ours, said);
    }

    #[test]
    fn the_entry_has_what_the_schema_wants() {
        let entry = entry("com.example/it", SOURCE, Some(IMAGE), "0.1.0", "words").unwrap();
        for required in ["name", "description", "version"] {
            assert!(entry[required].is_string(), "{required}");
        }
        assert_eq!(entry["repository"]["source"], "github");
        let package = &entry["packages"][0];
        for required in ["registryType", "identifier"] {
            assert!(package[required].is_string(), "{required}");
        }
        assert_eq!(package["transport"]["type"], "stdio");
        for argument in package["runtimeArguments"].as_array().unwrap() {
            assert_eq!(argument["type"], "named");
            assert!(argument["name"].as_str().unwrap().starts_with("--"));
            // Each variable of a value is one that the user is asked for.
            let value = argument["value"].as_str().unwrap_or_default();
            for variable in value.split('{').skip(1).map(|rest| rest.split('}').next().unwrap()) {
                assert!(argument["variables"][variable]["isRequired"] == true, "{variable}");
            }
        }
    }
}
