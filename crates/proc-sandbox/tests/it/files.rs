//! Files: the workspace is the command's, the rest is not.

use testkit::{Fixture, Snapshot};

use crate::{Place, check_attack};

#[test]
fn the_workspace_can_be_changed_in_every_way() {
    let place = Place::new("//- a.txt\none\n//- sub/b.txt\ntwo\n");
    let script = "set -e; cat a.txt; echo three > c.txt; mv sub/b.txt d.txt; ln -s a.txt l; ln a.txt h; \
                  mkdir -p x/y; mv x z; rmdir z/y; mkfifo q; truncate -s 1 a.txt; chmod 755 c.txt; ls";
    let text = place.confined(script).succeeded();
    assert_eq!(text, "one\na.txt\nc.txt\nd.txt\nh\nl\nq\nsub\nz\n");
}

#[test]
fn a_secret_beside_the_workspace_cannot_be_read() {
    let place = Place::new("");
    let outside = place.fixture.outside();
    for path in ["", "/proc/self/root", "/proc/self/cwd/../outside/../.."] {
        let attack = if path.contains("cwd") {
            "cat ../outside/secret.txt".to_owned()
        } else {
            format!("cat {path}{}/secret.txt", outside.display())
        };
        check_attack(&place, &attack, Fixture::CANARY);
    }
    let link = format!("ln -sf {0}/secret.txt link; cat link; rm link", outside.display());
    check_attack(&place, &link, Fixture::CANARY);
    let hard = format!("ln {0}/secret.txt hard && cat hard; rm -f hard", outside.display());
    check_attack(&place, &hard, Fixture::CANARY);
}

#[test]
fn nothing_outside_can_be_changed() {
    let script = |place: &Place| {
        let outside = place.fixture.outside();
        let outside = outside.display();
        format!(
            "cd {outside}; echo PWNED >> victim.txt; : > victim.txt; truncate -s 0 secret.txt; \
             echo x > new; mkdir dir; mkfifo q; ln -s a l; mv victim.txt moved; rm -f secret.txt; \
             cp {outside}/moved $OLDPWD/taken; mv $OLDPWD/mine ."
        )
    };
    let open = Place::new("//- mine\nx\n");
    let before = Snapshot::of(&open.fixture.outside());
    open.open(&script(&open));
    assert_ne!(Snapshot::of(&open.fixture.outside()), before, "the attack does not work at all");

    let place = Place::new("//- mine\nx\n");
    let before = Snapshot::of(&place.fixture.outside());
    let ran = place.confined(&script(&place));
    assert_eq!(Snapshot::of(&place.fixture.outside()), before, "{ran:?}");
    assert_eq!(place.fixture.read("mine"), "x\n");
}

#[test]
fn the_private_directory_is_writable_and_what_holds_it_is_not() {
    let place = Place::new("");
    let script = "set -e; cd; pwd; echo x > file; mkdir d; cat file; ! ls ..; ! echo y > ../other; ! cat ../canary";
    let text = place.confined(script).succeeded();
    assert!(text.starts_with(place.sandbox.home().to_str().unwrap()), "{text}");
    assert!(text.contains("\nx\n"), "{text}");
}

#[test]
fn the_operators_temporary_directory_is_closed() {
    let place = Place::new("");
    let hidden = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(hidden.path(), Fixture::CANARY).unwrap();
    check_attack(&place, &format!("cat {}", hidden.path().display()), Fixture::CANARY);
    place.confined("ls /tmp").failed();
    place.confined("ls /dev/shm").failed();
}

#[test]
fn credentials_beside_toolchains_are_closed() {
    let home = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(".cargo/bin/tool", "TOOL");
    for secret in [".cargo/credentials.toml", ".npmrc", ".ssh/id_ed25519", ".config/gh/hosts.yml"] {
        put(secret, Fixture::CANARY);
    }
    let place = Place::with("", |policy| policy.home(home.path()));
    let path = home.path().display();
    assert_eq!(place.confined(&format!("cat {path}/.cargo/bin/tool")).succeeded(), "TOOL");
    place.confined(&format!("echo x > {path}/.cargo/bin/tool")).failed();
    let attack = format!(
        "cat {path}/.cargo/credentials.toml {path}/.npmrc {path}/.ssh/* {path}/.config/gh/*"
    );
    check_attack(&place, &attack, Fixture::CANARY);
}

#[test]
fn a_further_place_is_granted_as_far_as_the_policy_says() {
    let fixture = Fixture::new("");
    let (read, write) = (fixture.base().join("read"), fixture.base().join("write"));
    std::fs::create_dir(&read).unwrap();
    std::fs::create_dir(&write).unwrap();
    std::fs::write(read.join("file"), "granted\n").unwrap();
    let place = Place::with("", |policy| policy.extra_read([&read]).extra_write([&write]));
    let (read, write) = (read.display(), write.display());
    let script = format!("cat {read}/file; echo x > {write}/file && cat {write}/file");
    assert_eq!(place.confined(&script).succeeded(), "granted\nx\n");
    place.confined(&format!("echo x > {read}/file")).failed();
}

#[test]
fn a_setuid_bit_cannot_be_put_on_a_file() {
    let place = Place::new("//- tool\nx\n");
    check_attack(&place, "chmod 755 tool; chmod 4755 tool; stat -c %a tool", "4755");
    check_attack(&place, "chmod 755 tool; chmod u+s tool; stat -c %a tool", "4755");
    assert_eq!(place.confined("chmod 2755 tool; stat -c %a tool").succeeded(), "2755\n");
}

#[test]
fn device_nodes_are_granted_one_by_one() {
    let place = Place::new("");
    let script = "set -e; echo x > /dev/null; head -c 2 /dev/zero | wc -c; head -c 2 /dev/urandom | wc -c; \
                  cat < /dev/stdin; echo err > /dev/stderr; cat <(echo substituted)";
    for sandbox in place.all() {
        assert_eq!(place.confined_by(sandbox, script).succeeded(), "2\n2\nerr\nsubstituted\n");
    }
    place.confined("ls /dev").failed();
    check_attack(&place, "ls -l /dev/ | grep -c '^b' | grep -v '^0' && echo DISK", "DISK");
    for sandbox in place.all() {
        place.confined_by(sandbox, "mknod disk b 8 0").failed();
    }
}
