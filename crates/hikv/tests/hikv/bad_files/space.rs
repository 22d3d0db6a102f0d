//! Full space: on a file system mounted for the test, and by the store's own limit.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use hikv::{Durability, Error, MediumError, Options, Store};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::bad_files::store::{assert_names, assert_plain, verify};
use crate::compaction::{compact_until, wait_until};

/// Runs `test` in a new tmpfs that only its thread sees and that is removed afterwards. If mounting is refused, the
/// test is skipped and prints so.
pub(crate) fn on_tmpfs(options: &CStr, test: impl FnOnce(PathBuf) + Send) {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().to_owned();
    let thread =
        thread::scope(|scope| scope.spawn(|| mount_privately(&place, options).map(|()| test(place.clone()))).join());
    match thread {
        Ok(Ok(())) => {}
        Ok(Err(error)) => skipped(&format!("a tmpfs cannot be mounted here: {error}")),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn mount_privately(at: &Path, options: &CStr) -> rustix::io::Result<()> {
    // SAFETY: a separate mount namespace changes no file descriptor and no memory.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("tmpfs", at, "tmpfs", MountFlags::empty(), options)
}

#[expect(clippy::print_stderr, reason = "a test that is left out must say so")]
pub(crate) fn skipped(why: &str) {
    eprintln!("left out: {why}");
}

const VALUE: [u8; 1000] = [0x5A; 1000];

/// Puts items until the store is full. Returns their number and the error.
fn fill(store: &Store) -> (u32, Error) {
    for i in 0..1_000_000u32 {
        if let Err(error) = store.put(i.to_be_bytes(), VALUE) {
            return (i, error);
        }
    }
    panic!("the store never ran out of room");
}

fn assert_kept(store: &Store, keys: impl Iterator<Item = u32>) {
    for i in keys {
        assert_eq!(store.get(i.to_be_bytes()).unwrap().as_deref(), Some(&VALUE[..]), "item {i}");
    }
}

/// Asserts that a full store has all acknowledged items and no damage, and has space after deletions.
fn assert_full_and_usable(open: impl Fn() -> Store, is_expected: impl Fn(&Error) -> bool) {
    let store = open();
    let (count, error) = fill(&store);
    assert!(is_expected(&error), "{error}");
    assert_plain(&error.to_string());
    assert_kept(&store, 0..count);
    assert_eq!(store.len().unwrap(), u64::from(count));
    let large = store.put_from("large", 64 << 20, io::repeat(1)).unwrap_err();
    assert!(is_expected(&large), "{large}");
    (0..count).step_by(2).for_each(|i| assert!(store.delete(i.to_be_bytes()).unwrap()));
    assert_eq!(store.get("large").unwrap(), None);
    // A stalled reader of another test's store keeps deleted items for longer than a put waits.
    let is_put = |key: u32| match store.put(key.to_be_bytes(), VALUE) {
        Err(error) if is_expected(&error) => false,
        done => done.map(|()| true).unwrap(),
    };
    (count..count + count / 4).for_each(|key| wait_until("room", || is_put(key)));
    drop(store);
    let store = open();
    assert_kept(&store, (1..count).step_by(2).chain(count..count + count / 4));
    assert!(verify(&store).damage.is_empty());
    store.clear().unwrap();
    store.put("after", "all").unwrap();
}

#[test]
fn full_file_system_loses_nothing() {
    on_tmpfs(c"size=12m", |place| {
        let open = || Options::new().tuning(|tuning| tuning.partition_count(1)).open(place.join("store")).unwrap();
        assert_full_and_usable(open, |error| matches!(error, Error::Medium(MediumError::Full { .. })));
    });
}

#[test]
fn store_at_limit_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        Options::new().tuning(|tuning| tuning.partition_count(1)).background(false).region_bytes_max(12 << 20);
    let options = options.durability(Durability::Buffered);
    let is_limit = |error: &Error| matches!(error, Error::Medium(MediumError::Limit { limit_bytes, .. }) if *limit_bytes == 12 << 20);
    assert_full_and_usable(|| options.open(dir.path()).unwrap(), is_limit);
}

/// Writes a file until no space is left.
fn take_all_space(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    while file.write_all(&[1; 4_096]).is_ok() {}
}

/// A store returned its space, and another program used it: this is an error, not a signal, now and after opening.
#[test]
fn space_taken_by_others_loses_nothing() {
    on_tmpfs(c"size=24m", |place| {
        let open = || Options::new().tuning(|tuning| tuning.partition_count(1)).open(place.join("store")).unwrap();
        let store = open();
        (0..12_000u32).for_each(|i| store.put(i.to_be_bytes(), VALUE).unwrap());
        (500..12_000u32).for_each(|i| assert!(store.delete(i.to_be_bytes()).unwrap()));
        // Of 13 MiB of items. A reader of another test's store may keep deleted items for a while.
        compact_until(&store, || store.stats().allocated_bytes < 6 << 20);
        take_all_space(&place.join("other"));
        let assert_full = |store: Store| {
            let error = (20_000..40_000u32).find_map(|i| store.put(i.to_be_bytes(), VALUE).err());
            let error = error.expect("there is no space");
            assert!(matches!(error, Error::Medium(MediumError::Full { .. })), "{error}");
            assert_kept(&store, 0..500);
            assert!(verify(&store).damage.is_empty());
        };
        assert_full(store);
        assert_full(open());
        fs::remove_file(place.join("other")).unwrap();
        let store = open();
        (20_000..30_000u32).for_each(|i| store.put(i.to_be_bytes(), VALUE).unwrap());
        assert_kept(&store, (0..500).chain(20_000..30_000));
    });
}

#[test]
fn store_that_cannot_fit_is_not_begun() {
    on_tmpfs(c"size=2m", |place| {
        assert_names(&Store::open(&place).unwrap_err(), &place, &["cannot allocate 4194304 bytes"]);
        let left: Vec<_> = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "lock"), "{left:?}");
    });
}
