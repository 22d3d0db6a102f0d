//! A store whose disk cannot read some part of the base, whichever part: a key is found, or an error reports why it may
//! be missing.

use std::thread;

use engine::Cursor;
use engine::prelude::*;
use engine::{Error, Progress};
use engine_hikv::HiKv;
use heap::Parameters;
use journal::Journaled;
use pmem::MediumError;
use pmem_os::HostDram;
use pmem_sim::{Crashable, Fault, Model, SimDisk, SimFile};
use testkit::small_journal;

use crate::subject::REGION_BYTES;

pub(crate) const KEY_COUNT: u8 = 40;

pub(crate) type Store = HiKv<Journaled<SimFile>, HostDram>;

pub(crate) fn value(key: u8) -> Vec<u8> {
    vec![key; 1000]
}

/// Returns a disk with each item in a different block, or nearly so. If the process was killed, a part of the store is
/// in the log.
pub(crate) fn filled(is_closed: bool) -> SimDisk {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = Journaled::create(disk.files(), REGION_BYTES, [7; 16], small_journal()).unwrap();
    let parameters = Parameters { uuid: [7; 16], hash_seed: 1, partition_count: 1, region_bytes: REGION_BYTES };
    let store = HiKv::format(journal, HostDram, &parameters).unwrap();
    (0..KEY_COUNT).for_each(|key| store.put(&[key], &value(key)).unwrap());
    while store.step().unwrap() == Progress::More {}
    if is_closed {
        store.close().unwrap();
    } else {
        disk.fail(Some(Fault::Dead(0)));
        drop(store);
        disk.fail(None);
    }
    disk
}

/// Reads everything; returns the number of errors.
fn error_count(store: &Store) -> usize {
    let mut error_count = 0;
    let mut note = |error: Error| {
        assert!(
            matches!(error, Error::Medium(MediumError::Unreadable { .. } | MediumError::Poisoned { .. })),
            "{error}"
        );
        error_count += 1;
    };
    for key in 0..KEY_COUNT {
        let mut found = Vec::new();
        match store.get(&[key], &mut |_, _, bytes| found = bytes.to_vec()) {
            Ok(is_there) => assert!(is_there && found == value(key), "key {key}"),
            Err(error) => note(error),
        }
        match store.delete(&[KEY_COUNT + key]) {
            Ok(was_there) => assert!(!was_there),
            Err(error) => note(error),
        }
    }
    match store.len() {
        Ok(count) => assert_eq!(count, u64::from(KEY_COUNT)),
        Err(error) => note(error),
    }
    let (mut cursor, mut walked) = (Cursor::default(), 0);
    let whole = loop {
        match store.walk(cursor, &mut |_, _, _| walked += 1) {
            Ok(next) if next.is_done() => break Ok(()),
            Ok(next) => cursor = next,
            Err(error) => break Err(error),
        }
    };
    match whole {
        Ok(()) => assert_eq!(walked, KEY_COUNT),
        Err(error) => note(error),
    }
    error_count
}

fn whichever_read_fails(is_closed: bool) {
    let disk = filled(is_closed);
    let (mut refused_count, mut lost_count) = (0, 0);
    for number in 1.. {
        disk.fail(Some(Fault::Error(disk.operation_count() + number)));
        let before = disk.operation_count();
        let opened =
            Journaled::open(disk.files(), small_journal(), &|_| {}).map(|journal| HiKv::open(journal, HostDram));
        match opened {
            Ok(Ok(store)) => {
                let is_lost = error_count(&store) > 0;
                assert!(!is_lost || store.health().is_err(), "a store that lost something accepts no writes");
                lost_count += usize::from(is_lost);
            }
            Ok(Err(_)) | Err(_) => refused_count += 1,
        }
        if disk.operation_count() < before + number {
            break;
        }
    }
    disk.fail(None);
    let journal = Journaled::open(disk.files(), small_journal(), &|_| {}).unwrap();
    assert_eq!(error_count(&HiKv::open(journal, HostDram).unwrap()), 0);
    assert!(refused_count > 5 && lost_count > 10, "{refused_count} were refused, {lost_count} lost something");
}

/// While some of the base cannot be read, one caller reads everything and another one writes: every acknowledged write
/// is present when the store is opened again.
#[test]
fn concurrent_write_is_kept_or_refused() {
    const WRITTEN_COUNT: u8 = 8;
    let (mut refused_count, mut kept_count) = (0, 0);
    for number in (1..).step_by(3) {
        let disk = filled(false);
        let before = disk.operation_count();
        disk.fail(Some(Fault::Error(before + number)));
        let opened =
            Journaled::open(disk.files(), small_journal(), &|_| {}).map(|journal| HiKv::open(journal, HostDram));
        let Ok(Ok(store)) = opened else { continue };
        let store: Store = store;
        let kept: Vec<u8> = thread::scope(|scope| {
            let write = |key: &u8| store.put(&[0xFF, *key], &value(*key)).is_ok();
            let writer = scope.spawn(move || (0..WRITTEN_COUNT).filter(write).collect());
            (0..KEY_COUNT).for_each(|key| _ = is_whole(&store, key));
            writer.join().unwrap()
        });
        let is_over = disk.operation_count() < before + number;
        disk.fail(Some(Fault::Dead(0)));
        drop(store);
        disk.fail(None);
        let store: Store =
            HiKv::open(Journaled::open(disk.files(), small_journal(), &|_| {}).unwrap(), HostDram).unwrap();
        assert!((0..KEY_COUNT).all(|key| is_whole(&store, key)), "fault {number}");
        for &key in &kept {
            let mut found = Vec::new();
            let is_there = store.get(&[0xFF, key], &mut |_, _, bytes| found = bytes.to_vec()).unwrap();
            assert!(is_there && found == value(key), "fault {number}: {key} was acknowledged");
        }
        kept_count += kept.len();
        refused_count += usize::from(WRITTEN_COUNT) - kept.len();
        if is_over {
            break;
        }
    }
    assert!(refused_count > 10 && kept_count > 10, "{refused_count} were refused, {kept_count} kept");
}

/// Returns whether the key is present; otherwise the error reports why it may be missing.
fn is_whole(store: &Store, key: u8) -> bool {
    let mut found = Vec::new();
    match store.get(&[key], &mut |_, _, bytes| found = bytes.to_vec()) {
        Ok(is_there) => {
            assert!(is_there && found == value(key), "key {key}");
            true
        }
        Err(error) => {
            assert!(
                matches!(error, Error::Medium(MediumError::Unreadable { .. } | MediumError::Poisoned { .. })),
                "{error}"
            );
            false
        }
    }
}

#[test]
fn unreadable_crashed_store_hides_no_key() {
    whichever_read_fails(false);
}

#[test]
fn unreadable_closed_store_hides_no_key() {
    whichever_read_fails(true);
}
