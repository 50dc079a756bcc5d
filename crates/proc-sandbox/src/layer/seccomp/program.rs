//! From a table of answers to the program the kernel runs before every system call.
//!
//! The kernel takes the program of every command anew: it translates it, and runs it once for each number of its
//! two tables of calls, to note those that are always allowed; see `seccomp_cache_prepare` in `kernel/seccomp.c`. So
//! there is one program, short, in which the search for a number is a tree: a list of 60 comparisons and a second
//! program for arguments took 0.33 ms a command, this takes 0.10.
//!
//! Non-goal: arguments of 64 bits. What is judged here are flags and small numbers, of which the kernel looks at the
//! lower half as well.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{SeccompAction, sock_filter};
use serde::{Deserialize, Serialize};

/// Answers by the call's number; what is not listed is allowed.
pub(super) type Table = BTreeMap<u32, Answer>;

/// What a call gets in the kernel's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// `EPERM`.
    Refused,
    /// `ENOSYS`.
    Missing,
    /// 0, and nothing was done.
    Done,
    /// `EPERM` if all conditions of one of these rules hold.
    Judged(Vec<Vec<Condition>>),
}

/// A comparison of some bits of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    argument: u8,
    mask: u32,
    value: u32,
    /// Whether they have to be equal or different.
    equal: bool,
}

impl Condition {
    pub(super) fn is(argument: u8, value: u32) -> Self {
        Self { argument, mask: u32::MAX, value, equal: true }
    }

    pub(super) fn is_not(argument: u8, value: u32) -> Self {
        Self { argument, mask: u32::MAX, value, equal: false }
    }

    /// The bits of `mask` are those of `value`.
    pub(super) fn has(argument: u8, mask: u32, value: u32) -> Self {
        Self { argument, mask, value, equal: true }
    }
}

/// A program as it travels: code, two jump distances, operand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Program(Vec<(u16, u8, u8, u32)>);

type Step = (u16, u8, u8, u32);

// Of `linux/bpf_common.h`.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

// Of `struct seccomp_data` in `linux/seccomp.h`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// `AUDIT_ARCH_*` of `linux/audit.h` for the native convention; nothing for architectures nobody has tried.
const NATIVE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

/// `__X32_SYSCALL_BIT` of `asm/unistd.h`: calls of a third convention have the native architecture and this bit, so
/// no other comparison would match them.
const X32: u32 = 0x4000_0000;

impl Program {
    /// # Errors
    ///
    /// `Unsupported` on an architecture whose calls are not known here.
    pub(super) fn compile(table: &Table) -> io::Result<Self> {
        let native = NATIVE.ok_or(io::ErrorKind::Unsupported)?;
        let mut steps = vec![
            (LOAD, 0, 0, ARCHITECTURE),
            (IF_EQUAL, 1, 0, native),
            give(SeccompAction::KillProcess),
            (LOAD, 0, 0, NUMBER),
        ];
        steps.extend(search(&ranges(table))?);
        Ok(Self(steps))
    }

    /// In the kernel's form.
    pub(super) fn filter(&self) -> Vec<sock_filter> {
        self.0.iter().map(|&(code, jt, jf, k)| sock_filter { code, jt, jf, k }).collect()
    }
}

fn give(action: SeccompAction) -> Step {
    (RETURN, 0, 0, u32::from(action))
}

/// Where a range of numbers begins, and what they get.
type Range<'t> = (u32, Option<&'t Answer>);

/// All numbers there are, in ranges with one answer each.
fn ranges(table: &Table) -> Vec<Range<'_>> {
    let mut ranges: Vec<Range<'_>> = vec![(0, None)];
    for (number, answer) in table {
        // What the number before it ended begins here.
        ranges.retain(|(start, _)| start != number);
        ranges.extend([(*number, Some(answer)), (number.saturating_add(1), None)]);
    }
    if cfg!(target_arch = "x86_64") {
        ranges.retain(|(start, _)| *start < X32);
        ranges.push((X32, Some(&Answer::Missing)));
    }
    ranges.dedup_by(|next, before| next.1 == before.1);
    ranges
}

