//! Stores whose files are removed or moved, interrupted work, and expiries beyond the representable range.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use hikv::{
    BackupError, Durability, EngineKind, Error, FilesStatus, MediumError, Options, PutOptions, Store, WriteBatch,
};

/// Calls `test` with a store of each engine, in a directory with other files.
fn each_engine(test: impl Fn(&Path, Store)) {
    for &engine in EngineKind::ALL {
        let place = tempfile::tempdir().unwrap();
        let store = Options::new().engine(engine).open(place.path().join("store")).unwrap();
        store.put("before", "1").unwrap();
        test(place.path(), store);
    }
}

fn is_removed<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Medium(MediumError::Removed)))
}

#[test]
fn removed_stores_take_no_writes() {
    each_engine(|place, store| {
        fs::remove_dir_all(place.join("store")).unwrap();
        assert_eq!(hikv::FrontEnd::of(&store).check_files(), FilesStatus::Removed);
        assert!(is_removed(store.put("after", "1")));
        assert!(is_removed(store.delete("before")));
        hikv::FrontEnd::of(&store).multi_put_each(&[("after", "1")], |_, put| assert!(is_removed(put)));
        hikv::FrontEnd::of(&store).multi_delete_each(&["before"], |_, deleted| assert!(is_removed(deleted)));
        assert!(is_removed(store.sync()) && is_removed(store.health()));
        assert_eq!(store.get("before").unwrap().as_deref(), Some(&b"1"[..]));
        if store.features().snapshots {
            let saved = place.join("saved");
            store.backup_latest(&saved).unwrap();
            assert_eq!(Store::open_read_only(saved).unwrap().get("before").unwrap().as_deref(), Some(&b"1"[..]));
        }
        assert_eq!(store.stats().files, "removed");
        assert!(is_removed(store.close()));
    });
}

#[test]
fn writer_notices_removed_store() {
    for &engine in EngineKind::ALL {
        let place = tempfile::tempdir().unwrap();
        let store =
            Options::new().engine(engine).durability(Durability::Process).open(place.path().join("store")).unwrap();
        store.put("before", "1").unwrap();
        fs::remove_dir_all(place.path().join("store")).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_removed(store.put("after", "1")) {
            assert!(Instant::now() < deadline, "{engine}: writes to a removed store are taken");
        }
    }
}

#[test]
fn each_moved_file_is_noticed() {
    each_engine(|place, store| {
        for name in ["store.hikv", "journal.hikv"] {
            let (file, away) = (place.join("store").join(name), place.join("away"));
            // If the temporary directory is in memory, there is no journal.
            if fs::rename(&file, &away).is_ok() {
                assert_eq!(hikv::FrontEnd::of(&store).check_files(), FilesStatus::Moved, "{name}");
                fs::rename(&away, &file).unwrap();
            }
            assert_eq!(hikv::FrontEnd::of(&store).check_files(), FilesStatus::InPlace, "{name}");
        }
    });
}

#[test]
fn moved_stores_are_written_and_saved_elsewhere() {
    each_engine(|place, store| {
        let (path, moved) = (place.join("store"), place.join("moved"));
        fs::rename(&path, &moved).unwrap();
        assert_eq!(hikv::FrontEnd::of(&store).check_files(), FilesStatus::Moved);
        store.put("after", "1").unwrap();
        assert!(matches!(store.backup_latest(path.join("backup")), Err(BackupError::Place { .. })));
        assert!(!path.exists());
        drop(Store::open(&path).unwrap());
        let spelt = place.join("moved").join("../store/backup");
        assert!(matches!(store.backup_latest(spelt), Err(BackupError::Place { .. })));
        if store.features().snapshots {
            store.backup_latest(moved.join("backup")).unwrap();
        }
        store.close().unwrap();
        assert!(Store::open(&moved).unwrap().contains("after").unwrap());
    });
}

#[test]
fn paths_through_a_file_lead_nowhere() {
    let place = tempfile::tempdir().unwrap();
    let (above, moved) = (place.path().join("above"), place.path().join("moved"));
    let store = Store::open(above.join("store")).unwrap();
    fs::rename(&above, &moved).unwrap();
    fs::write(&above, "a file").unwrap();
    assert_eq!(hikv::FrontEnd::of(&store).check_files(), FilesStatus::Moved);
}

#[test]
fn stopped_copies_leave_nothing() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(place.path().join("store")).unwrap();
    (0..2_000_u32).for_each(|number| store.put(number.to_be_bytes(), "value").unwrap());
    let out = place.path().join("out");
    let mut shown = 0;
    let stopped = store.backup(&out, |_| {
        shown += 1;
        if shown > 300 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(BackupError::Stopped)));
    assert!(shown < 2_000, "it went on");
    store.close().unwrap();
    for &engine in EngineKind::ALL {
        let stop = |_| ControlFlow::Break(());
        let stopped = hikv::convert(place.path().join("store"), &out, engine, stop);
        assert!(matches!(stopped, Err(BackupError::Stopped)), "{engine}");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "the store alone");
}

#[test]
fn expiries_beyond_counting_are_refused() {
    each_engine(|_, store| {
        if !store.features().expiry {
            return;
        }
        let far = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 62);
        for refused in [
            store.put_with("k", "v", PutOptions::new().ttl(Duration::MAX)),
            store.put_with("k", "v", PutOptions::new().ttl(Duration::from_secs(1 << 60))),
            store.put_from_with("k", 1, &b"v"[..], PutOptions::new().ttl(Duration::MAX)),
            store.put_with("k", "v", PutOptions::new().expires(far)),
            store.put_from_with("k", 1, &b"v"[..], PutOptions::new().expires(far)),
            store.expire("before", Duration::MAX).map(drop),
            store.expire("before", far).map(drop),
            store.write(WriteBatch::new().put_with("k", "v", PutOptions::new().ttl(Duration::MAX))),
        ] {
            assert!(matches!(refused, Err(Error::ExpiryTooLate { .. })), "{refused:?}");
        }
        assert!(!store.contains("k").unwrap());
        store.put_with("k", "v", PutOptions::new().ttl(Duration::from_secs(1 << 50))).unwrap();
    });
}
