//! Threads that write, read, scan and clear concurrently (`testkit::crowd`).

use engine::prelude::*;
use engine_pmekv::{Options, Pmekv};
use heap::Parameters;
use pmem_os::HostDram;
use testkit::{Restless, crowd, restless};

use crate::subject::{OfPmekv, PARAMETERS, is_sound};

/// Segments and a log so short that checkpoints are made all the time.
const SHORT: Options = Options { log_entry_count_max: 200, segment_entry_count: 50 };

fn store() -> Pmekv<Restless, HostDram> {
    let parameters = Parameters { partition_count: 3, ..PARAMETERS };
    Pmekv::format(restless(), HostDram, &parameters, SHORT).unwrap()
}

#[test]
fn no_update_is_lost_among_checkpoints() {
    let store = store();
    crowd::counts_are_kept(&store);
    is_sound(&store);
}

#[test]
fn scans_are_in_order_while_others_write() {
    let store = store();
    crowd::scans_are_in_order(&store);
    is_sound(&store);
}

#[test]
fn concurrent_clears_leave_a_sound_tree() {
    let store = store();
    crowd::clears_harm_no_others(&store);
    is_sound(&store);
    store.clear().unwrap();
    assert_eq!(store.len().unwrap(), 0);
}

#[test]
fn batches_are_one_step_for_readers() {
    let store = store();
    crowd::batches_are_one_step(&store);
    is_sound(&store);
}

/// A batch with more entries than the log's bound, which holds before and after the batch.
#[test]
fn batch_may_be_longer_than_log() {
    let store = store();
    crowd::a_batch_may_be_long(&store, || is_sound(&store));
}

#[test]
fn histories_over_two_keys_are_linearizable() {
    crowd::pairs_are_linearizable(|_| store());
}

#[test]
fn histories_under_contention_are_linearizable() {
    crowd::histories_are_linearizable::<OfPmekv<Restless>>(true);
}
