//! A measurement of the time that puts wait during checkpoints. Times are printed, and not asserted. `cargo test
//! --release -p hikv-engine-pmekv --test pmekv stalls -- --ignored --nocapture`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::prelude::*;
use engine_pmekv::{Options, Pmekv};
use pmem_os::{HostDram, MapOptions, Mapped};

use crate::subject::PARAMETERS;

const KEY_COUNT: u64 = 1 << 20;
const PUT_COUNT: u64 = 1 << 20;
const VALUE: [u8; 256] = [7; 256];

type Store = Pmekv<Mapped, HostDram>;

/// Returns keys in an unpredictable order, against caches.
fn key(number: u64) -> [u8; 16] {
    let mixed = (number % KEY_COUNT).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(number % KEY_COUNT)).to_be_bytes()
}

fn scattered(number: u64) -> [u8; 16] {
    key(number.wrapping_mul(0xD134_2543_DE82_EF95) >> 13)
}

/// Returns a loaded store whose log has the bound of `options`.
fn loaded(options: Options) -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir_in("/dev/shm").expect("a memory file system");
    let mapped = Mapped::create(&home.path().join("region"), 1 << 20, MapOptions::default()).unwrap();
    let store =
        Pmekv::format(mapped, HostDram, &heap::Parameters { partition_count: 16, ..PARAMETERS }, options).unwrap();
    (0..KEY_COUNT).for_each(|number| store.put(&key(number), &VALUE).unwrap());
    (home, store)
}

fn checkpoint_count(store: &Store) -> u64 {
    let figures = store.stats().figures;
    figures.iter().find(|figure| figure.name == "pmekv_checkpoints").expect("the figure exists").value as u64
}

/// Prints how long puts took while another thread repeated `beside`.
#[expect(clippy::print_stdout, reason = "a table for reading")]
fn measure(what: &str, store: &Store, beside: impl Fn(&Store) + Sync) {
    let (is_over, before) = (AtomicBool::new(false), checkpoint_count(store));
    let mut times: Vec<Duration> = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                beside(store);
            }
        });
        let put = |number| {
            let began = Instant::now();
            store.put(&scattered(number), &VALUE).unwrap();
            began.elapsed()
        };
        let times = (0..PUT_COUNT).map(put).collect();
        is_over.store(true, Ordering::Release);
        times
    });
    let checkpoints = checkpoint_count(store) - before;
    times.sort_unstable();
    let us = |percent: f64| {
        let rank = (times.len() as f64 * percent / 100.0).ceil() as usize;
        times[rank.clamp(1, times.len()) - 1].as_secs_f64() * 1e6
    };
    let [median, p99, p9999, most] = [50.0, 99.0, 99.99, 100.0].map(us);
    println!(
        "{what:32} {checkpoints:4} checkpoints; us: p50 {median:.2}, p99 {p99:.1}, p99.99 {p9999:.1}, most {most:.1}"
    );
}

#[test]
#[ignore = "a measurement"]
fn put_waiting_time() {
    let (_home, store) = loaded(Options::default());
    measure("no checkpoint", &store, |_| thread::park_timeout(Duration::from_millis(10)));
    measure("one after the other", &store, |store| store.checkpoint().unwrap());
    measure("as the background makes them", &store, |store| {
        store.step().unwrap();
        thread::park_timeout(Duration::from_millis(1));
    });
    let (_home, store) = loaded(Options { log_entry_count_max: 1 << 18, ..Options::default() });
    measure("a log that writers outrun", &store, |store| {
        store.step().unwrap();
        thread::park_timeout(Duration::from_millis(1));
    });
}
