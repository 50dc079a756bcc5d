//! Writes: whole or not at all, with what the file had, and nothing left behind.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use testkit::{Fixture, Missing, Snapshot, require};
use workspace_jail::{Error, Intent, Jail, Options, Sha256, Written};

use crate::open;

fn mode(fixture: &Fixture, path: &str) -> u32 {
    std::fs::metadata(fixture.root().join(path)).unwrap().mode() & 0o7777
}

fn set_mode(fixture: &Fixture, path: &str, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(fixture.root().join(path), permissions).unwrap();
}

/// A refused write leaves the workspace as it was.
fn check_refused(
    fixture: &Fixture,
    write: impl FnOnce(&Jail) -> Result<Written, Error>,
    expected: &str,
) {
    let before = Snapshot::of(fixture.base());
    let error = write(&open(fixture)).unwrap_err();
    assert_eq!(error.kind(), expected, "{error}");
    assert_eq!(before, Snapshot::of(fixture.base()), "{expected}: something changed");
}

#[test]
fn a_new_file_and_its_directories_are_made() {
    let fixture = Fixture::new("");
    let written = open(&fixture).create("a/b/c.txt", b"content").unwrap();
    assert_eq!(written.sha256, Sha256::of(b"content"));
    assert_eq!((written.bytes, written.created), (7, true));
    assert_eq!(fixture.read("a/b/c.txt"), "content");
    assert_eq!((mode(&fixture, "a"), mode(&fixture, "a/b/c.txt")), (0o755, 0o644));
    assert_eq!(Snapshot::of(&fixture.root()).names().count(), 4);
}

#[test]
fn a_name_that_is_taken_is_not_created() {
    let fixture = Fixture::new("//- f\nold\n//- d/\n");
    fixture.symlink("dangling", "no-such");
    fixture.symlink("out", "../outside/new");
    for path in ["f", "d", "dangling", "."] {
        check_refused(&fixture, |jail| jail.create(path, b"new"), "already_exists");
    }
    check_refused(&fixture, |jail| jail.create("out", b"new"), "outside_workspace");
    check_refused(&fixture, |jail| jail.create("new/", b"new"), "is_directory");
    check_refused(&fixture, |jail| jail.create("f/x", b"new"), "not_a_directory");
    check_refused(&fixture, |jail| jail.create("x/../y", b"new"), "not_found");
}

#[test]
fn a_replaced_file_keeps_what_it_had() {
    let fixture = Fixture::new("//- f\nold\n");
    for (before, after) in [(0o755, 0o755), (0o600, 0o600), (0o6755, 0o755), (0o1644, 0o1644)] {
        set_mode(&fixture, "f", before);
        let written = open(&fixture).replace("f", b"new", None).unwrap();
        assert!(!written.created);
        assert_eq!((mode(&fixture, "f"), fixture.read("f")), (after, "new".to_owned()));
    }
}

#[test]
fn attributes_and_acl_are_kept_and_none_is_inherited_in_their_place() {
    let fixture = Fixture::new("//- f\nold\n//- plain\nold\n");
    let file = std::fs::File::open(fixture.root().join("f")).unwrap();
    let set = |file: &std::fs::File, name: &str, value: &[u8]| {
        rustix::fs::fsetxattr(file, name, value, rustix::fs::XattrFlags::empty())
    };
    let supported = set(&file, "user.k", b"v").map_err(|errno| Missing(format!("xattrs: {errno}")));
    if require("attributes_and_acl", supported).is_none() {
        return;
    }
    // Version 2; user::rw-, user:12345:r--, group::r--, mask::r--, other::r--.
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 4, 12345), (4, 4, u32::MAX), (16, 4, u32::MAX), (32, 4, u32::MAX)];
    let mut acl = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        acl.extend(tag.to_le_bytes());
        acl.extend(permissions.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    set(&file, "system.posix_acl_access", &acl).unwrap();
    let root = std::fs::File::open(fixture.root()).unwrap();
    set(&root, "system.posix_acl_default", &acl).unwrap();

    let jail = open(&fixture);
    jail.replace("f", b"new", None).unwrap();
    jail.replace("plain", b"new", None).unwrap();
    let get = |path: &str, name: &str| {
        let file = std::fs::File::open(fixture.root().join(path)).unwrap();
        let mut value = [0; 256];
        rustix::fs::fgetxattr(&file, name, &mut value[..]).map(|size| value[..size].to_vec())
    };
    assert_eq!(get("f", "user.k").unwrap(), b"v");
    assert_eq!(get("f", "system.posix_acl_access").unwrap(), acl);
    assert_eq!(get("plain", "system.posix_acl_access"), Err(rustix::io::Errno::NODATA));
}

