//! In a region that cannot grow, the very next put finds the space that a delete freed.
//!
//! A separate program whose tests run one after the other: a reading thread of another test would rightly keep freed
//! space from being reused.

use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::Error;
use engine::prelude::*;
use engine_hikv::HiKv;
use heap::Parameters;
use pmem::MediumError;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::wait_count;

const REGION_BYTES: u64 = 5 << 20;
/// One size class each, small and large, and extents.
const VALUE_LENS_BYTES: [usize; 6] = [40, 272, 4_000, 30_000, 200_000, 300_000];

/// Held by the test that runs.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

fn empty_store() -> HiKv<Sim, HostDram> {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
    HiKv::format(Sim::new(REGION_BYTES, Model::Line), HostDram, &parameters).unwrap()
}

fn full_store(len_bytes: usize) -> (HiKv<Sim, HostDram>, u32) {
    let store = empty_store();
    store.medium().fail_grow_after(0);
    let refused = |&number: &u32| match store.put(&key(number), &vec![1; len_bytes]) {
        Ok(()) => false,
        Err(Error::Medium(MediumError::Full { .. })) => true,
        Err(error) => panic!("{error}"),
    };
    let count = (0..).find(refused).expect("a region has an end");
    (store, count)
}

#[test]
fn delete_makes_space_for_next_put() {
    let _turn = turn();
    for len_bytes in VALUE_LENS_BYTES {
        let (store, count) = full_store(len_bytes);
        for number in (0..count).step_by(1.max(count as usize / 20)) {
            assert!(store.delete(&key(number)).unwrap());
            let put = store.put(&key(number), &vec![2; len_bytes]);
            put.unwrap_or_else(|error| panic!("{len_bytes} bytes, key {number} of {count}: {error}"));
        }
        assert_eq!(store.len().unwrap(), u64::from(count));
    }
}

/// Puts of several items do so too, although they are pinned until they find that there is no space for all.
#[test]
fn deletes_free_space_for_multi_puts() {
    let _turn = turn();
    for len_bytes in VALUE_LENS_BYTES {
        let (store, count) = full_store(len_bytes);
        for number in (0..count - 1).step_by(2.max(count as usize / 20)) {
            let (keys, value) = ([number, number + 1].map(key), vec![2; len_bytes]);
            keys.iter().for_each(|key| assert!(store.delete(key).unwrap()));
            let (items, mut outcomes) = (keys.each_ref().map(|key| (&key[..], &value[..])), vec![]);
            store.multi_put_each(&items, &mut |item, done| {
                outcomes.push((item, done.map_err(|error| error.to_string())))
            });
            assert_eq!(outcomes, [(0, Ok(())), (1, Ok(()))], "{len_bytes} bytes, key {number} of {count}");
        }
        assert_eq!(store.len().unwrap(), u64::from(count));
    }
}

/// Counts waits inside a callback of this store.
fn wait_count_inside(store: &HiKv<Sim, HostDram>, work: impl Fn()) -> u32 {
    wait_count(|| assert!(store.get(&key(0), &mut |_, _, _| work()).unwrap()))
}

/// If nothing waits to be freed, or only garbage that waits for the writer itself, a writer that finds no space fails
/// immediately.
#[test]
fn unavailable_space_is_not_waited_for() {
    let _turn = turn();
    let ((store, count), value) = (full_store(4_000), [1; 4_000]);
    assert_eq!(wait_count(|| assert!(store.put(&key(count), &value).is_err())), 0, "nothing was replaced");
    let deletes_and_puts = || {
        assert!(store.delete(&key(1)).unwrap());
        assert!(store.put(&key(count), &value).is_err(), "the deleted item may still be read");
    };
    assert_eq!(wait_count_inside(&store, deletes_and_puts), 0, "inside a callback");
}

/// The clearing thread reads the items that are to be freed.
#[test]
fn clear_in_callback_does_not_deadlock() {
    let _turn = turn();
    let store = empty_store();
    store.put(&key(0), b"value").unwrap();
    assert_eq!(wait_count_inside(&store, || store.clear().unwrap()), 0);
    assert_eq!(store.len().unwrap(), 0);
}
