//! Names that lead elsewhere, or are removed while a store is open: there is still one writer, and no other file is
//! replaced.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use hikv::{BackupError, Durability, OpenError, Options, Store};

use crate::bad_files::store::{Closed, assert_names};

fn assert_held(opened: Result<Store, OpenError>, store: &Path) {
    let error = opened.unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert_names(&error, store, &["in use by this process itself"]);
}

/// Opens a store on each available medium: a journal, a region in the page cache, memory.
fn opened_in(home: &Path) -> Vec<Store> {
    let open = |name: &str, options: Options| options.open(home.join(name)).unwrap();
    vec![open("journaled", Options::new()), open("direct", Options::new().durability(Durability::Process))]
}

/// Removes the lock file. A refused opening must not leave a new one.
fn remove_lock(dir: &Path) {
    let removed = fs::remove_file(dir.join("lock"));
    assert!(removed.is_ok() || !dir.join("lock").exists(), "{removed:?}");
}

#[test]
fn removed_lock_admits_no_process() {
    for home in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
        for store in opened_in(home.path()) {
            let path = store.path().to_owned();
            store.put("first", "1").unwrap();
            for _ in 0..2 {
                remove_lock(&path);
                assert_held(Store::open(&path), &path);
                assert_held(Store::open_read_only(&path), &path);
            }
            store.put("second", "2").unwrap();
            store.close().unwrap();
            let reader = Store::open_read_only(&path).unwrap();
            remove_lock(&path);
            assert_held(Store::open(&path), &path);
            assert_eq!(Store::open_read_only(&path).unwrap().get("second").unwrap().as_deref(), Some(&b"2"[..]));
            drop(reader);
            assert_eq!(Store::open(&path).unwrap().len().unwrap(), 2);
        }
    }
}

#[test]
fn aliases_of_files_are_one_store() {
    let home = tempfile::tempdir().unwrap();
    for (number, store) in opened_in(home.path()).into_iter().enumerate() {
        let other = home.path().join(number.to_string());
        fs::create_dir(&other).unwrap();
        for file in
            ["store.hikv", "journal.hikv"].map(|name| store.path().join(name)).iter().filter(|file| file.exists())
        {
            fs::hard_link(file, other.join(file.file_name().unwrap())).unwrap();
        }
        assert_held(Store::open(&other), &other);
        // Neither file is enough on its own: a log shared by two stores would have two writers.
        let base = other.join("store.hikv");
        fs::copy(&base, home.path().join("copy")).unwrap();
        fs::rename(home.path().join("copy"), &base).unwrap();
        if other.join("journal.hikv").exists() {
            assert_held(Store::open(&other), &other);
        }
    }
}

#[test]
fn dangling_link_is_no_place_for_store() {
    let home = tempfile::tempdir().unwrap();
    let (path, mounted) = (home.path().join("store"), home.path().join("mounted"));
    for name in ["store.hikv", "journal.hikv"] {
        fs::create_dir_all(&path).unwrap();
        symlink(mounted.join(name), path.join(name)).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert_names(&error, &path.join(name), &["cannot"]);
        assert!(path.join(name).is_symlink() && !mounted.exists());
        fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn link_as_lock_file_is_refused() {
    let store = Closed::new();
    let (lock, letter) = (store.path().join("lock"), store.path().parent().unwrap().join("letter"));
    fs::write(&letter, "dear").unwrap();
    fs::remove_file(&lock).unwrap();
    symlink(&letter, &lock).unwrap();
    store.assert_refused(&["lock", "symbolic link"]);
    fs::remove_file(&lock).unwrap();
    symlink(store.path().join("elsewhere"), &lock).unwrap();
    store.assert_refused(&["lock", "symbolic link"]);
    assert!(!store.path().join("elsewhere").exists());
    assert_eq!(fs::read(letter).unwrap(), b"dear");
}

/// While a backup is written, another one to the same place is refused although the lock file was removed. It takes
/// nothing from the first.
#[test]
fn unfinished_backup_has_one_owner() {
    let home = tempfile::tempdir().unwrap();
    let (out, partial) = (home.path().join("out"), home.path().join("out.partial"));
    for store in opened_in(home.path()) {
        store.put("key", "value").unwrap();
        let mut refused = None;
        store
            .backup(&out, |_| {
                fs::remove_file(partial.join("lock")).unwrap();
                refused = Some(store.backup(&out, |_| {}));
            })
            .unwrap();
        let refused = refused.expect("an item was backed up");
        assert!(matches!(refused, Err(BackupError::Open(OpenError::Locked { .. }))), "{refused:?}");
        assert_eq!(Store::open_read_only(&out).unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
        fs::remove_dir_all(&out).unwrap();
    }
}

/// The directory of an unfinished backup is emptied, but not the target of a link in its place.
#[test]
fn link_as_unfinished_backup_is_refused() {
    let store = Closed::new();
    let home = store.path().parent().unwrap().to_owned();
    symlink(store.path(), home.join("out.partial")).unwrap();
    let refused = Store::open(home.join("other")).unwrap().backup(home.join("out"), |_| {});
    assert!(matches!(&refused, Err(BackupError::Occupied { .. })), "{refused:?}");
    store.assert_intact();
}
