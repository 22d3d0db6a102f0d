//! Paths that lead nowhere or to other files, and places without write permission.

use std::fs::{self, Permissions};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::{env, thread};

use hikv::{Error, OpenError, Options, Store};
use rustix::mount::{MountFlags, mount_remount};

use crate::bad_files::space::{on_tmpfs, skipped};
use crate::bad_files::store::{Closed, ITEM_COUNT, assert_holds, assert_names};

#[test]
fn missing_store_is_created_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().join("missing"), dir.path().to_owned()] {
        let not_created = [Store::open_read_only(&path), Options::new().create(false).open(&path)];
        for error in not_created.map(Result::unwrap_err) {
            assert!(matches!(error, OpenError::Missing { .. }));
            assert_names(&error, &path, &["no store"]);
        }
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "looking for a store leaves nothing behind");
}

/// Runs in a separate process, whose current directory is empty.
#[test]
fn empty_path_is_refused_without_trace() {
    const STARTED: &str = "HIKV_TEST_EMPTY_PATH";
    const TEST: &str = "bad_files::paths::empty_path_is_refused_without_trace";
    if env::var_os(STARTED).is_some() {
        let other = Store::open("other").unwrap();
        for refused in [
            Store::open("").unwrap_err().to_string(),
            Store::open_read_only("").unwrap_err().to_string(),
            other.backup("", |_| {}).unwrap_err().to_string(),
            hikv::repair::repair("other", "", |_| ControlFlow::Continue(())).unwrap_err().to_string(),
        ] {
            assert!(refused.contains("the path is empty"), "{refused}");
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut again = Command::new(env::current_exe().unwrap());
    let ended = again.args([TEST, "--exact", "--nocapture"]).env(STARTED, "").current_dir(dir.path()).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["other"]);
}

#[test]
fn path_that_is_no_directory_is_refused() {
    let store = Closed::new();
    let before = store.bytes();
    let error = Store::open(store.file()).unwrap_err();
    assert!(matches!(error, OpenError::NotADirectory { .. }));
    assert_names(&error, &store.file(), &["neither a directory nor a DAX device"]);
    assert!(store.bytes() == before);
    let below = store.file().join("below");
    assert_names(&Store::open(&below).unwrap_err(), &below, &["cannot", "ot a directory"]);
    let null = Path::new("/dev/null");
    assert_names(&Store::open(null).unwrap_err(), null, &["DAX device"]);
}

#[test]
fn directories_instead_of_files_are_refused() {
    for name in ["store.hikv", "lock"] {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(name)).unwrap();
        assert_names(&Store::open(dir.path()).unwrap_err(), &dir.path().join(name), &[]);
        assert!(dir.path().join(name).is_dir());
    }
}

#[test]
fn options_outside_their_ranges_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (options, value) in [
        (Options::new().tuning(|tuning| tuning.partition_count(0)), "0 partitions"),
        (Options::new().tuning(|tuning| tuning.partition_count(33)), "33 partitions"),
        (Options::new().tuning(|tuning| tuning.partition_count(512)), "512 partitions"),
        (Options::new().region_bytes_max((1 << 40) + 1), "1099511627777 bytes"),
    ] {
        let error = options.open(dir.path()).unwrap_err();
        assert!(error.to_string().contains(value), "{error}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn read_only_file_system_is_read() {
    on_tmpfs(c"size=16m", |place| {
        let store = Options::new().tuning(|tuning| tuning.partition_count(1)).open(&place).unwrap();
        store.put("kept", "value").unwrap();
        drop(store);
        mount_remount(&place, MountFlags::RDONLY, c"").unwrap();
        assert_names(&Store::open(&place).unwrap_err(), &place, &["cannot open", "ead-only file system"]);
        let below = place.join("new");
        assert_names(&Store::open(&below).unwrap_err(), &below, &["cannot create", "ead-only file system"]);
        let store = Store::open_read_only(&place).unwrap();
        assert_eq!(store.get("kept").unwrap().as_deref(), Some(&b"value"[..]));
        assert!(store.verify(|_| {}).unwrap().damage.is_empty());
    });
}

#[test]
fn read_only_store_refuses_writes() {
    let store = Closed::new();
    let before = store.bytes();
    let open = Store::open_read_only(store.path()).unwrap();
    for error in [open.put("a", "1").unwrap_err(), open.delete("a").unwrap_err(), open.clear().unwrap_err()] {
        assert!(matches!(error, Error::Medium(hikv::MediumError::ReadOnly)));
        assert_eq!(error.to_string(), "the store is open for reading only");
    }
    assert_holds(&open, 0..ITEM_COUNT);
    drop(open);
    assert!(store.bytes() == before);
}

/// Runs `test` on a thread that has only the permissions of other users.
fn without_rights(test: impl FnOnce() + Send) {
    let nobody = rustix::process::Uid::from_raw(65_534);
    let thread = thread::scope(|scope| scope.spawn(|| rustix::thread::set_thread_uid(nobody).map(|()| test())).join());
    match thread {
        Ok(Ok(())) => {}
        Ok(Err(error)) => skipped(&format!("this user cannot give up rights: {error}")),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[test]
fn files_without_permission_are_refused_by_name() {
    let store = Closed::new();
    let allow = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let (home, lock) = (store.path().parent().unwrap().to_owned(), store.path().join("lock"));
    for path in [&home, &store.path()] {
        allow(path, 0o755);
    }
    without_rights(|| {
        assert_names(&Store::open(store.path()).unwrap_err(), &lock, &["cannot open", "ermission denied"]);
    });
    allow(&lock, 0o666);
    without_rights(|| {
        for error in [Store::open(store.path()).unwrap_err(), Store::open_read_only(store.path()).unwrap_err()] {
            assert_names(&error, &store.file(), &["cannot open", "ermission denied"]);
        }
    });
    allow(&store.file(), 0o444);
    without_rights(|| {
        assert_names(&Store::open(store.path()).unwrap_err(), &store.file(), &["cannot open", "ermission denied"]);
        assert_holds(&Store::open_read_only(store.path()).unwrap(), 0..ITEM_COUNT);
        let below = store.path().join("new");
        assert_names(&Store::open(&below).unwrap_err(), &below, &["cannot create", "ermission denied"]);
    });
    store.assert_intact();
}
