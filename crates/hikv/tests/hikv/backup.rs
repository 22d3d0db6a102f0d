//! Backups show one moment, are complete or absent, and can be restored.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, thread};

use hikv::{BackupError, Durability, OpenError, Options, Store};
use tempfile::TempDir;
use testkit::Extent;

const ITEM_COUNT: u64 = 2_000;
/// The number of interrupted backups.
const KILL_COUNT: usize = 30;

/// In a restarted test, the directory of store and backup.
const DIR: &str = "HIKV_TEST_BACKS_UP";

fn store_in(dir: &TempDir) -> PathBuf {
    dir.path().join("store")
}

fn out_in(dir: &Path) -> PathBuf {
    dir.join("out")
}

fn filled() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = Options::new().durability(Durability::Buffered).open(store_in(&dir)).unwrap();
    for number in 0..ITEM_COUNT {
        store.put(number.to_le_bytes(), vec![number as u8; (number % 300) as usize]).unwrap();
    }
    store.put("film", vec![7; 1 << 20]).unwrap();
    dir
}

fn assert_intact(path: &Path) {
    let store = Store::open_read_only(path).unwrap();
    assert_eq!(store.len().unwrap(), ITEM_COUNT + 1);
    for number in 0..ITEM_COUNT {
        let value = vec![number as u8; (number % 300) as usize];
        assert_eq!(store.get(number.to_le_bytes()).unwrap(), Some(value.into()));
    }
    assert_eq!(store.get("film").unwrap().map(|film| film.len()), Some(1 << 20));
    assert_eq!(store.verify(|_| {}).unwrap().damage, []);
}

/// Returns the names in a directory.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn backup_opens_and_is_restored() {
    let dir = filled();
    let (out, back) = (out_in(dir.path()), dir.path().join("back"));
    let mut seen = Vec::new();
    let report = Store::open(store_in(&dir)).unwrap().backup(&out, |at| seen.push(at.items)).unwrap();
    assert_eq!(
        (report.items, report.region_bytes),
        (ITEM_COUNT + 1, fs::metadata(out.join("store.hikv")).unwrap().len())
    );
    assert!(seen.iter().copied().eq(1..=ITEM_COUNT + 1));
    assert_intact(&out);
    let report = hikv::restore(&out, dir.path().join("back/"), |_| {}).unwrap();
    assert_eq!(report.items, ITEM_COUNT + 1);
    assert_intact(&back);
    assert_eq!(names(dir.path()), ["back", "out", "store"]);
    // A journal exists if the file system is on a disk.
    let files: Vec<_> = names(&back).into_iter().filter(|name| name != "journal.hikv").collect();
    assert_eq!(files, ["copy-of", "lock", "store.hikv"]);
    Store::open(&back).unwrap().put("it", "is a store").unwrap();
    assert!(!names(&back).contains(&"copy-of".to_owned()));
}

/// Otherwise the next backup could not replace it.
#[test]
fn copy_that_was_not_opened_stays_one() {
    let dir = filled();
    let out = out_in(dir.path());
    Store::open(store_in(&dir)).unwrap().backup(&out, |_| {}).unwrap();
    let is_marked = || names(&out).contains(&"copy-of".to_owned());
    let reader = Store::open_read_only(&out).unwrap();
    let refused = Store::open(&out).expect_err("a reader has it open");
    assert!(is_marked(), "{refused}");
    drop(reader);
    let (log, kept) = (out.join("journal.hikv"), dir.path().join("kept"));
    let is_journaled = log.exists();
    if is_journaled {
        fs::rename(&log, &kept).unwrap();
    }
    fs::write(&log, "no log").unwrap();
    assert!(Store::open(&out).is_err() && is_marked());
    fs::remove_file(&log).unwrap();
    if is_journaled {
        fs::rename(kept, log).unwrap();
    }
    drop(Store::open(&out).unwrap());
    assert!(!is_marked());
}

