//! Writes that fail: a write without space leaves nothing behind, and visible items stay intact.

use std::time::Duration;

use engine::prelude::*;
use engine::{BatchOp, Clock, Progress};
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem::MediumError;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};
use testkit::wait_count;

use crate::damaged::wrong;
use crate::hooked::{Hooked, failing};
use crate::splits::key;
use crate::subject::{OnSim, PARAMETERS, needed_bytes};

/// Among the numbers of free segments in a chunk is an odd one: then a split has space for only one half.
#[test]
fn half_split_returns_its_space() {
    for partition_count in [1, 2, 4] {
        let (sim, parameters) = (Sim::new(0, Model::Span), Parameters { partition_count, ..PARAMETERS });
        let store = RewoHash::format(sim.clone(), HostDram, &parameters).unwrap();
        let mut full_count = 0;
        for i in 0..300_000 {
            sim.fail_grow_after(0);
            full_count += u32::from(store.put(&key(i), b"a value").is_err());
            if full_count > 20 {
                break;
            }
        }
        assert!(full_count > 20, "the region is larger than that");
        while store.run_idle_maintenance() == Progress::More || store.stats().garbage_count > 0 {}
        assert_eq!(store.stats().live_bytes, needed_bytes(&store));
    }
}

/// No space can be prepared ahead of writers. Expired keys are reaped nevertheless, which frees space.
#[test]
fn expired_keys_in_full_region_are_reaped() {
    reaps_all_where_growth_fails(&|sim| sim.fail_grow_after(0));
    reaps_all_where_growth_fails(&|sim| sim.fail_grow_with(MediumError::Os { errno: 5 }));
}

fn reaps_all_where_growth_fails(fail: &dyn Fn(&Sim)) {
    let clock = Clock::manual(1_000);
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap().by_clock(clock.clone());
    let due = clock.after(Duration::from_secs(1));
    let put = |number: u32| store.put_until(&key(number), &[1; 4_000], due);
    while store.step().is_ok_and(|progress| progress == Progress::More) {}
    fail(store.medium());
    let count = (0..).take_while(|&number| put(number).is_ok()).count() as u64;
    clock.advance(Duration::from_secs(2));
    while store.step().unwrap() == Progress::More {}
    assert_eq!((store.stats().reaped_count, store.len().unwrap()), (count, 0));
    while store.run_idle_maintenance() == Progress::More || store.stats().garbage_count > 0 {}
    put(0).unwrap();
}

/// Items that may not be durable are visible nevertheless, so they keep their space.
#[test]
fn batch_with_failed_log_keeps_visible_space() {
    let store = RewoHash::format(Hooked::on(Sim::new(0, Model::Span)), HostDram, &PARAMETERS).unwrap();
    let put = |key, value| BatchOp::Put { key, value };
    assert!(failing(|| store.write_batch(&[put(b"a", &[1; 40]), put(b"b", &[2; 40])])).is_err());
    assert_eq!(wrong(&store), Vec::<String>::new());
}

/// Items outside the table that a batch replaces or deletes are freed once no thread reads them.
#[test]
fn batch_frees_replaced_items() {
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
    (0..3).for_each(|number| store.put(&key(number), &[1; 100]).unwrap());
    let keys = [key(0), key(1)];
    store.write_batch(&[BatchOp::Put { key: &keys[0], value: &[2; 100] }, BatchOp::Delete { key: &keys[1] }]).unwrap();
    while store.stats().garbage_count > 0 {
        store.run_idle_maintenance();
    }
    assert_eq!(store.stats().live_bytes, needed_bytes(&store));
}

/// Returns how often this thread waits for others if it does `work` while it reads a value of the store.
fn wait_count_inside(store: &OnSim, work: impl Fn()) -> u32 {
    wait_count(|| assert!(store.get(&key(0), &mut |_, _, _| work()).unwrap()))
}

/// Deleted or cleared items are freed when this thread's own callback has ended.
#[test]
fn self_wait_is_avoided() {
    let store = RewoHash::format(Sim::new(0, Model::Line), HostDram, &PARAMETERS).unwrap();
    let is_put = |number: &u32| store.put(&key(*number), &[1; 4_000]).is_ok();
    assert!((0..10).all(|number| is_put(&number)));
    store.medium().fail_grow_after(0);
    let count = (10..).take_while(is_put).count() as u32;
    let deletes_and_puts = || {
        assert!(store.delete(&key(1)).unwrap());
        assert!(!is_put(&(10 + count)), "the deleted item may still be read");
    };
    assert_eq!(wait_count_inside(&store, deletes_and_puts), 0, "a full region");
    store.medium().fail_grow_after(100);
    assert_eq!(wait_count_inside(&store, || store.clear().unwrap()), 0, "a clear");
    assert_eq!(store.len().unwrap(), 0);
}
