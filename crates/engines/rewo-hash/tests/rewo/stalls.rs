//! A measurement of the time that callers wait while segments split. Times are printed, and not asserted. `cargo test
//! --release -p hikv-engine-rewo-hash --test rewo stalls -- --ignored --nocapture`.
//!
//! It prints the wall-clock time, during which the system may have run other threads, and the operation's processor
//! time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::Progress;
use engine::prelude::*;
use engine_rewo_hash::RewoHash;
use heap::Parameters;
use pmem_os::{HostDram, MapOptions, Mapped};
use rustix::time::{ClockId, clock_gettime};

use crate::subject::PARAMETERS;

const KEY_COUNT: u64 = 1 << 20;

type Store = RewoHash<Mapped, HostDram>;

/// Returns keys in an unpredictable order, against caches.
fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (u128::from(mixed) << 64 | u128::from(number)).to_be_bytes()
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Times of many operations: wall-clock time and processor time.
#[derive(Default)]
struct Times([Vec<Duration>; 2]);

impl Times {
    fn time(&mut self, work: impl FnOnce()) {
        let (began, processor_began) = (Instant::now(), processor_time());
        work();
        let [by_clock, of_processor] = &mut self.0;
        of_processor.push(processor_time() - processor_began);
        by_clock.push(began.elapsed());
    }

    #[expect(clippy::print_stdout, reason = "a table for reading")]
    fn print(mut self, what: &str) {
        for (times, which) in self.0.iter_mut().zip(["by the clock", "of the processor"]) {
            times.sort_unstable();
            let us = |percent: f64| {
                let rank = (times.len() as f64 * percent / 100.0).ceil() as usize;
                times[rank.clamp(1, times.len()) - 1].as_secs_f64() * 1e6
            };
            let [median, p99, p9999, p99999, most] = [50.0, 99.0, 99.99, 99.999, 100.0].map(us);
            println!(
                "{what:24} {which:16} us: p50 {median:.2}, p99 {p99:.1}, p99.99 {p9999:.1}, p99.999 {p99999:.1}, most {most:.1}"
            );
        }
    }
}

/// Puts new keys while the background runs and another thread updates the present keys.
fn measure(what: &str, value: &[u8]) {
    let home = tempfile::tempdir_in("/dev/shm").expect("a memory file system");
    let mapped = Mapped::create(&home.path().join("region"), 1 << 20, MapOptions::default()).unwrap();
    let store: Store = RewoHash::format(mapped, HostDram, &Parameters { partition_count: 16, ..PARAMETERS }).unwrap();
    let (is_over, mut inserts, mut others) = (AtomicBool::new(false), Times::default(), Times::default());
    (0..1000).for_each(|number| store.put(&key(number), value).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                if store.step().unwrap() != Progress::More {
                    thread::park_timeout(Duration::from_millis(1));
                }
            }
        });
        scope.spawn(|| {
            for number in (0..1000).cycle().take_while(|_| !is_over.load(Ordering::Acquire)) {
                others.time(|| store.put(&key(number), value).unwrap());
            }
        });
        (1000..KEY_COUNT).for_each(|number| inserts.time(|| store.put(&key(number), value).unwrap()));
        is_over.store(true, Ordering::Release);
    });
    inserts.print(&format!("{what}: insert"));
    others.print(&format!("{what}: concurrent update"));
}

#[test]
#[ignore = "a measurement"]
fn caller_waiting_time() {
    measure("small items", &[7; 11]);
    measure("256 bytes", &[7; 256]);
}
