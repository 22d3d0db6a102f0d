//! In a region that cannot grow, the very next put finds the room that a delete made.
//!
//! Alone in its program: a thread of another test, stopped while it reads, would rightly keep freed room from being used.

use engine::{Engine, Error};
use engine_hikv::HiKv;
use heap::Parameters;
use pmem::MediumError;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

const REGION_BYTES: u64 = 5 << 20;
/// A size class each, small and large, and extents.
const VALUE_LENS_BYTES: [usize; 6] = [40, 272, 4_000, 30_000, 200_000, 300_000];

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

fn full_store(len_bytes: usize) -> (HiKv<Sim, HostDram>, u32) {
    let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
    let store = HiKv::format(Sim::new(REGION_BYTES, Model::Line), HostDram, &parameters).unwrap();
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
fn a_delete_makes_room_for_the_next_put() {
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

/// Puts of several together do as well, though pinned until they know that there is no room for all.
#[test]
fn deletes_make_room_for_the_next_puts_of_several() {
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
