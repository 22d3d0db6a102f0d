//! Histories of gets, multi-gets, scans, puts, deletes and clears, checked key by key.

use std::time::Duration;

use hikv::{Options, Stats};
use testkit::{Contention, Extent, contend};

use crate::place::Placed;

fn options() -> Options {
    Options::new().tuning(|tuning| tuning.partition_count(1))
}

/// Persists take as long as on slow memory, so that readers see entries that are not durable yet.
fn slow() -> Options {
    options().emulation(|emulation| emulation.persist_delay(Duration::from_micros(2)))
}

const FEW_KEYS: Contention = Contention {
    thread_count: 4,
    call_count: 20_000,
    key_count: 4,
    swaps: false,
    scans: false,
    clear_every: 0,
    seed: 1,
};
const ONE_KEY: Contention = Contention { thread_count: 3, call_count: 10_000, key_count: 1, ..FEW_KEYS };
const SWAPPED: Contention = Contention { swaps: true, ..FEW_KEYS };
const CLEARED: Contention = Contention { key_count: 20, clear_every: 200, ..FEW_KEYS };
const MANY_KEYS: Contention = Contention { call_count: 40_000, key_count: 20_000, ..FEW_KEYS };
const MANY_KEYS_CLEARED: Contention = Contention { clear_every: 20_000, ..MANY_KEYS };
const FEW_KEYS_SCANNED: Contention = Contention { scans: true, ..FEW_KEYS };
const CLEARED_AND_SCANNED: Contention = Contention { scans: true, ..CLEARED };
const MANY_KEYS_SCANNED: Contention = Contention { scans: true, ..MANY_KEYS };

/// The factor by which a long test makes more calls.
const LONG: u64 = 50;

/// A sample makes a quarter of the calls.
fn judge(options: &Options, contention: &Contention) -> Stats {
    let call_count = contention.call_count / Extent::pick(4, 1);
    let contention = &Contention { call_count, ..*contention };
    let placed = Placed::open(options);
    let event_count = contend(&placed, contention).unwrap_or_else(|disorder| panic!("{disorder}"));
    assert!(event_count >= contention.thread_count * contention.call_count);
    placed.assert_sound();
    placed.store.stats()
}

fn judge_long(options: &Options, contention: &Contention) {
    for seed in 0..LONG {
        judge(options, &Contention { seed, ..*contention });
    }
}

/// With a read cache that holds only some of the keys.
fn cached() -> Options {
    options().read_cache_bytes(1 << 18)
}

#[test]
fn cached_keys_are_registers() {
    for contention in [&ONE_KEY, &SWAPPED, &CLEARED, &MANY_KEYS] {
        let stats = judge(&cached(), contention);
        assert!(stats.figures.iter().any(|figure| figure.name == "cache_hit_count" && figure.value > 0.0));
    }
}

#[test]
fn one_key_is_a_register() {
    judge(&options(), &ONE_KEY);
    judge(&slow(), &ONE_KEY);
}

#[test]
fn few_keys_are_registers() {
    judge(&options(), &FEW_KEYS);
    judge(&slow(), &FEW_KEYS);
}

#[test]
fn keys_are_registers_during_clears() {
    judge(&options(), &CLEARED);
    judge(&slow(), &CLEARED);
}

#[test]
fn keys_are_registers_that_compare_and_swap() {
    judge(&options(), &SWAPPED);
    judge(&slow(), &Contention { clear_every: 200, ..SWAPPED });
}

#[test]
fn keys_are_registers_while_segments_split() {
    let stats = judge(&options(), &MANY_KEYS);
    assert!(stats.figure("split_count").unwrap() > Extent::pick(1.0, 5.0), "{stats:?}");
}

#[test]
fn keys_are_registers_during_splits_and_clears() {
    judge(&options(), &MANY_KEYS_CLEARED);
}

/// From the first scan on, which waits until the ordered index is built alongside the writers.
#[test]
fn keys_are_registers_for_scans_too() {
    judge(&options(), &FEW_KEYS_SCANNED);
    judge(&slow(), &FEW_KEYS_SCANNED);
    judge(&options(), &MANY_KEYS_SCANNED);
    judge(&options().background(false), &FEW_KEYS_SCANNED);
}

#[test]
fn scanned_keys_are_registers_during_clears() {
    judge(&options(), &CLEARED_AND_SCANNED);
    judge(&slow(), &CLEARED_AND_SCANNED);
}

#[test]
#[ignore = "minutes"]
fn keys_are_registers_for_scans_for_long() {
    judge_long(&slow(), &FEW_KEYS_SCANNED);
    judge_long(&options(), &CLEARED_AND_SCANNED);
    judge_long(&options(), &MANY_KEYS_SCANNED);
}

#[test]
fn keys_are_registers_without_a_background_thread() {
    judge(&options().background(false), &CLEARED);
}

#[test]
#[ignore = "minutes"]
fn one_key_is_a_register_for_long() {
    judge_long(&options(), &ONE_KEY);
    judge_long(&slow(), &ONE_KEY);
}

#[test]
#[ignore = "minutes"]
fn few_keys_are_registers_for_long() {
    judge_long(&options(), &FEW_KEYS);
    judge_long(&slow(), &FEW_KEYS);
}

#[test]
#[ignore = "minutes"]
fn long_histories_of_compare_and_swap() {
    judge_long(&options(), &SWAPPED);
    judge_long(&slow(), &Contention { key_count: 1, ..SWAPPED });
}

#[test]
#[ignore = "minutes"]
fn long_histories_during_clears() {
    judge_long(&options(), &CLEARED);
    judge_long(&slow(), &CLEARED);
}

#[test]
#[ignore = "minutes"]
fn long_histories_during_splits() {
    judge_long(&options(), &MANY_KEYS);
    judge_long(&options(), &MANY_KEYS_CLEARED);
}