#[test]
fn nothing_is_overwritten() {
    let dir = filled();
    let store = Store::open(store_in(&dir)).unwrap();
    for there in [store_in(&dir), dir.path().to_owned()] {
        let refused = store.backup(&there, |_| {});
        assert!(matches!(&refused, Err(BackupError::Exists { path }) if *path == there), "{refused:?}");
    }
    let out = out_in(dir.path());
    fs::write(&out, "a file").unwrap();
    assert!(matches!(store.backup(&out, |_| {}), Err(BackupError::Exists { .. })));
    assert!(matches!(hikv::restore(store_in(&dir), &out, |_| {}), Err(BackupError::Open(OpenError::Locked { .. }))));
    drop(store);
    assert!(matches!(hikv::restore(store_in(&dir), &out, |_| {}), Err(BackupError::Exists { .. })));
    assert_eq!(fs::read(&out).unwrap(), b"a file");
}

#[test]
fn existing_target_stays() {
    let dir = filled();
    let partial = dir.path().join("out.partial");
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join("letters"), "dear").unwrap();
    let refused = Store::open(store_in(&dir)).unwrap().backup(out_in(dir.path()), |_| {});
    assert!(matches!(&refused, Err(BackupError::Occupied { path, .. }) if path.ends_with("letters")), "{refused:?}");
    assert_eq!(fs::read(partial.join("letters")).unwrap(), b"dear");
}

#[test]
fn store_named_like_unfinished_backup_stays() {
    let dir = filled();
    let (store, partial) = (Store::open(store_in(&dir)).unwrap(), dir.path().join("out.partial"));
    let elsewhere = dir.path().join("elsewhere");
    Store::open(&elsewhere).unwrap().put("mine", "yes").unwrap();
    let refused = |what: &str| {
        let refused = store.backup(out_in(dir.path()), |_| {});
        assert!(matches!(&refused, Err(BackupError::Occupied { path, .. }) if *path == partial), "{what}: {refused:?}");
        assert_eq!(Store::open_read_only(&elsewhere).unwrap().get("mine").unwrap().unwrap(), b"yes");
    };
    std::os::unix::fs::symlink(&elsewhere, &partial).unwrap();
    refused("a symbolic link");
    fs::remove_file(&partial).unwrap();
    fs::rename(&elsewhere, &partial).unwrap();
    std::os::unix::fs::symlink(&partial, &elsewhere).unwrap();
    refused("a store");
}

/// Opens the copy for writing.
#[test]
fn store_replacing_interrupted_backup_stays() {
    let dir = filled();
    let (store, partial) = (Store::open(store_in(&dir)).unwrap(), dir.path().join("out.partial"));
    let whole = dir.path().join("whole");
    store.backup(&whole, |_| {}).unwrap();
    fs::create_dir(&partial).unwrap();
    fs::copy(whole.join("copy-of"), partial.join("copy-of")).unwrap();
    Store::open(&partial).unwrap().put("mine", "yes").unwrap();
    let refused = store.backup(out_in(dir.path()), |_| {});
    assert!(matches!(&refused, Err(BackupError::Occupied { path, .. }) if *path == partial), "{refused:?}");
    assert_eq!(Store::open_read_only(&partial).unwrap().get("mine").unwrap().unwrap(), b"yes");
}

#[test]
fn damaged_backup_is_not_restored() {
    let dir = filled();
    let (file, back) = (store_in(&dir).join("store.hikv"), dir.path().join("back"));
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(100).position(|window| window == [7; 100]).unwrap();
    bytes[at + 50] ^= 1;
    fs::write(&file, bytes).unwrap();
    let refused = hikv::restore(store_in(&dir), &back, |_| {});
    assert!(matches!(&refused, Err(BackupError::Damaged { damage, .. }) if damage.len() == 1), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("damaged in 1 place,"));
    // A backup of the copy fails as well, and leaves nothing.
    assert!(matches!(
        Store::open(store_in(&dir)).unwrap().backup(&back, |_| {}),
        Err(BackupError::Read(hikv::Error::Corrupt { .. }))
    ));
    assert_eq!(names(dir.path()), ["store"]);
}

