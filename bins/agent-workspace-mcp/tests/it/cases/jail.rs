//! Every jail case of `workspace-jail`, as a client would send it to the real binary.

use std::io::Write as _;
use std::path::Path;

use testkit::require;

use super::case::Case;
use super::checks::check;
use super::launch::Launch;
use crate::image::Image;

/// Cases of what only a server that is root can do.
const AS_ROOT: &[&str] = &["jail-write-owner-kept"];

#[test]
fn every_jail_case_holds_through_the_tools() {
    check_all(&Launch::new("auto"));
}

#[test]
fn every_jail_case_holds_in_the_image() {
    let Some(image) = require("every_jail_case_holds_in_the_image", Image::built()) else { return };
    check_all(&Launch::new("auto").in_image(image));
}

fn check_all(launch: &Launch) {
    let cases =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/workspace-jail/tests/cases");
    let mut ran = 0;
    let mut failed = Vec::new();
    for case in testkit::cases::<Case>(&cases) {
        let prepared_by_root = case.body.requires.iter().any(|what| what == "root_setup");
        let by_root = AS_ROOT.contains(&case.body.id.as_str());
        if (prepared_by_root && !launch.prepares_as_root()) || (by_root && !launch.is_root()) {
            // Not through testkit::require: an ordinary user lacks nothing that a machine could bring.
            let said = writeln!(std::io::stderr(), "SKIPPED {}: it needs root", case.body.id);
            assert!(said.is_ok(), "a skip must be said");
            continue;
        }
        ran += 1;
        if let Err(why) = check(&case.body, launch, None) {
            failed.push(format!("{} ({}): {why}", case.body.id, case.place));
        }
    }
    assert!(failed.is_empty(), "{} of {ran} failed:\n{}", failed.len(), failed.join("\n"));
}