/// Looks for the number that was loaded among sorted ranges.
fn search(ranges: &[Range<'_>]) -> io::Result<Vec<Step>> {
    match ranges.split_at(ranges.len() / 2) {
        (_, []) => Ok(Vec::new()),
        ([], [(_, known), ..]) => known.map_or(Ok(vec![give(SeccompAction::Allow)]), answer),
        (low, high @ [(middle, _), ..]) => {
            let low = search(low)?;
            // The distance of a comparison has eight bits, that of a plain jump has 32.
            let mut steps = if let Ok(past) = u8::try_from(low.len()) {
                vec![(IF_AT_LEAST, past, 0, *middle)]
            } else {
                let past = u32::try_from(low.len()).map_err(io::Error::other)?;
                vec![(IF_AT_LEAST, 0, 1, *middle), (JUMP, 0, 0, past)]
            };
            steps.extend(low);
            steps.extend(search(high)?);
            Ok(steps)
        }
    }
}

/// Gives an answer; the steps end there.
fn answer(answer: &Answer) -> io::Result<Vec<Step>> {
    let error = |errno: libc::c_int| give(SeccompAction::Errno(errno.unsigned_abs()));
    let rules = match answer {
        Answer::Refused => return Ok(vec![error(libc::EPERM)]),
        Answer::Missing => return Ok(vec![error(libc::ENOSYS)]),
        Answer::Done => return Ok(vec![error(0)]),
        Answer::Judged(rules) => rules,
    };
    let mut steps = Vec::new();
    for conditions in rules {
        // Backwards, since each leaves for behind the answer.
        let mut rule = vec![error(libc::EPERM)];
        for condition in conditions.iter().rev() {
            let leave = u8::try_from(rule.len()).map_err(io::Error::other)?;
            let (if_equal, if_not) = if condition.equal { (0, leave) } else { (leave, 0) };
            let mut step =
                vec![(LOAD, 0, 0, ARGUMENTS + 8 * u32::from(condition.argument) + LOWER_HALF)];
            step.extend((condition.mask != u32::MAX).then_some((AND, 0, 0, condition.mask)));
            step.push((IF_EQUAL, if_equal, if_not, condition.value & condition.mask));
            step.extend(rule);
            rule = step;
        }
        steps.extend(rule);
    }
    steps.push(give(SeccompAction::Allow));
    Ok(steps)
}

/// Where the lower half of a 64-bit argument lies.
const LOWER_HALF: u32 = if cfg!(target_endian = "little") { 0 } else { 4 };

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        AND, ARCHITECTURE, ARGUMENTS, Answer, Condition, IF_AT_LEAST, IF_EQUAL, JUMP, LOAD, NATIVE,
        NUMBER, Program, RETURN, Table, X32,
    };

    const ALLOWED: u32 = 0x7fff_0000;
    const KILLED: u32 = 0x8000_0000;
    const ERROR: u32 = 0x0005_0000;

    /// What a program returns, by the rules of the kernel's machine.
    fn run(program: &Program, architecture: u32, number: u32, arguments: &[u32]) -> (u32, usize) {
        let (mut at, mut value, mut taken) = (0, 0, 0);
        loop {
            let (code, jt, jf, k) = program.0[at];
            (at, taken) = (at + 1, taken + 1);
            let branch = |yes| usize::from(if yes { jt } else { jf });
            match code {
                LOAD if k == NUMBER => value = number,
                LOAD if k == ARCHITECTURE => value = architecture,
                LOAD => value = arguments[((k - ARGUMENTS) / 8) as usize],
                AND => value &= k,
                JUMP => at += k as usize,
                IF_EQUAL => at += branch(value == k),
                IF_AT_LEAST => at += branch(value >= k),
                RETURN => return (k, taken),
                other => unreachable!("{other}"),
            }
        }
    }

    /// What a table says, read as it is written.
    fn expected(table: &Table, number: u32, arguments: &[u32]) -> u32 {
        let refused = ERROR | libc::EPERM.unsigned_abs();
        if cfg!(target_arch = "x86_64") && number >= X32 {
            return ERROR | libc::ENOSYS.unsigned_abs();
        }
        match table.get(&number) {
            None => ALLOWED,
            Some(Answer::Refused) => refused,
            Some(Answer::Missing) => ERROR | libc::ENOSYS.unsigned_abs(),
            Some(Answer::Done) => ERROR,
            Some(Answer::Judged(rules)) => {
                let holds = |condition: &Condition| {
                    let bits = arguments[usize::from(condition.argument)] & condition.mask;
                    (bits == condition.value & condition.mask) == condition.equal
                };
                if rules.iter().any(|rule| rule.iter().all(holds)) { refused } else { ALLOWED }
            }
        }
    }

    fn condition() -> impl Strategy<Value = Condition> {
        let mask = prop_oneof![Just(u32::MAX), 1_u32..8];
        (0_u8..6, mask, 0_u32..8, any::<bool>())
            .prop_map(|(argument, mask, value, equal)| Condition { argument, mask, value, equal })
    }

    fn answer() -> impl Strategy<Value = Answer> {
        let rule = prop::collection::vec(condition(), 1..5);
        prop_oneof![
            Just(Answer::Refused),
            Just(Answer::Missing),
            Just(Answer::Done),
            prop::collection::vec(rule, 1..6).prop_map(Answer::Judged),
        ]
    }

    proptest! {
        #[test]
        fn a_program_answers_what_its_table_says(
            table in prop::collection::btree_map(0_u32..200, answer(), 0..150),
            arguments in prop::array::uniform6(0_u32..8),
        ) {
            let program = Program::compile(&table).unwrap();
            for number in (0..210).chain([X32 - 1, X32, X32 + 39, u32::MAX]) {
                let (found, _) = run(&program, NATIVE.unwrap(), number, &arguments);
                prop_assert_eq!(found, expected(&table, number, &arguments), "call {}", number);
            }
            let (found, _) = run(&program, 0x4000_0003, 20, &arguments);
            prop_assert_eq!(found, KILLED, "the 32-bit convention");
        }
    }

    #[test]
    fn the_way_to_an_answer_is_short() {
        let table: Table = (0..64).map(|number| (number * 3, Answer::Refused)).collect();
        let program = Program::compile(&table).unwrap();
        for number in 0..200 {
            let (_, taken) = run(&program, NATIVE.unwrap(), number, &[0; 6]);
            assert!(taken <= 20, "call {number} takes {taken} steps");
        }
    }
}