#[test]
fn the_target_of_a_link_is_written_and_the_link_stays() {
    let fixture = Fixture::new("//- d/f\nold\n");
    fixture.symlink("l", "d/f");
    fixture.symlink("new", "d/made");
    let jail = open(&fixture);
    jail.replace("l", b"new", None).unwrap();
    jail.replace("new", b"made", None).unwrap();
    assert_eq!((fixture.read("d/f"), fixture.read("d/made")), ("new".into(), "made".into()));
    for link in ["l", "new"] {
        assert!(fixture.root().join(link).symlink_metadata().unwrap().is_symlink());
    }
}

#[test]
fn other_names_of_a_file_keep_their_content() {
    let fixture = Fixture::new("");
    std::fs::hard_link(fixture.outside().join("victim.txt"), fixture.root().join("v")).unwrap();
    open(&fixture).replace("v", b"new", None).unwrap();
    assert_eq!(fixture.read("v"), "new");
    assert_eq!(std::fs::read(fixture.outside().join("victim.txt")).unwrap(), b"ORIGINAL\n");
}

#[test]
fn a_stale_write_is_refused() {
    let fixture = Fixture::new("//- f\none\n");
    let jail = open(&fixture);
    let read = jail.read("f", 9).unwrap();
    fixture.write("f", b"two\n");
    check_refused(&fixture, |jail| jail.replace("f", b"x", Some(read.sha256)), "stale");
    check_refused(&fixture, |jail| jail.replace("gone", b"x", Some(read.sha256)), "stale");
    let now = Sha256::of(b"two\n");
    let written = jail.replace("f", b"three\n", Some(now)).unwrap();
    assert_eq!(jail.sha256("f").unwrap(), written.sha256);
}

#[test]
fn of_many_writers_that_read_the_same_one_wins() {
    let fixture = Fixture::new("//- f\n0\n");
    let jail = open(&fixture);
    let read = jail.read("f", 9).unwrap().sha256;
    let won = std::thread::scope(|scope| {
        let writers: Vec<_> = (1..9)
            .map(|id: u8| {
                let jail = &jail;
                scope.spawn(move || jail.replace("f", &[b'0' + id], Some(read)).is_ok())
            })
            .collect();
        writers
            .into_iter()
            .filter(|_| true)
            .map(|writer| writer.join().unwrap())
            .filter(|won| *won)
            .count()
    });
    assert_eq!(won, 1);
}

#[test]
fn a_file_without_a_write_bit_is_refused_for_root_too() {
    let fixture = Fixture::new("//- f\nold\n");
    set_mode(&fixture, "f", 0o444);
    check_refused(&fixture, |jail| jail.replace("f", b"new", None), "permission_denied");
    assert_eq!(open(&fixture).remove("f").unwrap_err().kind(), "permission_denied");
    assert_eq!(open(&fixture).rename("f", "g").unwrap_err().kind(), "permission_denied");
}

#[test]
fn special_files_are_neither_opened_nor_replaced() {
    let fixture = Fixture::new("");
    let fifo = fixture.root().join("p");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(fixture.root().join("s")).unwrap();
    let jail = open(&fixture);
    for path in ["p", "s"] {
        let kinds = [
            jail.read(path, 9).map(drop),
            jail.read_page(path, &workspace_jail::PageRequest::default()).map(drop),
            jail.replace(path, b"x", None).map(drop),
            jail.remove(path),
        ]
        .map(|result| result.unwrap_err().kind());
        assert_eq!(kinds, ["not_a_regular_file"; 4], "{path}");
    }
}

#[test]
fn a_read_only_jail_refuses_after_protected_names() {
    let fixture = Fixture::new("//- f\nold\n");
    let jail = Jail::open(&fixture.root(), Options::new().read_only(true)).unwrap();
    assert_eq!(jail.replace("f", b"x", None).unwrap_err().kind(), "read_only");
    assert_eq!(jail.create("f", b"x").unwrap_err().kind(), "read_only");
    assert_eq!(jail.create(".mcp.json", b"x").unwrap_err().kind(), "protected_path");
    assert_eq!(jail.remove("f").unwrap_err().kind(), "read_only");
    assert_eq!(jail.read("f", 9).unwrap().bytes, b"old\n");
}

