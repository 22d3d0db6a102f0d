//! Slow memory, emulated on fast memory by spinning on the processor's time-stamp counter (HiKV paper, sections 4.1
//! and 4.6; Rewo-Hash paper, figure 1).
//!
//! - `persist_ticks`: per persist, that is at each fence, however much was flushed before it. HiKV: 600 ns; 50 to
//!   1,400 ns in figures 8 and 10.
//! - `read_ticks`: per access to an item. HiKV: none; 60 ns more in figure 12.
//! - `persist_block_ticks`, `read_block_ticks`: per block written back or read that the device does not hold
//!   already. Rewo-Hash: 256-byte blocks; reads take 2.8x as long as DRAM's below a block and 2.1x above; writes
//!   take as long as DRAM's.
//!
//! The emulated memory device holds the last [`HELD_BLOCK_COUNT`] blocks that were read or written, for all threads
//! together, like the real one's buffer: words of a held block cost nothing more. Processor caches are not
//! modelled, nor is overlap: reads that a processor would run at the same time wait one after the other here.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::{Medium, Probe, Probed, Span, arch};

/// Number of blocks that the emulated device holds: 16 KiB of 256-byte blocks, the buffer size measured on Optane.
pub const HELD_BLOCK_COUNT: usize = 64;

/// A medium slowed down to the latencies of another.
pub type Delayed<M> = Probed<M, Delays>;

/// Additional time, in ticks of the processor's time-stamp counter. None by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Latency {
    /// Once per persist.
    pub persist_ticks: u64,
    /// Once per access to an item.
    pub read_ticks: u64,
    /// Once per block that is written back.
    pub persist_block_ticks: u64,
    /// Once per block that is read, of items or words.
    pub read_block_ticks: u64,
    /// The unit in which the device reads and writes, a power of two. Ignored if no block costs anything.
    pub block_bytes: u64,
}

impl Latency {
    /// The persist latency of the HiKV paper's figures, unless they vary it (section 4.1).
    pub const PERSIST_NS_PRINTED: u64 = 600;
    /// The block size of the Rewo-Hash paper's memory.
    pub const BLOCK_BYTES_PRINTED: u64 = 256;
}

/// The latencies to spin for, and the blocks that the device holds.
#[derive(Debug)]
pub struct Delays {
    latency: Latency,
    /// The number of a block plus one, at index `number % HELD_BLOCK_COUNT`.
    held: [AtomicU64; HELD_BLOCK_COUNT],
}

impl<M: Medium> Delayed<M> {
    /// Returns `inner`, slowed down by `latency`.
    ///
    /// # Panics
    /// As [`Delays::new`].
    pub fn new(inner: M, latency: Latency) -> Delayed<M> {
        Probed::with_probe(inner, Delays::new(latency))
    }
}

impl Delays {
    /// Creates these latencies for a device that holds no block yet.
    ///
    /// # Panics
    /// If blocks cost something and their length is no power of two.
    #[must_use]
    pub fn new(latency: Latency) -> Delays {
        let by_block = latency.persist_block_ticks | latency.read_block_ticks != 0;
        let bytes = latency.block_bytes;
        assert!(!by_block || bytes.is_power_of_two(), "blocks of {bytes} bytes: a power of two is wanted");
        Delays { latency, held: [const { AtomicU64::new(0) }; HELD_BLOCK_COUNT] }
    }

    /// Returns the cost of the blocks of `span` at `ticks` each. Held blocks cost nothing; the others are held from
    /// now on.
    fn block_ticks(&self, span: Span, ticks: u64) -> u64 {
        if ticks == 0 || span.len_bytes == 0 {
            return 0;
        }
        let block = |at: u64| at / self.latency.block_bytes;
        let last = block(span.start.0.saturating_add(span.len_bytes - 1));
        (block(span.start.0)..=last).map(|number| if self.holds(number) { 0 } else { ticks }).sum()
    }

    /// Returns true if the block is already held; otherwise holds it from now on.
    fn holds(&self, number: u64) -> bool {
        let place = &self.held[(number % HELD_BLOCK_COUNT as u64) as usize];
        let is_held = place.load(Ordering::Relaxed) == number + 1;
        if !is_held {
            place.store(number + 1, Ordering::Relaxed);
        }
        is_held
    }
}

impl Probe for Delays {
    fn flushed(&self, span: Span) {
        spin(self.block_ticks(span, self.latency.persist_block_ticks));
    }

