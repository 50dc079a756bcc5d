//! A command line as words for the shell, however long it is.
//!
//! Linux takes no single word of 128 KiB or more (`MAX_ARG_STRLEN`, execve(2)). A longer line goes to the shell in
//! pieces, which it joins and evaluates: `$0`, `$@`, standard input and what its programs inherit are as they are for a
//! short line. All words together have a limit too, a quarter of the stack's; a line that would meet it is refused.

use crate::reply::Failure;

/// Bytes of a line that is one word, and of the pieces of a longer one.
const PIECE: usize = 120 << 10;
/// Bytes of a line: below the 2 MiB that all words and variables may have where the stack has its usual 8 MiB.
const MOST: usize = 2_000_000;
/// Joins the pieces and evaluates them. The first line of the whole stays the first.
const JOIN: &str = r#"set -- "$(printf %s "$@")"; eval "set --; $1""#;

/// A line that a shell can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    pieces: Vec<String>,
}

impl Words {
    /// Takes a line apart.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidArgs`](crate::reply::ErrorKind::InvalidArgs) for one that is too long.
    pub fn of(line: &str) -> Result<Self, Failure> {
        if line.len() > MOST {
            return Err(Failure::invalid_args(format!(
                "argument 'command' has {} bytes, and {MOST} are the most that can be run; put it into a file with \
                 write_file and run that",
                line.len()
            )));
        }
        let (mut pieces, mut rest) = (Vec::new(), line);
        while rest.len() > PIECE {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
            pieces.push(piece.to_owned());
            rest = after;
        }
        pieces.push(rest.to_owned());
        Ok(Self { pieces })
    }

    /// The arguments that make the program `shell` run the line.
    ///
    /// # Security
    ///
    /// The line runs as it is; nothing of it becomes part of what joins the pieces.
    pub fn arguments(&self, shell: &str) -> Vec<String> {
        let join = ["-c", JOIN, shell].map(str::to_owned);
        match self.pieces.as_slice() {
            [line] => vec!["-c".to_owned(), line.clone()],
            pieces => join.into_iter().chain(pieces.iter().cloned()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proc_runner::{Cancel, Command, Discard, End, Limits};

    use super::*;

    /// What a shell says that is told `line`.
    fn check(shell: &str, line: &str, expected: &str) {
        let command = Command::new(shell).args(Words::of(line).unwrap().arguments(shell));
        let limits = Limits::new(std::time::Duration::from_secs(20));
        let cancel = Cancel::new().unwrap();
        let outcome = proc_runner::run(command, &limits, &cancel, &mut Discard).unwrap();
        assert_eq!(String::from_utf8_lossy(&outcome.captured.head), expected);
        assert_eq!(outcome.end, End::Exited(3));
    }

    #[test]
    fn a_long_line_runs_like_a_short_one() {
        let text = "é'\"$x`\\\n ".repeat(40_000);
        let line = format!(
            "cat >/dev/null; read -r x <<'END'\n{text}\nEND\nx=$((1+1)); echo $0 $# \"$*\" $x; exit 3\n\n"
        );
        assert!(Words::of(&line).unwrap().pieces.len() > 2);
        for shell in ["/bin/bash", "/bin/sh"] {
            check(shell, "x=$((1+1)); echo $0 $# \"$*\" $x; exit 3", &format!("{shell} 0  2\n"));
            check(shell, &line, &format!("{shell} 0  2\n"));
        }
    }

    #[test]
    fn pieces_end_between_characters_and_the_limit_is_told() {
        let line = "ü€😀".repeat(100_000);
        let words = Words::of(&line).unwrap();
        assert_eq!(words.pieces.concat(), line);
        assert!(words.arguments("sh").iter().all(|word| word.len() < 128 << 10));
        assert_eq!(Words::of(&"x".repeat(PIECE)).unwrap().arguments("sh").len(), 2);
        let refused = Words::of(&"x".repeat(MOST + 1)).unwrap_err();
        assert!(refused.to_string().contains("write_file"), "{refused}");
    }
}
