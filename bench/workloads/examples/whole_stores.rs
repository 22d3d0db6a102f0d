//! Measures operations on an entire store, and on small parts of it, compared with the speed of the memory.
//!
//! ```console
//! $ cargo run --release -p hikv-bench --example whole_stores -- /dev/shm 2000000
//! ```
//!
//! `for_each` and `backup` are reported in GB/s of keys and values, compared with a loop over a vector of the same
//! size. `len`, a range whose first item is read, and a batch of 1,000 items (per item, compared with a put) are
//! reported as a median in nanoseconds.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use hikv::{Options, Store, WriteBatch};

const VALUE_BYTES: usize = 256;
const KEY_BYTES: usize = 16;
const TURN_COUNT: usize = 101;
const BATCH_COUNT: u64 = 1000;

fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'k'; KEY_BYTES];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
    key
}

/// Returns the median time of `turn` in nanoseconds.
fn median_ns(mut turn: impl FnMut(u64) -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut times = Vec::new();
    for number in 0..TURN_COUNT as u64 {
        let start = Instant::now();
        turn(number)?;
        times.push(start.elapsed().as_nanos() as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[TURN_COUNT / 2])
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let dir = arguments.next().unwrap_or_else(|| "/dev/shm".into());
    let count: u64 = arguments.next().map_or(Ok(1_000_000), |count| count.parse())?;
    let home = tempfile::tempdir_in(Path::new(&dir))?;
    let store = Options::new().open(home.path().join("store"))?;
    for number in 0..count {
        store.put(key(number), [number as u8; VALUE_BYTES])?;
    }
    let bytes = (count * (KEY_BYTES + VALUE_BYTES) as u64) as f64;
    whole(&store, home.path(), bytes)?;
    little(&store, count)
}

/// Measures operations that visit all items, in GB/s.
fn whole(store: &Store, home: &Path, bytes: f64) -> Result<(), Box<dyn Error>> {
    let rate = |start: Instant| bytes / start.elapsed().as_nanos() as f64;
    let memory = vec![1_u64; bytes as usize / 8];
    let start = Instant::now();
    black_box(memory.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word)));
    println!("{:8.2} GB/s  a vector, read", rate(start));
    drop(memory);
    let (mut sum, start) = (0_u64, Instant::now());
    store.for_each(|key, value| {
        sum += value[0] as u64 + key[0] as u64;
    })?;
    black_box(sum);
    println!("{:8.2} GB/s  for_each", rate(start));
    let start = Instant::now();
    store.backup(home.join("backup"), |_| {})?;
    println!("{:8.2} GB/s  backup", rate(start));
    let (start, ordered) = (Instant::now(), store.ordered()?);
    ordered.wait_until_ready(|_| {})?;
    println!("{:8.2} GB/s  order, built", rate(start));
    Ok(())
}

/// Measures operations that visit few items, in nanoseconds.
fn little(store: &Store, count: u64) -> Result<(), Box<dyn Error>> {
    let ordered = store.ordered()?;
    let len = median_ns(|_| {
        assert_eq!(store.len()?, count);
        Ok(())
    })?;
    println!("{len:8.0} ns    len");
    let range = median_ns(|number| {
        let first = ordered.range(key(number).as_slice()..)?.next().ok_or("the store has keys")?;
        Ok(_ = black_box(first?))
    })?;
    println!("{range:8.0} ns    a range, and its first item");
    let mut batch = WriteBatch::new();
    let of_batch = median_ns(|number| {
        batch.clear();
        for i in 0..BATCH_COUNT {
            batch.put(key((number * BATCH_COUNT + i) % count), [1; VALUE_BYTES]);
        }
        Ok(store.write(&batch)?)
    })?;
    println!("{:8.0} ns    an item of a batch of {BATCH_COUNT}", of_batch / BATCH_COUNT as f64);
    let of_puts = median_ns(|number| {
        for i in 0..BATCH_COUNT {
            store.put(key((number * BATCH_COUNT + i) % count), [1; VALUE_BYTES])?;
        }
        Ok(())
    })?;
    println!("{:8.0} ns    a put", of_puts / BATCH_COUNT as f64);
    Ok(())
}
