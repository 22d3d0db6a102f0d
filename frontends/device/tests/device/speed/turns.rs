//! Compares two ways of doing the same work in alternating turns, with different keys in each turn, each used once. The
//! keys were stored in another order.
//!
//! A machine's speed changes from second to second; adjacent data is read faster than scattered data; and a checkpoint
//! uses a processor, which one way may leave idle and the other not: no checkpoint is made during a turn.

use std::thread;
use std::time::Duration;

use hikv::Store;

use super::{VALUE, key};

const TURN_COUNT: usize = 15;
const OPERATION_COUNT: u64 = 1 << 17;
/// Number of log entries at which a store of this many keys is checkpointed, with space left for a turn's stores.
const LOG_ENTRY_COUNT_MAX: f64 = (1 << 19) as f64;
const NEAR: f64 = LOG_ENTRY_COUNT_MAX - OPERATION_COUNT as f64;

/// Runs `count` operations, at keys from a given number on. They are built first; the returned duration covers only
/// their execution.
pub(super) type Run<'r> = &'r mut dyn FnMut(u64, u64) -> Duration;

/// Prints the operations per second of both ways, and the second's share of the first's: medians, of the share in each
/// pair of turns.
#[expect(clippy::print_stdout, reason = "a table for reading")]
pub(super) fn compare(store: &Store, what: &str, names: [&str; 2], ways: [Run<'_>; 2]) {
    let (mut rates, mut next) = ([const { Vec::new() }; 2], 0);
    for turn in 0..TURN_COUNT {
        // The order alternates from turn to turn.
        for way in [turn % 2, 1 - turn % 2] {
            rest(store);
            let took = ways[way](next, OPERATION_COUNT);
            rates[way].push(OPERATION_COUNT as f64 / took.as_secs_f64() / 1e6);
            next += OPERATION_COUNT;
        }
    }
    let mut shares: Vec<f64> = rates[0].iter().zip(&rates[1]).map(|(first, second)| second / first).collect();
    shares.sort_unstable_by(f64::total_cmp);
    let [least, share, most] = [0, TURN_COUNT / 2, TURN_COUNT - 1].map(|at| shares[at] * 100.0);
    let [first, second] = rates.each_mut().map(|rates| median(rates));
    let [first_name, second_name] = names;
    println!(
        "{what}, by turns: {first_name} {first:.3} M/s, {second_name} {second:.3} M/s, {share:.0} % ({least:.0} to {most:.0})"
    );
}

fn median(of: &mut [f64]) -> f64 {
    of.sort_unstable_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Waits for the end of a due or running checkpoint. One that the next turn's stores would trigger is made now.
fn rest(store: &Store) {
    let entry_count = || {
        hikv::FrontEnd::of(store)
            .stats_now()
            .ok()
            .and_then(|stats| stats.figure("pmekv_log_entries"))
            .unwrap_or_default()
    };
    if entry_count() >= NEAR {
        (0..OPERATION_COUNT).for_each(|number| store.put(key(number), VALUE).expect("it stores"));
    }
    while entry_count() >= NEAR {
        thread::yield_now();
    }
}
