//! Tests full and read-only file systems.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::mount::{MountFlags, mount_remount};

use crate::support::Place;

/// Returns lines that exceed the file system of the test several times.
fn too_much() -> String {
    (0..40_000).map(|number| format!("key-{number}\t{number}-{}\n", "v".repeat(1_000))).collect()
}

#[test]
fn full_tmpfs_ends_load_keeps_acknowledged() {
    Place::on_tmpfs(12, |place| {
        let ended = place.run_with_input("load", &["-"], too_much().as_bytes());
        let messages = ended.messages();
        let loaded = messages.split("loaded ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().replace(',', "");
        let loaded: usize = loaded.parse().unwrap();
        ended.failed(2, &["store", "bytes"]);
        assert!((1_000..12_000).contains(&loaded), "{messages}");
        assert!(place.run("check", &[""; 0]).succeeded().ends_with(b" items, no damage\n"));
        let dumped = String::from_utf8(place.run("dump", &["--bare"]).succeeded()).unwrap();
        let kept: std::collections::HashSet<&str> = dumped.lines().collect();
        assert!(too_much().lines().take(loaded).all(|line| kept.contains(line)), "an acknowledged item is lost");
        place.run("put", &["large", &"v".repeat(100_000)]).failed(2, &["store", "bytes"]);
        place.run("del", &["key-0", "key-1", "key-2"]).succeeded();
        place.run("put", &["key-3", &"w".repeat(1_000)]).succeeded();
    });
}

#[test]
fn read_only_file_system_is_read() {
    Place::on_tmpfs(12, |place| {
        place.run("put", &["k", "v"]).succeeded();
        mount_remount(place.file(""), MountFlags::RDONLY, c"").unwrap();
        assert_eq!(place.run("get", &["k"]).succeeded(), b"v");
        place.run("check", &[""; 0]).succeeded();
        for (command, arguments) in [("put", &["k", "new"][..]), ("del", &["k"]), ("load", &["-"]), ("serve", &[])] {
            place.run(command, arguments).failed(2, &["store", "Read-only file system"]);
        }
        assert_eq!(place.run("get", &["k"]).succeeded(), b"v");
    });
}

#[test]
fn read_only_file_is_read() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    let file = place.store().join("store.hikv");
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    assert_eq!(place.run("get", &["k"]).succeeded(), b"v");
    let may_write_anyway = fs::File::options().write(true).open(&file).is_ok();
    match may_write_anyway {
        true => drop(place.run("put", &["k", "new"]).succeeded()),
        false => place.run("put", &["k", "new"]).failed(2, &["store.hikv", "Permission denied"]),
    }
}
