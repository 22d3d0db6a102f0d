//! Measures ways of writing an item to memory that no cache holds: through the cache, with the next item's lines
//! prefetched, and with non-temporal stores; in slots of exactly the item's length, and in slots of complete lines.
//! For `docs/decisions/0001-commit-an-entry-with-one-8-byte-store.md`.
//!
//! ```console
//! $ cargo run --release -p hikv-pmem-os --example write_ways -- /dev/shm
//! ```
//!
//! Each write is a put's: the item to the next slot, a fence, a word of a random line of an index, its write-back,
//! a fence. The ways take turns. The program prints the best and the median of several turns of each, because other
//! programs use the machine as well.
#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use pmem::{Bytes, LINE_BYTES, Offset, Persist, Residency, arch, lines};
use pmem_os::{MapOptions, Mapped};

/// Header, key and value of the usual benchmarks.
const ITEM_BYTES: usize = 16 + 16 + 256;
/// Several times the last-level cache of most machines.
const ITEMS_BYTES: u64 = 768 << 20;
/// Length of an index for that many items.
const INDEX_BYTES: u64 = 64 << 20;
/// Short turns, so that some turns of each way are not interrupted.
const TURN_COUNT: usize = 301;
const WRITES_PER_TURN: u64 = 10_000;

/// A way of writing an item to its slot.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    slot_bytes: usize,
    /// Number of bytes stored: the item, or the item and zeros up to the end of its slot.
    stored_bytes: usize,
    is_past_cache: bool,
}

const WAYS: [Way; 5] = [
    Way { name: "through the cache, slots of 288", slot_bytes: 288, stored_bytes: 288, is_past_cache: false },
    Way { name: "through the cache, slots of 320", slot_bytes: 320, stored_bytes: 288, is_past_cache: false },
    Way { name: "past the cache, slots of 288", slot_bytes: 288, stored_bytes: 288, is_past_cache: true },
    Way {
        name: "past the cache, slots of 320, the last line in part",
        slot_bytes: 320,
        stored_bytes: 288,
        is_past_cache: true,
    },
    Way { name: "past the cache, slots of 320, whole lines", slot_bytes: 320, stored_bytes: 320, is_past_cache: true },
];

impl Way {
    /// Writes one slot after the other from `from` on, and publishes each; returns the nanoseconds per write.
    fn turn(&self, medium: &Mapped, from: u64) -> f64 {
        let mut item = [0x5A; 320];
        item[ITEM_BYTES..].fill(0);
        let stored = &item[..self.stored_bytes];
        let slot = |number: u64| INDEX_BYTES + (from + number) * self.slot_bytes as u64 % (ITEMS_BYTES - 4096);
        let mut random = 0x9E37_79B9_7F4A_7C15u64 ^ from;
        let start = Instant::now();
        for number in 0..WRITES_PER_TURN {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let entry = Offset((random >> 20) % (INDEX_BYTES / LINE_BYTES) * LINE_BYTES);
            medium.prefetch_line(entry);
            let at = slot(number);
            // SAFETY: the slot is in the region, which only this thread uses, at a multiple of 16.
            let target = unsafe { medium.base().as_ptr().add(at as usize) };
            if self.is_past_cache {
                // SAFETY: as above.
                unsafe { arch::stream(target, &[stored]) };
            } else {
                lines(Offset(slot(number + 1)).span(self.slot_bytes as u64))
                    .for_each(|line| medium.prefetch_line(line));
                // SAFETY: as above.
                unsafe { arch::write_through(target, &[stored]) };
            }
            medium.order();
            medium.store(entry, random | 1, Ordering::Release);
            medium.flush(entry.span(8));
            medium.order();
        }
        start.elapsed().as_nanos() as f64 / WRITES_PER_TURN as f64
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = env::args().nth(1).unwrap_or_else(|| "/dev/shm".into());
    let path = Path::new(&dir).join(format!(".write-ways-{}", std::process::id()));
    let medium = Mapped::create(&path, INDEX_BYTES + ITEMS_BYTES, MapOptions::default())?;
    fs::remove_file(&path)?;
    medium.populate(Offset(0).span(INDEX_BYTES + ITEMS_BYTES));
    let mut times = WAYS.map(|_| Vec::new());
    let mut from = 0;
    for _ in 0..TURN_COUNT {
        for (way, times) in WAYS.iter().zip(&mut times) {
            times.push(way.turn(&medium, from));
            from += WRITES_PER_TURN;
        }
    }
    println!("nanoseconds of a write, best and median of {TURN_COUNT} turns");
    for (way, times) in WAYS.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{:7.1} {:7.1}  {}", times[0], times[TURN_COUNT / 2], way.name);
    }
    Ok(())
}
