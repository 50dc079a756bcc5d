//! Writers that are killed: the file is the old one or the new one, and the next start leaves no trace.
//!
//! A process of this binary replaces a file of 1 MiB again and again, says each time that it is done, and
//! is killed at a random moment.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};
use testkit::Fixture;
use workspace_jail::{Jail, Options};

use crate::{open, rerun};

/// Says to a process that it is the writer, and on which root.
const WRITE_IN: &str = "WORKSPACE_JAIL_TESTS_WRITE_IN";

/// How many writers are killed, where 25 are not enough.
const KILLS: &str = "WORKSPACE_JAIL_KILLS";

const SIZE: usize = 1024 * 1024;

/// The writer dies within so many microseconds of its first replace: some replaces further on.
const LATEST: u32 = 60_000;

/// The content that is written as number `round`.
fn content(round: u64) -> Vec<u8> {
    round.to_le_bytes().repeat(SIZE / size_of::<u64>())
}

/// Replaces the file for ever, and says so byte by byte.
fn write(root: &str) -> ! {
    let jail = Jail::open(root.as_ref(), Options::new()).unwrap();
    let mut stderr = std::io::stderr();
    for round in 1.. {
        jail.replace("f", &content(round), None).unwrap();
        stderr.write_all(b".").unwrap();
    }
    unreachable!("the rounds have no end")
}

#[test]
fn a_killed_writer_leaves_the_old_content_or_the_new_one_and_no_trace() {
    if let Ok(root) = std::env::var(WRITE_IN) {
        write(&root);
    }
    let kills: u32 = std::env::var(KILLS).map_or(25, |text| text.parse().unwrap());
    let (mut replaced, mut interrupted, mut published) = (0, 0, 0);
    for _ in 0..kills {
        let fixture = Fixture::new("");
        fixture.write("f", &content(0));
        let done = killed(&fixture);
        let left = fixture.bytes("f");
        let is = |round| left == content(round);
        assert!(is(done) || is(done + 1), "after {done} replaces the file is neither old nor new");
        replaced += done;
        published += u32::from(is(done + 1));
        interrupted += u32::from(names(&fixture) != ["f"]);
        open(&fixture);
        assert_eq!(names(&fixture), ["f"], "the next start leaves no temporary file");
        assert!(is(done) || is(done + 1));
    }
    eprintln!(
        "{kills} writers killed after {replaced} replaces: {interrupted} left a temporary file, \
         {published} had just published"
    );
    assert!(interrupted > 0, "no writer was killed at work");
}

fn names(fixture: &Fixture) -> Vec<OsString> {
    let entries = std::fs::read_dir(fixture.root()).unwrap();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

/// Starts a writer, kills it, and says how many replaces it has told of.
fn killed(fixture: &Fixture) -> u64 {
    let test = "killed::a_killed_writer_leaves_the_old_content_or_the_new_one_and_no_trace";
    let mut command = rerun::tests(&rerun::binary(), &["--exact", test]);
    command.env(WRITE_IN, fixture.root()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut writer = command.spawn().unwrap();
    let mut said = writer.stderr.take().unwrap();
    said.read_exact(&mut [0]).unwrap();
    let mut random = [0; 4];
    getrandom(&mut random, GetRandomFlags::empty()).unwrap();
    // Not to wait for anything: to be at a random place.
    std::thread::sleep(Duration::from_micros((u32::from_le_bytes(random) % LATEST).into()));
    writer.kill().unwrap();
    writer.wait().unwrap();
    let mut rest = Vec::new();
    said.read_to_end(&mut rest).unwrap();
    assert!(rest.iter().all(|byte| *byte == b'.'), "{}", String::from_utf8_lossy(&rest));
    1 + rest.len() as u64
}
