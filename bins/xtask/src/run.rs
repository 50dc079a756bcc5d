//! Starts the tools that the chores call, loudly: the command first, then its own output.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "chores run tools and say which"
)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Runs `line`, split at blanks, in `dir` with these variables; anything but success is an error.
pub(crate) fn run(dir: &Path, line: &str, variables: &[(&str, &str)]) -> Result<()> {
    println!("\n$ {line}");
    let mut words = line.split_whitespace();
    let program = words.next().context("an empty command")?;
    let status = Command::new(program)
        .args(words)
        .envs(variables.iter().copied())
        .current_dir(dir)
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "failed: {line} ({status})");
    Ok(())
}

/// Whether `line` runs and succeeds, quietly.
pub(crate) fn works(dir: &Path, line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.next().is_some_and(|program| {
        Command::new(program)
            .args(words)
            .current_dir(dir)
            .output()
            .is_ok_and(|output| output.status.success())
    })
}

/// What `line` printed to stdout; its stderr is shown as it comes, and anything but success is an error.
pub(crate) fn printed(dir: &Path, line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let program = words.next().context("an empty command")?;
    let output = Command::new(program)
        .args(words)
        .current_dir(dir)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(output.status.success(), "failed: {line} ({})", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{line}: not UTF-8"))
}

/// What a script said, and whether it was content.
pub(crate) struct Said {
    pub(crate) success: bool,
    pub(crate) text: String,
}

/// Runs `script` with `interpreter`; both of its streams in one text.
pub(crate) fn output(interpreter: &Path, script: &Path, arguments: &[&str]) -> Result<Said> {
    let output = Command::new(interpreter)
        .arg(script)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot start {}", interpreter.display()))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Said { success: output.status.success(), text })
}

/// Runs `program` in `dir` with `input` on its stdin, which then ends; both of its outputs in one text.
pub(crate) fn fed(
    dir: &Path,
    program: &Path,
    arguments: &[&str],
    input: &str,
    variables: &[(&str, &str)],
) -> Result<Said> {
    let mut child = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    // Less than a pipe holds, so that nobody waits for somebody who waits.
    let mut stdin = child.stdin.take().context("no pipe")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(Said { success: output.status.success(), text })
}

/// Says where a chore stands.
pub(crate) fn say(text: &str) {
    println!("{text}");
}
