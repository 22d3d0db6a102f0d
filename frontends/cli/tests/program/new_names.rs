//! Tests, by traces of system calls, that each created or renamed name is durable before the command ends: its
//! directory is synced.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::strace::traced;
use crate::support::{Ended, Place, hikv};

const CALLS: &str = "trace=mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,fsync";

/// Returns the quoted words of a call, which are paths.
fn paths(call: &str) -> Vec<PathBuf> {
    call.split('"').skip(1).step_by(2).map(PathBuf::from).collect()
}

/// Returns the directories whose entries a call has changed.
fn changed(call: &str) -> Vec<PathBuf> {
    let has_changed = !call.contains("fsync(") && call.contains(") = 0");
    let paths = if has_changed { paths(call) } else { Vec::new() };
    paths.iter().map(|path| path.parent().unwrap().to_owned()).collect()
}

fn is_sync_of(call: &str, dir: &Path) -> bool {
    call.contains("fsync(") && call.contains(&format!("<{}>)", dir.display())) && call.contains("= 0")
}

/// Runs `command` and checks that each name it created is synced afterwards. Returns their number.
fn synced_names(place: &Place, command: &Command) -> Option<usize> {
    let (ended, trace) = traced(place, command, &[CALLS])?;
    Ended(ended).succeeded();
    let calls: Vec<&str> = trace.lines().collect();
    let mut count = 0;
    for (i, call) in calls.iter().enumerate() {
        for dir in changed(call) {
            let is_synced = calls[i..].iter().any(|later| is_sync_of(later, &dir));
            assert!(is_synced, "{} is not synced after {call}:\n{trace}", dir.display());
            count += 1;
        }
    }
    Some(count)
}

#[test]
fn store_that_is_made_stays() {
    let place = Place::new();
    for (name, level, count) in [("journaled", "power", 7), ("direct", "process", 5)] {
        let dir = place.file(name).join("deep/down");
        let Some(found) = synced_names(&place, &hikv("put", &dir, &["--durability", level, "k", "v"])) else { return };
        assert_eq!(found, count, "directories and names");
    }
}

/// An existing directory may have been created by a process that died before it synced the directory's name.
#[test]
fn directory_of_interrupted_creation_is_synced() {
    let place = Place::new();
    std::fs::create_dir(place.store()).unwrap();
    let Some((ended, trace)) = traced(&place, &hikv("put", &place.store(), &["k", "v"]), &["trace=fsync"]) else {
        return;
    };
    Ended(ended).succeeded();
    let above = place.store().parent().unwrap().to_owned();
    assert!(trace.lines().any(|call| is_sync_of(call, &above)), "{trace}");
}

#[test]
fn copies_of_a_store_stay() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    for name in ["backup", "restore", "repair"] {
        let out = place.file(name).join("deep/out");
        let Some(found) = synced_names(&place, &hikv(name, &place.store(), &[&out])) else { return };
        assert!(found >= 5, "{name}: {found} directories and names");
    }
}