/// A writer counts in one key and then in another: at no moment is the second ahead of the first, or far behind it.
#[test]
fn backup_is_of_one_moment() {
    let dir = filled();
    let (store, done) = (Store::open(store_in(&dir)).unwrap(), AtomicBool::new(false));
    let count = |name: &str, count: u64| store.put(name, count.to_le_bytes()).unwrap();
    count("first", 0);
    count("second", 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                count("first", number);
                count("second", number);
                store.put(number.to_be_bytes(), "another").unwrap();
                store.delete((number / 2).to_be_bytes()).unwrap();
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        for round in 0..10 {
            let out = dir.path().join(round.to_string());
            store.backup(&out, |_| {}).unwrap();
            let backup = Store::open_read_only(&out).unwrap();
            let counted = |name: &str| u64::from_le_bytes(backup.get(name).unwrap().unwrap()[..].try_into().unwrap());
            let (first, second) = (counted("first"), counted("second"));
            assert!(second <= first && first <= second + 1, "{first} and {second}");
            let numbers = 1.max(second / 2 + 1)..=second.saturating_sub(1);
            numbers.for_each(|number| assert!(backup.contains(number.to_be_bytes()).unwrap(), "{number} of {first}"));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(store.stats().kept_count, 0);
}

/// In a process started for this, makes a backup, reports each item, and continues when it is allowed to.
fn back_up_if_started_for_it() -> bool {
    let Ok(dir) = env::var(DIR) else { return false };
    let store = Options::new().create(false).open(Path::new(&dir).join("store")).unwrap();
    let report = |_| {
        io::stderr().write_all(b".").unwrap();
        io::stdin().read_exact(&mut [0]).unwrap();
    };
    store.backup(out_in(Path::new(&dir)), report).unwrap();
    true
}

/// Runs a backup in a separate process, and kills it after it has reported `count` items and before it completes the
/// next one. So a backup of more items is never complete, however late the kill arrives.
fn killed_after(dir: &Path, count: usize) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["backup::an_interrupted_backup_is_none", "--exact", "--nocapture"]).env(DIR, dir);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Both pipes stay open until the end; otherwise the process would fail instead of being killed.
    let (mut may_go, mut reports) = (child.stdin.take().unwrap(), child.stderr.take().unwrap());
    let mut reported = vec![0; count];
    may_go.write_all(&reported).unwrap();
    reports.read_exact(&mut reported).unwrap();
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.signal() == Some(libc::SIGKILL) || status.success(), "{status}");
}

#[test]
fn an_interrupted_backup_is_none() {
    if back_up_if_started_for_it() {
        return;
    }
    let dir = filled();
    let (out, partial) = (out_in(dir.path()), dir.path().join("out.partial"));
    let mut random = fastrand::Rng::with_seed(1);
    let mut interrupted_count = 0;
    let kill_count = Extent::pick(KILL_COUNT / 3, KILL_COUNT);
    for round in 0..kill_count {
        // Every second backup is killed after its last item, when it may or may not be complete.
        let count = if round % 2 == 0 { random.usize(1..=ITEM_COUNT as usize) } else { ITEM_COUNT as usize + 1 };
        killed_after(dir.path(), count);
        if out.exists() {
            assert_intact(&out);
            fs::remove_dir_all(&out).unwrap();
        } else {
            interrupted_count += 1;
            // Opening it for writing would turn it into an independent store.
            match Store::open_read_only(&partial) {
                Err(OpenError::Missing { .. }) => {}
                opened => {
                    drop(opened.unwrap());
                    assert_intact(&partial);
                }
            }
        }
    }
    assert!(interrupted_count >= kill_count / 2, "{interrupted_count} were interrupted");
    let store = Store::open(store_in(&dir)).unwrap();
    store.backup(&out, |_| {}).unwrap();
    assert_intact(&out);
    assert!(!partial.exists());
    let mut count = 0;
    let each = |_: &[u8], _: &[u8]| {
        count += 1;
    };
    store.for_each(each).unwrap();
    assert_eq!(count, ITEM_COUNT + 1);
}
