//! A region that is full and cannot grow: what makes room goes on.

use std::time::Duration;

use engine::{Clock, Engine, Error, Expiry, Progress};
use engine_pmekv::{Options, Pmekv};
use pmem::MediumError;
use pmem_os::HostDram;
use pmem_sim::{Model, Sim};

use crate::subject::{OnSim, PARAMETERS};

/// Neighbours in order lie far from each other, so that no part of the region becomes free as a whole.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

/// Puts keys until there is no more room; how many there were.
fn fill(sim: &Sim, store: &OnSim) -> u32 {
    sim.fail_grow_after(0);
    let put = |number: &u32| match store.put(&key(*number), &[7; 100]) {
        Ok(()) => true,
        Err(Error::Medium(MediumError::Full { .. } | MediumError::Limit { .. })) => false,
        Err(error) => panic!("{error}"),
    };
    (0..).take_while(put).count() as u32
}

/// Each opening begins segments of its own, for which there is room, too.
#[test]
fn keys_are_deleted_after_each_opening() {
    let mut sim = Sim::new(0, Model::Line);
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, Options::default()).unwrap();
    let count = fill(&sim, &store);
    assert!(count > 2_000);
    drop(store);
    for number in 0..30u32 {
        sim = Sim::from_image(&sim.images(1, 0).remove(0), Model::Line);
        sim.fail_grow_after(0);
        let store = Pmekv::open(sim.clone(), HostDram, Options::default()).unwrap();
        assert_eq!(store.len().unwrap(), u64::from(count - number));
        assert!(store.delete(&key(number)).unwrap(), "{number}");
    }
}

/// The background's checkpoint finds no room for its nodes, as it would after the reaper has made some.
#[test]
fn keys_that_expired_are_deleted_where_no_checkpoint_can_be_made() {
    let (sim, clock) = (Sim::new(0, Model::Line), Clock::manual(1));
    let short = Options { log_entry_count_max: 60, ..Options::default() };
    let store = Pmekv::format(sim.clone(), HostDram, &PARAMETERS, short).unwrap().by_clock(clock.clone());
    store.put(b"small", b"").unwrap();
    sim.fail_grow_after(3);
    let large = |number: &u32| store.put_until(&key(*number), &[7; 60_000], Expiry::at_ms(10)).is_ok();
    let count = (0..).take_while(large).count();
    // As large as nodes are.
    let fillers = (1_000..).take_while(|number| store.put(&key(*number), &[7; 4_000]).is_ok()).count();
    assert!(count > 2);
    (0..40).for_each(|number| store.put(b"small", &[number; 4]).unwrap());
    assert!(store.checkpoint().is_err_and(|error| matches!(error, Error::Medium(MediumError::Full { .. }))));
    clock.advance(Duration::from_millis(20));
    while store.step().unwrap() == Progress::More {}
    assert_eq!(store.len().unwrap(), 1 + fillers as u64);
    store.tidy();
    store.checkpoint().unwrap();
}