    fn streamed(&self, span: Span) {
        self.flushed(span);
    }

    fn fenced(&self) {
        spin(self.latency.persist_ticks);
    }

    fn read(&self, span: Span) {
        spin(self.latency.read_ticks + self.block_ticks(span, self.latency.read_block_ticks));
    }

    fn loaded(&self, span: Span) {
        spin(self.block_ticks(span, self.latency.read_block_ticks));
    }
}

/// Spins after everything before it is done: the real memory's time is not part of the delay.
fn spin(ticks: u64) {
    if ticks == 0 {
        return;
    }
    let start = arch::timestamp_in_order();
    while arch::timestamp().wrapping_sub(start) < ticks {
        core::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offset;

    const LATENCY: Latency =
        Latency { persist_ticks: 600, read_ticks: 60, persist_block_ticks: 7, read_block_ticks: 100, block_bytes: 256 };

    fn read(delays: &Delays, at: u64, len_bytes: u64) -> u64 {
        delays.block_ticks(Offset(at).span(len_bytes), LATENCY.read_block_ticks)
    }

    #[test]
    fn block_costs_once_for_many_words() {
        let delays = Delays::new(LATENCY);
        assert_eq!(read(&delays, 512, 8), 100);
        assert!((0..32).all(|word| read(&delays, 512 + 8 * word, 8) == 0));
        assert_eq!(read(&delays, 768, 8), 100, "the next block is another");
    }

    #[test]
    fn long_read_costs_each_block() {
        let delays = Delays::new(LATENCY);
        assert_eq!(read(&delays, 1024, 256), 100);
        assert_eq!(read(&delays, 4096 - 16, 272), 200, "16 bytes of one block, 256 of the next");
        assert_eq!(read(&delays, 8192, 0), 0);
        assert_eq!(read(&delays, 8192, 1024), 400);
    }

    #[test]
    fn block_is_evicted_by_others() {
        let delays = Delays::new(LATENCY);
        let blocks = HELD_BLOCK_COUNT as u64;
        assert_eq!(read(&delays, 0, 256 * blocks), 100 * blocks);
        assert_eq!(read(&delays, 0, 256 * blocks), 0);
        assert_eq!(read(&delays, 256 * blocks, 8), 100);
        assert_eq!(read(&delays, 0, 8), 100, "its place was taken");
    }

    #[test]
    fn written_block_is_held_for_readers() {
        let delays = Delays::new(LATENCY);
        assert_eq!(delays.block_ticks(Offset(256).span(512), LATENCY.persist_block_ticks), 14);
        assert_eq!(read(&delays, 300, 8), 0);
    }

    /// A call of the medium takes at least its configured cost; the processor may make it longer.
    #[test]
    fn fences_and_reads_take_their_time() {
        const TICKS: u64 = 2_000_000;
        let took = |latency, asked: &dyn Fn(&Delays)| {
            let delays = Delays::new(latency);
            let start = arch::timestamp_in_order();
            asked(&delays);
            arch::timestamp_in_order() - start
        };
        let span = Offset(0).span(4096);
        let of_persists = Latency { persist_ticks: TICKS, ..Latency::default() };
        assert!(took(of_persists, &|delays| delays.fenced()) >= TICKS);
        let of_reads = Latency { read_ticks: TICKS, ..Latency::default() };
        assert!(took(of_reads, &|delays| delays.read(span)) >= TICKS);
        let of_blocks = Latency { read_block_ticks: TICKS / 16, block_bytes: 256, ..Latency::default() };
        assert!(took(of_blocks, &|delays| delays.read(span)) >= TICKS, "16 blocks");
        let written = Latency { persist_block_ticks: TICKS / 16, block_bytes: 256, ..Latency::default() };
        assert!(took(written, &|delays| delays.streamed(span)) >= TICKS);
    }

    #[test]
    fn without_a_cost_of_blocks_none_is_looked_at() {
        let delays = Delays::new(Latency { persist_ticks: 600, ..Latency::default() });
        assert_eq!(delays.block_ticks(Offset(0).span(u64::MAX), 0), 0, "nor is anything divided by no length");
    }

    #[test]
    #[should_panic(expected = "blocks of 100 bytes")]
    fn blocks_of_an_odd_length_are_refused() {
        let _ = Delays::new(Latency { block_bytes: 100, ..LATENCY });
    }
}
