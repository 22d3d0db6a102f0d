//! Threads that write, read, scan and clear concurrently (`testkit::crowd`).

use engine::prelude::*;
use engine::{Check, Depth};
use engine_ink::{Ink, Options};
use heap::Parameters;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::{Contention, Paired, Restless, contend, crowd, restless};

use crate::subject::{OfInk, PARAMETERS};

fn store(order: usize, in_place: bool) -> Ink<Restless, HostDram> {
    let parameters = Parameters { partition_count: 3, ..PARAMETERS };
    Ink::format(restless(), HostDram, &parameters, Options { order, in_place }).unwrap()
}

fn is_sound(store: &Ink<Restless, HostDram>) {
    let mut check = Check::new(Depth::Deep);
    store.check(&mut check, &mut |damage| panic!("{damage:?}")).unwrap();
    let figures = store.tree().check(&mut |_| {}).unwrap();
    assert_eq!(figures.used_bytes, store.stats().live_bytes);
}

#[test]
fn no_update_is_lost_while_leaves_split() {
    for in_place in [false, true] {
        let store = store(7, in_place);
        crowd::counts_are_kept(&store);
        is_sound(&store);
    }
}

#[test]
fn scans_are_in_order_while_others_write() {
    let store = store(15, false);
    crowd::scans_are_in_order(&store);
    is_sound(&store);
}

#[test]
fn concurrent_clears_leave_a_sound_tree() {
    let store = store(7, false);
    crowd::clears_harm_no_others(&store);
    is_sound(&store);
    store.clear().unwrap();
    assert_eq!((store.len().unwrap(), store.stats().figure("ink_nodes")), (0, Some(1.0)));
}

#[test]
fn batches_are_one_step_for_readers() {
    let store = store(7, false);
    crowd::batches_are_one_step(&store);
    is_sound(&store);
}

/// A batch that needs a longer log than lanes have; the log is freed afterwards.
#[test]
fn batch_may_exceed_lane_log() {
    let store = store(63, false);
    crowd::a_batch_may_be_long(&store, || is_sound(&store));
}

#[test]
fn histories_over_two_keys_are_linearizable() {
    crowd::pairs_are_linearizable(|seed| store(7, seed % 2 == 0));
}

#[test]
fn early_condition_check_is_caught() {
    let caught = (0..200).any(|seed| {
        let variant = Sim::new(0, Model::Span).with_canary(pbtree::canary::CONDITION_OUTSIDE_LANES);
        let store = Ink::format(variant, HostDram, &PARAMETERS, Options { order: 7, in_place: false }).unwrap();
        contend(&Paired(&store), &Contention { seed, key_count: 1, clear_every: 100, ..Contention::default() }).is_err()
    });
    assert!(caught, "the broken variant was not caught");
}

#[test]
fn histories_under_contention_are_linearizable() {
    crowd::histories_are_linearizable::<OfInk<false, Restless>>(true);
}
