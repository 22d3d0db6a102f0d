//! A region that cannot grow, filled with items of each size: an error, nothing lost, and space again after deletes.

use std::time::Duration;

use heap::Class;
use heap::layout::SEGMENT_BYTES;
use items::layout::HEADER_BYTES;
use pmem::{Counted, MediumError};
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use super::rig::{Contents, Rig};
use crate::{HiKv, Ordered, Parameters};
use engine::prelude::*;
use engine::{Clock, Error, Progress};

/// One size class each, small and large, and extents.
const VALUE_LENS_BYTES: [usize; 6] = [40, 272, 4_000, 30_000, 200_000, 300_000];

fn key(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// Puts keys from `first` on until the region is full; returns their number.
fn fill(rig: &Rig, contents: &mut Contents, first: u32, len_bytes: usize) -> u32 {
    for number in first.. {
        let value = vec![number as u8; len_bytes];
        match rig.store.put(&key(number), &value) {
            Ok(()) => contents.insert(key(number).to_vec(), value),
            Err(Error::Medium(MediumError::Full { .. })) => return number - first,
            Err(error) => panic!("{error}"),
        };
    }
    unreachable!("a region has an end")
}

fn assert_holds(rig: &Rig, contents: &Contents) {
    assert!(rig.contents() == *contents, "lost or foreign items");
    assert_eq!((rig.store.len().unwrap(), rig.damage()), (contents.len() as u64, vec![]));
}

#[test]
fn full_region_refuses_and_loses_nothing() {
    for len_bytes in VALUE_LENS_BYTES {
        let (rig, mut contents) = (Rig::of_fixed_size(), Contents::new());
        let count = fill(&rig, &mut contents, 0, len_bytes);
        assert!(count > 0);
        assert_holds(&rig, &contents);
        assert!(rig.store.put(&key(count), &vec![0; len_bytes]).is_err());
        assert_holds(&rig.reopened(), &contents);
    }
}

/// Among all numbers of segments that a chunk has left, one is odd: a split then finds space for only one half.
#[test]
fn half_split_returns_its_space() {
    for partition_count in [1, 2, 4] {
        let (sim, value) = (Sim::new(0, Model::Span), [7; 7]);
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count, region_bytes: 0 };
        let rig = Rig { store: HiKv::format(Counted::new(sim), HostDram, &parameters).unwrap() };
        rig.sim().fail_grow_after(0);
        let refused = (0..).map(|number| rig.store.put(&key(number), &value)).filter(Result::is_err);
        assert_eq!(refused.take(20).count(), 20);
        rig.free_garbage();
        let stats = rig.store.stats();
        let item_bytes = Class::for_bytes((HEADER_BYTES + 4 + value.len()) as u64).expect("a small item").bytes();
        let segments_bytes = stats.figure("segment_count").unwrap() as u64 * SEGMENT_BYTES;
        assert_eq!(stats.live_bytes, stats.items * item_bytes + segments_bytes);
    }
}

#[test]
fn update_in_full_region_is_atomic() {
    for len_bytes in VALUE_LENS_BYTES {
        let (rig, mut contents) = (Rig::of_fixed_size(), Contents::new());
        let count = fill(&rig, &mut contents, 0, len_bytes);
        for number in (0..count).step_by(1.max(count as usize / 20)) {
            let value = vec![!number as u8; len_bytes];
            match rig.store.put(&key(number), &value) {
                Ok(()) => drop(contents.insert(key(number).to_vec(), value)),
                Err(Error::Medium(MediumError::Full { .. })) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_holds(&rig, &contents);
    }
}

/// Once emptied, the region takes items of any other size: at least half of an empty region's number. (Not after the
/// smallest items: their index keeps its segments.)
#[test]
fn freed_chunk_serves_another_slot_size() {
    for (from, to) in VALUE_LENS_BYTES[1..].iter().zip(VALUE_LENS_BYTES.iter().rev()) {
        let fresh_count = fill(&Rig::of_fixed_size(), &mut Contents::new(), 0, *to);
        let (rig, mut contents) = (Rig::of_fixed_size(), Contents::new());
        let count = fill(&rig, &mut contents, 0, *from);
        (0..count).for_each(|number| assert!(rig.store.delete(&key(number)).unwrap()));
        rig.free_garbage();
        contents.clear();
        let count = fill(&rig, &mut contents, count, *to);
        assert!(count >= fresh_count / 2, "{from} to {to} bytes: {count} of {fresh_count}");
        assert_holds(&rig, &contents);
    }
}

/// No space can be prepared ahead of writers. Expired keys are reaped nevertheless, which makes space.
#[test]
fn expired_keys_in_full_region_are_reaped() {
    reaps_all_where_growth_fails(&|sim| sim.fail_grow_after(0));
    reaps_all_where_growth_fails(&|sim| sim.fail_grow_with(MediumError::Os { errno: 5 }));
}

fn reaps_all_where_growth_fails(fail: &dyn Fn(&Sim)) {
    let clock = Clock::manual(1_000);
    let rig = Rig { store: Rig::of_fixed_size().store.by_clock(clock.clone()) };
    let due = clock.after(Duration::from_secs(1));
    let put = |number: u32| rig.store.put_until(&key(number), &[1; 4_000], due);
    while rig.store.step().is_ok_and(|progress| progress == Progress::More) {}
    fail(rig.sim());
    let count = (0..).take_while(|&number| put(number).is_ok()).count() as u64;
    clock.advance(Duration::from_secs(2));
    while rig.store.step().unwrap() == Progress::More {}
    assert_eq!((rig.store.stats().reaped_count, rig.store.len().unwrap()), (count, 0));
    rig.free_garbage();
    put(0).unwrap();
}

/// `clear` needs a segment. If there is none left it fails, and deletes make space for it.
#[test]
fn clear_frees_space_or_changes_nothing() {
    for (len_bytes, is_ordered) in
        VALUE_LENS_BYTES.into_iter().flat_map(|len_bytes| [(len_bytes, false), (len_bytes, true)])
    {
        let (mut rig, mut contents) = (Rig::of_fixed_size(), Contents::new());
        if is_ordered {
            rig.store = rig.store.keeping_order(Ordered::new(1, HostDram));
            rig.store.request_order().unwrap();
        }
        let count = fill(&rig, &mut contents, 0, len_bytes);
        if let Err(error) = rig.store.clear() {
            assert!(matches!(error, Error::Medium(MediumError::Full { .. })), "{error}");
            assert_holds(&rig, &contents);
            (0..count).for_each(|number| assert!(rig.store.delete(&key(number)).unwrap()));
            rig.free_garbage();
            rig.store.clear().unwrap();
        }
        // Another test's reader may be pinned for long, and keep cleared items.
        rig.free_garbage();
        contents.clear();
        assert_holds(&rig, &contents);
        let again = fill(&rig, &mut contents, 0, len_bytes);
        assert!(again >= count / 2, "{len_bytes} bytes: {again} of {count}");
        assert_holds(&rig, &contents);
    }
}
