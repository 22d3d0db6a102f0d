//! Measures the trees over the sizes of their leaves, on one thread: the mix of HiKV's figure 5, with 600 ns added to
//! each persist. Prints a row for each tree and size: the median round's time of each operation, and memory a pair.
//!
//! `cargo run --release --example sizes [PAIRS [ROUNDS]]`; the regions are unnamed files in `/dev/shm`.

use std::env;
use std::error::Error;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use fastrand::Rng;
use pmem::{Delayed, Delays, Latency, Probed};
use pmem_os::{HostDram, MapOptions, Mapped, ticks};
use rivals::{CACHED_BYTES_A_PAIR, FpTree, FpTreeCached, KeyBytes, NvTree, Sizes, Tree};

type Memory = Delayed<Mapped>;

const REGION_BYTES: u64 = 4 << 20;
const VALUE: [u8; 256] = [7; 256];
/// Scans read fewer than 100 pairs in the paper.
const SCANNED_COUNT: usize = 50;
/// Gets, updates and deletes of a round are a tenth of the pairs, scans a hundredth.
const SHARE: u32 = 10;

fn memory() -> Result<Memory, Box<dyn Error>> {
    let home = tempfile::tempdir_in("/dev/shm")?;
    let mapped = Mapped::create(&home.path().join("region"), REGION_BYTES, MapOptions::default())?;
    let persist_ticks = ticks(Duration::from_nanos(Latency::PERSIST_NS_PRINTED));
    let delays = Delays::new(Latency { persist_ticks, ..Latency::default() }, &HostDram);
    Ok(Probed::with_probe(mapped, delays.ok_or("no memory for the tags of the emulated cache")?))
}

fn key(number: u32) -> KeyBytes {
    let mut key = *b"user0000________";
    key[8..].copy_from_slice(&Rng::with_seed(number.into()).u64(..).to_be_bytes());
    key
}

/// Returns the nanoseconds of one operation on each of `keys`.
fn timed(keys: &[KeyBytes], mut operation: impl FnMut(&KeyBytes)) -> f64 {
    let start = Instant::now();
    keys.iter().for_each(&mut operation);
    start.elapsed().as_nanos() as f64 / keys.len() as f64
}

/// The times of a round: put, get, update, delete, scan.
type Times = [f64; 5];

fn round<T: Tree<Memory, HostDram>>(tree: &T, pair_count: u32, round: u32) -> Times {
    let mut rng = Rng::with_seed(round.into());
    let mut drawn = |count: u32| (0..count).map(|_| key(rng.u32(..pair_count))).collect::<Vec<_>>();
    let (read, updated, scanned) =
        (drawn(pair_count / SHARE), drawn(pair_count / SHARE), drawn(pair_count / SHARE / SHARE));
    let first = pair_count + round * (pair_count / SHARE);
    let new: Vec<_> = (first..first + pair_count / SHARE).map(key).collect();
    let put = timed(&new, |key| tree.put(key, &VALUE).expect("there is space"));
    let get = timed(&read, |key| assert!(tree.get(key, |value| assert_eq!(value, VALUE)).expect("it is readable")));
    let update = timed(&updated, |key| tree.put(key, &VALUE).expect("there is space"));
    let delete = timed(&new, |key| assert!(tree.delete(key).expect("there is space")));
    let scan = timed(&scanned, |from| {
        let mut count = 0;
        let scanned = tree.scan(from, &mut |_, value| {
            assert_eq!(value, VALUE);
            count += 1;
            if count < SCANNED_COUNT { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        scanned.expect("records are readable");
    });
    [put, get, update, delete, scan]
}

fn measure<T: Tree<Memory, HostDram>>(tree: &T, entries: u64, pair_count: u32, round_count: u32) {
    (0..pair_count).for_each(|number| tree.put(&key(number), &VALUE).expect("there is space"));
    let bytes =
        [tree.dram_bytes(), tree.records().persistent_bytes()].map(|bytes| bytes as f64 / f64::from(pair_count));
    let rounds: Vec<Times> = (0..round_count).map(|number| round(tree, pair_count, number)).collect();
    let median = |operation: usize| {
        let mut times: Vec<f64> = rounds.iter().map(|times| times[operation]).collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let [put, get, update, delete, scan] = [0, 1, 2, 3, 4].map(median);
    println!(
        "{:<10} {entries:>7} {put:>7.0} {get:>7.0} {update:>7.0} {delete:>7.0} {scan:>7.0} {:>9.1} {:>9.1} {:>7.2}",
        T::NAME,
        bytes[0],
        bytes[1],
        100.0 * bytes[0] / bytes[1]
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1).map(|argument| argument.parse::<u32>());
    let pair_count = arguments.next().unwrap_or(Ok(1_000_000))?.max(SHARE * SHARE);
    let round_count = arguments.next().unwrap_or(Ok(3))?.max(1);
    println!("{pair_count} pairs, {round_count} rounds; nanoseconds an operation, bytes a pair");
    println!("tree       entries     put     get  update  delete    scan      dram       nvm  dram %");
    let sizes = |leaf_entry_count| Sizes { leaf_entry_count, region_bytes: REGION_BYTES };
    for entries in [32, 48, 56, 64] {
        measure(&FpTree::format(memory()?, HostDram, &sizes(entries))?, entries, pair_count, round_count);
    }
    for entries in [32, 64, 84, 128, 168] {
        measure(&NvTree::format(memory()?, HostDram, &sizes(entries))?, entries, pair_count, round_count);
    }
    let cached = FpTreeCached::format(memory()?, HostDram, &sizes(64))?;
    measure(&cached.caching(CACHED_BYTES_A_PAIR * u64::from(pair_count)), 64, pair_count, round_count);
    Ok(())
}
