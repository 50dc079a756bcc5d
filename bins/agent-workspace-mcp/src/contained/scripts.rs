//! What the image's shell is asked to do with files: small scripts of what every POSIX shell has built in, and the few
//! programs that both coreutils and `BusyBox` bring (`head`, `readlink`, `mkdir`, `stat`, `find`, `ln`, `mv`, `rm`, `wc`).
//!
//! Paths reach a script as its arguments and are never part of its text. They begin with `./`, so that none is taken
//! for an option. A refusal is an exit code of its own ([`refusal`]). Everything here runs in the container, as the user
//! that code runs as: a script can be lied to by that code, and does what that code could do. What the answer is used
//! for is the caller's to bound.

use workspace_jail::Error;

/// The directory that is a container's place.
pub(super) const WORK: &str = "/work";
/// Entries that a listing takes.
pub(super) const MOST_ENTRIES: usize = 10_000;
/// Bytes of an account of a place's files.
pub(super) const MOST_ACCOUNT: usize = 1 << 20;

/// Exit codes, above those of programs and below those of shells.
const OUTSIDE: i64 = 81;
const LOOP: i64 = 82;
const NOT_FOUND: i64 = 83;
const NOT_A_DIRECTORY: i64 = 84;
const EXISTS: i64 = 85;
const IS_DIRECTORY: i64 = 86;
const NOT_REGULAR: i64 = 87;
const DENIED: i64 = 88;
const NO_SPACE: i64 = 89;
/// A listing that was not finished.
pub(super) const MORE: i64 = 90;

/// The refusal that an exit code stands for.
pub(super) fn refusal(code: i64, path: &str) -> Option<Error> {
    let path = path.to_owned();
    Some(match code {
        OUTSIDE => Error::OutsideWorkspace { path },
        LOOP => Error::SymlinkLoop { path },
        NOT_FOUND => Error::NotFound { path },
        NOT_A_DIRECTORY => Error::NotADirectory { path },
        EXISTS => Error::AlreadyExists { path },
        IS_DIRECTORY => Error::IsDirectory { path },
        NOT_REGULAR => Error::NotARegularFile { path },
        DENIED => Error::PermissionDenied { path },
        NO_SPACE => Error::NoSpace { path },
        _ => return None,
    })
}

/// Tells every regular file outside of directories of noise.
macro_rules! account {
    () => {
        r#"
cd /work || exit 0
set --
find . \( -name .git -o -name .hg -o -name .svn -o -name .jj -o -name .mcp -o -name .venv -o -name .venv_container \
  -o -name __pycache__ -o -name node_modules -o -name .ruff_cache -o -name .mypy_cache -o -name .pytest_cache \
  -o -name .tox -o -name .nox -o -name .eggs \) -prune \
  -o -type f -exec stat -c '%i.%.9Z %s %n//' {} + | head -c 1048576
exit 0
"#
    };
}

/// The account of all files; see [`Seen::parse`](crate::seen::Seen::parse).
pub(super) const ACCOUNT: &str = concat!("exec 2>/dev/null\n", account!());

/// Goes to directory `$dir` and follows links at `$name`, until `$name` is in the working directory and no link.
/// Missing directories are refused (`$make` empty), end the script with success (`look`) or are made (`make`). With
/// `$create`, a name that is taken, by a link too, is refused once it is known not to lead out.
macro_rules! resolve {
    () => {
        r#"
left=40 taken=
while :; do
  at=$dir
  while ! [ -e "$at" ] && ! [ -L "$at" ]; do
    case $at in ./*/*) at=${at%/*} ;; *) at=. ;; esac
  done
  if ! cd -P "$at"; then
    [ -d "$at" ] && exit 88
    [ -e "$at" ] && exit 84
    exit 83
  fi
  case $PWD/ in /work/*) ;; *) exit 81 ;; esac
  if [ "$at" != "$dir" ]; then
    [ -z "$taken" ] || exit 85
    [ -n "$make" ] || exit 83
    [ -w . ] || exit 88
    [ "$make" = make ] || exit 0
    rest=./${dir#"$at"/}
    mkdir -p "$rest" || exit 89
    cd -P "$rest" || exit 83
    case $PWD/ in /work/*) ;; *) exit 81 ;; esac
  fi
  if [ -n "$create" ] && { [ -e "./$name" ] || [ -L "./$name" ]; }; then taken=yes; fi
  [ -L "./$name" ] || break
  left=$((left - 1))
  [ $left -gt 0 ] || exit 82
  to=$(readlink "./$name" && echo .) || exit 87
  to=${to%??}
  case $to in
    /*) exit 81 ;;
    */*) dir=./${to%/*} name=${to##*/} ;;
    *) dir=. name=$to ;;
  esac
  [ -n "$name" ] || name=.
