//! Threads that write, read, scan and clear concurrently (`testkit::crowd`).

use engine::prelude::*;
use engine::{Check, Depth};
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem_os::HostDram;
use testkit::{Restless, crowd, restless};

use crate::subject::{OfRewoHash, PARAMETERS, needed_bytes};

fn store() -> RewoHash<Restless, HostDram> {
    let parameters = Parameters { partition_count: 2, ..PARAMETERS };
    RewoHash::format(restless(), HostDram, &parameters).unwrap()
}

fn is_sound(store: &RewoHash<Restless, HostDram>) {
    let mut check = Check::new(Depth::Deep);
    while !check.is_done() {
        store.check(&mut check, &mut |damage| panic!("{damage:?}")).unwrap();
    }
    assert_eq!(check.item_count(), store.len().unwrap());
    while store.stats().garbage_count > 0 {
        store.run_idle_maintenance();
    }
    assert_eq!(store.stats().live_bytes, needed_bytes(store));
}

#[test]
fn no_update_is_lost_while_segments_split() {
    let store = store();
    crowd::counts_are_kept(&store);
    is_sound(&store);
}

#[test]
fn concurrent_clears_leave_a_sound_table() {
    let store = store();
    crowd::clears_harm_no_others(&store);
    is_sound(&store);
    store.clear().unwrap();
    assert_eq!((store.len().unwrap(), store.stats().figure("segment_count")), (0, Some(2.0)));
}

#[test]
fn batches_are_one_step_for_readers() {
    let store = store();
    crowd::batches_are_one_step(&store);
    is_sound(&store);
}

/// A batch of more keys than a segment has slots, of keys that are added and deleted.
#[test]
fn batch_may_fill_many_segments() {
    let store = store();
    crowd::a_batch_may_be_long(&store, || is_sound(&store));
}

#[test]
fn histories_over_two_keys_are_linearizable() {
    crowd::pairs_are_linearizable(|_| store());
}

#[test]
fn histories_under_contention_are_linearizable() {
    crowd::histories_are_linearizable::<OfRewoHash<Restless>>(false);
}
