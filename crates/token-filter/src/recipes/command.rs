//! Whether a command line runs a program, and with which subcommand.
//!
//! A look at words, not a shell: nothing is expanded or run, and quoting is not understood. A wrong answer costs savings, never
//! content.

/// Bytes of a command line that are looked at.
const LOOKED_AT: usize = 4_096;
/// Words that only start another program.
const STARTERS: &[&str] =
    &["sudo", "env", "time", "nice", "nohup", "exec", "command", "npx", "bunx", "uvx"];

/// Whether `line` runs `wanted`: a program by its file name, then subcommands, options between them left out.
pub(super) fn runs(line: &str, wanted: &[String]) -> bool {
    let line = line.get(..line.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    line.split([';', '|', '&', '\n', '(', ')', '{', '}']).any(|simple| {
        let mut words = simple
            .split_ascii_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
            .skip_while(|word| is_assignment(word) || STARTERS.contains(word));
        let Some(program) = words.next() else { return false };
        let program = program.rsplit('/').next().unwrap_or_default();
        let mut words = words.filter(|word| !word.starts_with(['-', '+']));
        let Some((first, rest)) = wanted.split_first() else { return false };
        program == first && rest.iter().all(|word| words.next() == Some(word))
    })
}

/// `NAME=value` before a program.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::runs;

    fn check(line: &str, wanted: &str, expected: bool) {
        let wanted: Vec<String> = wanted.split(' ').map(str::to_owned).collect();
        assert_eq!(runs(line, &wanted), expected, "{line} | {wanted:?}");
    }

    #[test]
    fn programs_are_found_in_lines() {
        check("terraform plan -out x", "terraform plan", true);
        check(
            "cd infra && TF_LOG=1 sudo /usr/bin/terraform -chdir=a plan 2>&1 | tail",
            "terraform plan",
            true,
        );
        check("terraform apply", "terraform plan", false);
        check("terraform apply", "terraform", true);
        check("echo terraform plan", "terraform plan", false);
        check("./gradlew build", "gradlew", true);
        check("", "gradlew", false);
        check("'unclosed && \u{1b}\n$(rm -rf /", "rm", true);
    }
}