done
[ -z "$taken" ] || exit 85
"#
    };
}

/// `$1` a directory, `$2` a directory in it: its entries, each a letter (`D`, `F`, `L`), the name and NUL.
pub(super) const LIST: &str = concat!(
    r#"
exec 2>/dev/null
dir=$1 name=$2 create= make=
"#,
    resolve!(),
    r#"
[ -e "./$name" ] || exit 83
[ -d "./$name" ] || exit 84
cd -P "./$name" || exit 88
case $PWD/ in /work/*) ;; *) exit 81 ;; esac
[ -r . ] || exit 88
left=10000
for name in .* *; do
  case $name in . | ..) continue ;; esac
  if [ -L "./$name" ]; then kind=L
  elif [ -d "./$name" ]; then kind=D
  elif [ -e "./$name" ]; then kind=F
  else continue
  fi
  [ $left -gt 0 ] || exit 90
  left=$((left - 1))
  printf '%s%s\0' $kind "$name"
done
exit 0
"#
);

/// `$1` a directory, `$2` a name in it, `$3` how many bytes of that file.
pub(super) const FETCH: &str = concat!(
    r#"
exec 2>/dev/null
dir=$1 name=$2 most=$3 create= make=
"#,
    resolve!(),
    r#"
[ -d "./$name" ] && exit 86
[ -e "./$name" ] || exit 83
[ -f "./$name" ] || exit 87
[ -r "./$name" ] || exit 88
head -c "$most" <"./$name"
"#
);

/// What may be replaced, and by whom.
macro_rules! replaceable {
    () => {
        r#"
[ -d "./$name" ] && exit 86
if [ -e "./$name" ]; then
  [ -f "./$name" ] || exit 87
  [ -w "./$name" ] || exit 88
fi
[ -w . ] || exit 88
"#
    };
}

/// `$1` a directory, `$2` a name in it, `$3` not empty to refuse a name that is taken: whether it could be written.
pub(super) const CHECK: &str = concat!(
    r#"
exec 2>/dev/null
dir=$1 name=$2 create=$3 make=look
"#,
    resolve!(),
    replaceable!(),
    "exit 0\n"
);

/// `$1` the name of an upload, the rest what is added to it, as `printf %b` reads it.
pub(super) const ADD: &str = r#"
exec 2>/dev/null
upload=/work/$1
shift
for piece do printf %b "$piece" || exit 89; done >>"$upload" || exit 89
exit 0
"#;

/// `$1` the name of an upload.
pub(super) const GIVE_UP: &str = r#"rm -f "/work/$1""#;

/// `$1` a directory, `$2` a name in it, `$3` not empty to refuse a name that is taken, `$4` the name of an upload, `$5`
/// its size, the rest what is added to it first: gives the upload that name. Says `C` for a file that is new, else `R`, then the account of all files.
pub(super) const COMMIT: &str = concat!(
    r#"
exec 2>/dev/null
dir=$1 name=$2 create=$3 make=make upload=/work/$4 size=$5
shift 5
trap 'rm -f "$upload"' EXIT
for piece do printf %b "$piece" || exit 89; done >>"$upload" || exit 89
[ "$(wc -c <"$upload")" -eq "$size" ] || exit 89
"#,
    resolve!(),
    replaceable!(),
    r#"
if [ -n "$create" ]; then
  ln "$upload" "./$name" || exit 85
  done=C
elif [ -e "./$name" ]; then
  chmod "$(stat -c %a "./$name")" "$upload"
  mv -f "$upload" "./$name" || exit 89
  done=R
else
  mv -f "$upload" "./$name" || exit 89
  done=C
fi
rm -f "$upload"
trap - EXIT
printf %s $done
"#,
    account!()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_the_scripts_are_those_of_the_table() {
        assert!(LIST.contains(&format!("left={MOST_ENTRIES}\n")));
        assert!(
            LIST.contains(&format!("exit {MORE} ")) || LIST.contains(&format!("exit {MORE}\n"))
        );
        assert!(ACCOUNT.contains(&format!("head -c {MOST_ACCOUNT}\n")));
        for noise in workspace_jail::NOISE {
            assert!(ACCOUNT.contains(&format!("-name {noise} ")), "{noise}");
        }
        for script in [LIST, FETCH, CHECK, ADD, COMMIT] {
            let codes = script.split("exit ").skip(1).filter_map(|rest| {
                rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|code| code.parse().ok())
            });
            for code in codes.filter(|code| *code != 0 && *code != MORE) {
                assert!(refusal(code, "f").is_some(), "{code}");
            }
        }
    }
}
