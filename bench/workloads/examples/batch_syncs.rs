//! Measures how many batches share a sync of a store on a disk, at the level `power`.
//!
//! ```console
//! $ cargo run --release -p hikv-bench --features hikv/all-engines --example batch_syncs -- . 64 5
//! ```
//!
//! So many threads write batches of two keys for so many seconds, each thread its own keys. Reported for each engine of
//! the build: batches per second, batches per sync, and the latency of a batch.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hikv::{Durability, EngineKind, Options, Store, WriteBatch};

const VALUE_BYTES: usize = 100;
const KEYS_PER_THREAD: u64 = 1000;

type Failed = Box<dyn Error + Send + Sync>;

/// Writes batches until `is_over`, and returns the latency of each in nanoseconds.
fn write(store: &Store, thread: u64, is_over: &AtomicBool) -> Result<Vec<u64>, Failed> {
    let mut latencies = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let first = thread * KEYS_PER_THREAD + latencies.len() as u64 % KEYS_PER_THREAD;
        let mut batch = WriteBatch::new();
        batch.put(first.to_be_bytes(), [thread as u8; VALUE_BYTES]);
        batch.put((!first).to_be_bytes(), [thread as u8; VALUE_BYTES]);
        let start = Instant::now();
        store.write(&batch)?;
        latencies.push(start.elapsed().as_nanos() as u64);
    }
    Ok(latencies)
}

fn measure(dir: &Path, engine: EngineKind, thread_count: u64, time: Duration) -> Result<(), Failed> {
    let home = tempfile::tempdir_in(dir)?;
    let store = Options::new().engine(engine).durability(Durability::Power).open(home.path().join("store"))?;
    let sync_count = || store.stats().journal.map(|journal| journal.log_sync_count).ok_or("the store has no journal");
    let (is_over, start, before) = (AtomicBool::new(false), Instant::now(), sync_count()?);
    let mut latencies = thread::scope(|scope| {
        let (store, is_over) = (&store, &is_over);
        let spawn = |thread| scope.spawn(move || write(store, thread, is_over));
        let writers: Vec<_> = (0..thread_count).map(spawn).collect();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        let each = writers.into_iter().map(|writer| writer.join().expect("a writer does not panic"));
        each.collect::<Result<Vec<_>, _>>().map(|each| each.concat())
    })?;
    let (elapsed, syncs, batches) = (start.elapsed(), sync_count()? - before, latencies.len());
    latencies.sort_unstable();
    let at = |share: f64| latencies[((batches - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "{engine}, {thread_count} threads: {:.0} batches/s, {:.1} batches per sync, p50 {:.0} µs, p99 {:.0} µs",
        batches as f64 / elapsed.as_secs_f64(),
        batches as f64 / syncs as f64,
        at(0.5),
        at(0.99)
    );
    Ok(store.close()?)
}

fn main() -> Result<(), Failed> {
    let mut arguments = env::args().skip(1);
    let dir = arguments.next().unwrap_or_else(|| ".".into());
    let thread_count = arguments.next().map_or(Ok(64), |count| count.parse())?;
    let seconds = arguments.next().map_or(Ok(5.0), |seconds| seconds.parse())?;
    for &engine in EngineKind::ALL {
        measure(Path::new(&dir), engine, thread_count, Duration::from_secs_f64(seconds))?;
    }
    Ok(())
}
