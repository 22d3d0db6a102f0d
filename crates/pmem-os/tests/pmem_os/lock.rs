//! Locks between processes: the tests start themselves again as the other process.

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::{env, fs};

use pmem_os::{LockError, StoreLock};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::{alone, common};

/// An environment variable of a test that was started again: the lock to hold, and `w` for writing.
const ROLE: &str = "PMEM_OS_TEST_HOLDS";

/// Another process that holds a lock until it is stopped or killed.
struct Holder {
    child: Child,
    /// Kept open, so that the harness in the other process can write to the end.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Holder {
    /// Starts `test` again to hold the lock at `path`.
    fn start(test: &str, path: &Path, kind: &str) -> Holder {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args([&format!("lock::{test}"), "--exact", "--nocapture"])
            .env(ROLE, format!("{kind}{}", path.display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().ends_with("held")), "the other process did not get the lock");
        Holder { child, _output: lines }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process by SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets the process end.
    fn stop(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// Holds the lock until standard input ends, if the test was started as the other process; returns true then.
#[expect(clippy::print_stdout, reason = "the test that started this one waits for it")]
fn hold_if_started_for_it() -> bool {
    let Ok(role) = env::var(ROLE) else { return false };
    let (kind, path) = role.split_at(1);
    let path = PathBuf::from(path);
    let lock = if kind == "w" { StoreLock::exclusive(&path) } else { StoreLock::shared(&path) };
    let _lock = lock.unwrap();
    println!("held");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    true
}

fn holder_of(refused: Result<StoreLock, LockError>) -> String {
    match refused {
        Err(LockError::Held { holder }) => holder,
        other => panic!("the lock should be held: {other:?}"),
    }
}

#[test]
fn writer_in_another_process_is_named() {
    if hold_if_started_for_it() {
        return;
    }
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("lock");
    let writer = Holder::start("writer_in_another_process_is_named", &path, "w");
    let program = env::current_exe().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let named =
        format!("process {} ({program} lock::writer_in_another_process_is_named --exact --nocapture)", writer.pid());
    let named: String = named.chars().take(100).collect();
    for refused in [StoreLock::exclusive(&path), StoreLock::shared(&path)] {
        let holder = holder_of(refused);
        assert!(holder.starts_with(&named), "{holder}");
    }
    fs::write(&path, "1 a text that lies\n").unwrap();
    let holder = holder_of(StoreLock::exclusive(&path));
    assert!(holder.starts_with(&named), "{holder}");
    writer.stop();
    assert!(StoreLock::exclusive(&path).is_ok());
}

#[test]
fn killed_writer_holds_nothing() {
    if hold_if_started_for_it() {
        return;
    }
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("lock");
    let writer = Holder::start("killed_writer_holds_nothing", &path, "w");
    let left = format!("{} ", writer.pid());
    assert!(StoreLock::exclusive(&path).is_err());
    writer.kill();
    assert!(fs::read_to_string(&path).unwrap().starts_with(&left));
    let lock = StoreLock::exclusive(&path).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with(&format!("{} ", std::process::id())));
    assert_eq!(holder_of(StoreLock::exclusive(&path)), "this process itself");
    drop(lock);
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[test]
fn readers_share_and_keep_a_writer_out() {
    if hold_if_started_for_it() {
        return;
    }
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("lock");
    drop(StoreLock::exclusive(&path).unwrap());
    let reader = Holder::start("readers_share_and_keep_a_writer_out", &path, "r");
    let holder = holder_of(StoreLock::exclusive(&path));
    assert!(holder.starts_with(&format!("process {} (", reader.pid())), "{holder}");
    assert!(holder.ends_with("), for reading"), "{holder}");
    let shared = StoreLock::shared(&path).unwrap();
    let holder = holder_of(StoreLock::exclusive(&path));
    assert!(holder.ends_with(" and another, for reading"), "{holder}");
    reader.stop();
    assert_eq!(holder_of(StoreLock::exclusive(&path)), "this process itself, for reading");
    drop(shared);
    assert!(StoreLock::exclusive(&path).is_ok());
}

#[test]
fn lock_file_is_private_and_required() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("lock");
    assert!(matches!(StoreLock::shared(&path), Err(LockError::Io { doing: "open", .. })));
    drop(StoreLock::exclusive(&path).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
    assert!(StoreLock::shared(&path).is_ok());
}

fn why_not(refused: Result<StoreLock, LockError>) -> String {
    match refused {
        Err(error @ LockError::Io { .. }) => error.to_string(),
        other => panic!("it should be refused: {other:?}"),
    }
}

#[test]
fn foreign_file_is_not_used_as_lock() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let [path, letter] = ["lock", "letter"].map(|name| place.path().join(name));
    let refused_for = |why: &str| {
        for reported in [StoreLock::exclusive(&path), StoreLock::shared(&path)].map(why_not) {
            assert!(reported.contains(why) && reported.contains("/lock: "), "{reported}");
        }
    };
    fs::write(&letter, "dear").unwrap();

    symlink(&letter, &path).unwrap();
    refused_for("symbolic link");
    StoreLock::remove_unused(&path).unwrap();
    symlink(place.path().join("nothing"), &path).unwrap();
    refused_for("symbolic link");
    assert!(!place.path().join("nothing").exists());
    StoreLock::remove_unused(&path).unwrap();

    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    refused_for("not a lock file");
    StoreLock::remove_unused(&path).unwrap();

    // A file that has another name, or is longer than a writer's text, is locked and keeps its bytes.
    fs::hard_link(&letter, &path).unwrap();
    drop(StoreLock::exclusive(&path).unwrap());
    assert_eq!(fs::read(&letter).unwrap(), b"dear");
    let novel = "It was a dark and stormy night. ".repeat(100);
    StoreLock::remove_unused(&path).unwrap();
    fs::write(&path, &novel).unwrap();
    drop(StoreLock::exclusive(&path).unwrap());
    assert_eq!(fs::read(&path).unwrap(), novel.as_bytes());
}

#[test]
fn open_file_is_locked_under_any_name() {
    let _alone = alone();
    let place = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| place.path().join(name));
    fs::write(&one, "bytes").unwrap();
    fs::hard_link(&one, &other).unwrap();
    let open = |path: &Path| fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let writer = StoreLock::of_open(open(&one), &one, true).unwrap();
    for refused in [StoreLock::of_open(open(&other), &other, true), StoreLock::of_open(open(&other), &other, false)] {
        assert_eq!(holder_of(refused), "this process itself");
    }
    assert!(matches!(StoreLock::remove_unused(&other), Err(LockError::Held { .. })));
    assert!(writer.is_of(&other).unwrap() && !writer.is_of(place.path()).unwrap());
    drop(writer);
    let readers = [&one, &other].map(|path| StoreLock::of_open(open(path), path, false).unwrap());
    assert_eq!(holder_of(StoreLock::of_open(open(&one), &one, true)), "this process itself, for reading");
    drop(readers);
    StoreLock::remove_unused(&other).unwrap();
    StoreLock::remove_unused(&other).unwrap();
    assert_eq!(fs::read(&one).unwrap(), b"bytes");
}

/// Like device-DAX, which few machines have.
#[test]
fn character_device_is_locked_itself() {
    let _alone = alone();
    let path = Path::new("/dev/full");
    let open = || fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let writer = StoreLock::of_open(open(), path, true).unwrap();
    assert_eq!(holder_of(StoreLock::of_open(open(), path, false)), "this process itself");
    drop(writer);
    StoreLock::of_open(open(), path, true).unwrap();
}

/// Tests the statements about nodes in the module's head, on a separate file system on which devices can be opened.
#[test]
fn each_device_node_has_one_lock() {
    let _alone = alone();
    common::on_mount("tmpfs", c"size=64k", |dir| {
        let [node, link, soft, other] = ["node", "link", "soft", "other"].map(|name| dir.join(name));
        let full = fs::metadata("/dev/full").unwrap().rdev();
        for path in [&node, &other] {
            if let Err(error) = mknodat(CWD, path, FileType::CharacterDevice, Mode::RUSR | Mode::WUSR, full) {
                return common::skipped(&format!("no node of a device can be made here: {error}"));
            }
        }
        fs::hard_link(&node, &link).unwrap();
        symlink(&node, &soft).unwrap();
        let lock = |path: &Path| {
            let open = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
            StoreLock::of_open(open, path, true)
        };
        let _writer = lock(&node).unwrap();
        for path in [&node, &link, &soft] {
            assert_eq!(holder_of(lock(path)), "this process itself");
        }
        assert!(lock(&other).is_ok(), "the kernel has learnt to tell: so may the documents");
    });
}

#[test]
fn full_file_system_leaves_store_unlocked() {
    let _alone = alone();
    common::on_mount("tmpfs", c"size=4k", |dir| {
        fs::write(dir.join("filler"), [1; 4096]).unwrap();
        let lock = StoreLock::exclusive(&dir.join("lock")).unwrap();
        assert_eq!(holder_of(StoreLock::exclusive(&dir.join("lock"))), "this process itself");
        drop(lock);
    });
}
