//! Tests, by traces of system calls, the files that commands create: a store's file is locked before the first byte
//! is written, and each file is synced before a rename of the file or of a directory above.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::strace::traced;
use crate::support::{Ended, Place, hikv};

/// The traced calls. Truncations, holes and allocations are not among them: if a crash undoes one, nothing is lost.
const CALLS: &str = "trace=mmap,write,pwrite64,fcntl,fsync,fdatasync,rename,renameat,renameat2";

/// The state of files after the trace so far.
#[derive(Default)]
struct Files {
    locked: BTreeSet<PathBuf>,
    /// Files that were written, or mapped for writing, and not synced since.
    unsynced: BTreeSet<PathBuf>,
    /// The file that each thread is syncing.
    syncing: BTreeMap<String, PathBuf>,
    /// The number of files that were renamed, or whose directory was.
    renamed_count: usize,
}

impl Files {
    /// Processes a call of a thread. Its file is the first path in angle brackets.
    fn note(&mut self, thread: &str, call: &str) {
        let (name, rest) = call.split_once('(').unwrap_or((call, ""));
        let path = rest.split_once('<').and_then(|(_, path)| path.split_once('>')).map(|(path, _)| PathBuf::from(path));
        let is_done = call.ends_with(" = 0");
        match (name, path) {
            ("fsync" | "fdatasync", Some(path)) if is_done => _ = self.unsynced.remove(&path),
            ("fsync" | "fdatasync", Some(path)) => _ = self.syncing.insert(thread.to_owned(), path),
            ("fcntl", Some(path)) if call.contains("F_OFD_SETLK, {l_type=F_WRLCK") && is_done => {
                self.locked.insert(path);
            }
            ("fcntl", Some(path)) if call.contains("F_OFD_SETLK, {l_type=F_UNLCK") => _ = self.locked.remove(&path),
            ("write" | "pwrite64", Some(path)) => self.write(path, call),
            // The mapped file is locked next, then written.
            ("mmap", Some(path)) if call.contains("PROT_WRITE") && call.contains("MAP_SHARED") => {
                self.unsynced.insert(path);
            }
            ("rename" | "renameat" | "renameat2", _) if is_done => self.rename(call),
            _ if call.starts_with("<... fsync resumed>") || call.starts_with("<... fdatasync resumed>") => {
                let path = self.syncing.remove(thread).expect("it was begun");
                self.unsynced.remove(&path);
            }
            _ => {}
        }
    }

    fn write(&mut self, path: PathBuf, call: &str) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_of_store = name.starts_with("store.hikv") || name.starts_with("journal.hikv");
        assert!(!is_of_store || self.locked.contains(&path), "{} is not locked: {call}", path.display());
        // The text of the lock file is only valid while its process runs, so it needs no sync.
        if name != "lock" {
            self.unsynced.insert(path);
        }
    }

    fn rename(&mut self, call: &str) {
        let [from, to]: [PathBuf; 2] =
            call.split('"').skip(1).step_by(2).map(PathBuf::from).collect::<Vec<_>>().try_into().expect("two paths");
        let unsynced = self.unsynced.iter().find(|file| file.starts_with(&from));
        assert!(unsynced.is_none(), "{unsynced:?} is not synced before {call}");
        let renamed = |path: &PathBuf| path.strip_prefix(&from).map_or_else(|_| path.clone(), |rest| joined(&to, rest));
        self.locked = self.locked.iter().map(renamed).collect();
        self.renamed_count += 1;
    }
}

/// Joins paths; adds no slash if `rest` is empty.
fn joined(dir: &Path, rest: &Path) -> PathBuf {
    dir.components().chain(rest.components()).collect()
}

/// Runs `command` and checks all files below the place. Returns the number of renamed files.
fn renamed_count(place: &Place, command: &Command) -> Option<usize> {
    let (ended, trace) = traced(place, command, &[CALLS])?;
    Ended(ended).succeeded();
    let mut files = Files::default();
    for line in trace.lines() {
        let (thread, call) = line.split_once(' ').expect("a thread and its call");
        files.note(thread, call.trim_start());
    }
    Some(files.renamed_count)
}

#[test]
fn new_stores_files_precede_their_names() {
    let place = Place::new();
    for (level, count) in [("power", 2), ("buffered", 2), ("process", 1)] {
        let put = hikv("put", &place.file(level), &["--durability", level, "k", "v"]);
        let Some(found) = renamed_count(&place, &put) else { return };
        assert_eq!(found, count, "{level}");
    }
}

#[test]
fn copied_files_precede_their_names() {
    let place = Place::new();
    place.run("put", &["k", "v"]).succeeded();
    for name in ["backup", "restore", "repair"] {
        let Some(found) = renamed_count(&place, &hikv(name, &place.store(), &[&place.file(name)])) else { return };
        assert_eq!(found, 3, "{name}: base, log, directory");
    }
}