#[test]
fn the_checks_of_a_write_can_be_made_before_it() {
    let fixture = Fixture::new("//- f\nold\n//- d/\n");
    let jail = open(&fixture);
    let kind = |path, intent, bytes| {
        jail.check_write(path, intent, bytes, 5).map_err(|error| error.kind()).err()
    };
    assert_eq!(kind("new/dir/f", Intent::Create, 5), None);
    assert!(!fixture.exists("new"));
    assert_eq!(kind("f", Intent::Replace, 5), None);
    assert_eq!(kind("f", Intent::Create, 5), Some("already_exists"));
    assert_eq!(kind("f", Intent::Create, 6), Some("too_large"));
    assert_eq!(kind("../f", Intent::Create, 6), Some("outside_workspace"));
    assert_eq!(kind("d", Intent::Replace, 5), Some("is_directory"));
}

#[test]
fn leftovers_of_dead_writers_are_swept_and_nothing_else() {
    let name = format!(".aw-{}.tmp", "0123456789abcdef".repeat(2));
    let live = format!(".aw-{}.tmp", "fedcba9876543210".repeat(2));
    let fixture = Fixture::new("//- .gitignore\n*.tmp\n//- f.tmp\nmine\n//- d/.aw-x.tmp\nmine\n");
    fixture.write(&format!("d/{name}"), b"left");
    fixture.write(&live, b"being written");
    let writer = std::fs::File::open(fixture.root().join(&live)).unwrap();
    rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
    open(&fixture);
    assert!(!fixture.exists(&format!("d/{name}")));
    for kept in [live.as_str(), "f.tmp", "d/.aw-x.tmp"] {
        assert!(fixture.exists(kept), "{kept}");
    }
    drop(writer);
    Jail::open(&fixture.root(), Options::new().read_only(true)).unwrap();
    assert!(fixture.exists(&live), "a read-only jail removes nothing");
}

#[test]
fn a_write_beside_a_users_temporary_file_leaves_it_alone() {
    let fixture = Fixture::new("//- d.txt\nold\n//- d.txt.tmp\nmine\n");
    open(&fixture).replace("d.txt", b"new", None).unwrap();
    assert_eq!(fixture.read("d.txt.tmp"), "mine\n");
}

#[test]
fn of_many_that_replace_a_missing_file_none_is_refused() {
    for round in 0..20 {
        let fixture = Fixture::new("//- a\n");
        let jail = open(&fixture);
        let path = format!("d/{round}");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| jail.replace(&path, b"whole\n", None).unwrap());
            }
        });
        assert_eq!(fixture.read(&path), "whole\n");
    }
}

#[test]
fn of_many_creators_one_wins() {
    let fixture = Fixture::new("");
    let jail = open(&fixture);
    for round in 0..20 {
        let path = format!("d{round}/once");
        let won = std::thread::scope(|scope| {
            let creators: Vec<_> =
                (0..8).map(|_| scope.spawn(|| jail.create(&path, b"x"))).collect();
            let results = creators.into_iter().map(|creator| creator.join().unwrap());
            results
                .filter(|result| match result {
                    Ok(_) => true,
                    Err(error) => {
                        assert_eq!(error.kind(), "already_exists");
                        false
                    }
                })
                .count()
        });
        assert_eq!(won, 1);
    }
}

/// A small file system mounted in the workspace, gone with the value.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(point: std::path::PathBuf) -> Result<Self, Missing> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "none"]).arg(&point);
        match mount.output() {
            Ok(output) if output.status.success() => Ok(Self(point)),
            other => Err(Missing(format!("a tmpfs of its own: {other:?}"))),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        std::process::Command::new("umount").arg(&self.0).status().unwrap();
    }
}

#[test]
fn a_full_disk_leaves_the_old_content_and_no_directory() {
    let fixture = Fixture::new("//- m/\n");
    let mounted = SmallDisk::mount(fixture.root().join("m"));
    let Some(_disk) = require("a_full_disk", mounted) else { return };
    fixture.write("m/f", b"KEEP");
    let large = vec![b'x'; 1024 * 1024];
    check_refused(&fixture, |jail| jail.replace("m/f", &large, None), "no_space");
    check_refused(&fixture, |jail| jail.create("m/new/dir/f", &large), "no_space");
}

#[test]
fn a_root_that_was_removed_is_missed_and_not_replaced() {
    let fixture = Fixture::new("//- a\n");
    let jail = Jail::open(&fixture.root(), Options::new()).unwrap();
    std::fs::remove_dir_all(fixture.root()).unwrap();
    for path in ["a", "d/a"] {
        assert_eq!(jail.create(path, b"x").unwrap_err().kind(), "not_found");
        assert_eq!(jail.replace(path, b"x", None).unwrap_err().kind(), "not_found");
    }
    assert!(!fixture.root().exists());
}
