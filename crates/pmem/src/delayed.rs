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
//! # Reads
//! A read finds its lines in one of three places:
//!
//! 1. the processor's last-level cache of `cache_bytes`: a tag for each line of 64 bytes, for all threads together.
//!    Reads, prefetches and flushes bring a line in; the line that was not used for longest leaves; non-temporal
//!    stores take a line out. A line in the cache costs nothing.
//! 2. the device's buffer: the last [`HELD_BLOCK_COUNT`] blocks that were read or written, as on the real device.
//!    Other lines of a held block cost nothing either.
//! 3. the device's memory: the block arrives `read_block_ticks` later.
//!
//! Independent reads overlap. A prefetch notes the time at which the block arrives, and returns; a load waits for
//! what is left of that time. All lines of one call of the medium are requested together. A load without a prefetch
//! is emulated as dependent on all before it: code that leaves overlap to the processor's look-ahead is charged too
//! much.
//!
//! Not emulated: a limit on the reads under way, and the device's bandwidth.

mod tag_array;
mod tick_clock;

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{Dram, LINE_BYTES, Offset, Probe, Probed, Span, lines};

use tag_array::{Set, Sets, Stamp, Tags, WAYS};

pub use tick_clock::{DrivenClock, TickClock, TimeStamps};

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
    /// The time of a read of the fast memory itself. It passes during a load, but a prefetch returns before, so a
    /// prefetched block arrives that much later.
    pub memory_read_ticks: u64,
    /// The unit in which the device reads and writes, a power of two. Ignored if no block costs anything.
    pub block_bytes: u64,
    /// The size of the processor's cache before the device, rounded down to a power of two; 0 for none.
    pub cache_bytes: u64,
}

impl Latency {
    /// The persist latency of the HiKV paper's figures, unless they vary it (section 4.1).
    pub const PERSIST_NS_PRINTED: u64 = 600;
    /// The block size of the Rewo-Hash paper's memory.
    pub const BLOCK_BYTES_PRINTED: u64 = 256;

    const fn is_by_block(&self) -> bool {
        self.persist_block_ticks | self.read_block_ticks != 0
    }
}

/// The latencies to wait for, and what the cache and the device hold.
pub struct Delays<C = TimeStamps> {
    latency: Latency,
    clock: C,
    device: [Set; HELD_BLOCK_COUNT / WAYS],
    cache: Option<Sets>,
    block_read_count: AtomicU64,
}

impl Delays {
    /// Creates these latencies for a device that holds no block yet. The tags of a cache take an eighth of its size
    /// of `dram`; `None` if there is no memory for them.
    ///
    /// # Panics
    /// If blocks cost something and their length is no power of two, or shorter than a line.
    #[must_use]
    pub fn new(latency: Latency, dram: &'static dyn Dram) -> Option<Delays> {
        Delays::by_clock(latency, dram, TimeStamps)
    }
}

impl<C: TickClock> Delays<C> {
    /// Like [`Delays::new`], with another clock.
    ///
    /// # Panics
    /// As [`Delays::new`].
    #[must_use]
    pub fn by_clock(latency: Latency, dram: &'static dyn Dram, clock: C) -> Option<Delays<C>> {
        let bytes = latency.block_bytes;
        let is_usable = bytes.is_power_of_two() && bytes >= LINE_BYTES;
        assert!(!latency.is_by_block() || is_usable, "blocks of {bytes} bytes: a power of two from 64 on is wanted");
        let set_count = if latency.is_by_block() { (latency.cache_bytes / LINE_BYTES) as usize / WAYS } else { 0 };
        let cache = if set_count == 0 { None } else { Some(Sets::allocate(set_count, dram)?) };
        let device = [const { Set::new() }; HELD_BLOCK_COUNT / WAYS];
        Some(Delays { latency, clock, device, cache, block_read_count: AtomicU64::new(0) })
    }

    /// Returns the clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the number of blocks that were read from the device's memory.
    pub fn block_read_count(&self) -> u64 {
        self.block_read_count.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn device(&self) -> Tags<'_> {
        Tags(&self.device)
    }

    #[inline(always)]
    fn cache(&self) -> Option<Tags<'_>> {
        self.cache.as_ref().map(Sets::tags)
    }

    /// Returns the number of the block of this place.
    #[inline(always)]
    fn block(&self, at: Offset) -> u64 {
        at.0 >> self.latency.block_bytes.trailing_zeros()
    }

    /// Returns the arrival of a line. If it is nowhere, it is requested, and arrives at `new`.
    #[inline(always)]
    fn arrival(&self, line: Offset, new: impl FnOnce() -> u64) -> Stamp {
        match self.cache().and_then(|cache| cache.find(line.0 / LINE_BYTES)) {
            Some(stamp) => stamp,
            None => self.requested(line, new),
        }
    }

    fn requested(&self, line: Offset, new: impl FnOnce() -> u64) -> Stamp {
        let (device, block) = (self.device(), self.block(line));
        let stamp = device.find(block).unwrap_or_else(|| {
            self.block_read_count.fetch_add(1, Ordering::Relaxed);
            let stamp = Stamp::at(new());
            device.hold(block, stamp);
            stamp
        });
        self.cache().into_iter().for_each(|cache| cache.hold(line.0 / LINE_BYTES, stamp));
        stamp
    }

    /// Waits until all lines of a span are there.
    #[inline(always)]
    fn wait_for(&self, span: Span) {
        if self.latency.read_block_ticks == 0 {
            return;
        }
        let later = || self.clock.now_in_order() + self.latency.read_block_ticks;
        for line in lines(span) {
            if !self.arrival(line, later).is_here() {
                return self.wait_for_arrivals(span);
            }
        }
    }

    /// Requests every line of the span, and waits for the last of them.
    #[inline(never)]
    fn wait_for_arrivals(&self, span: Span) {
        let now = self.clock.now_in_order();
        let longest = self.latency.read_block_ticks + self.latency.memory_read_ticks;
        let left = |line| self.arrival(line, || now + self.latency.read_block_ticks).left_ticks(now, longest);
        let left = lines(span).map(left).max().unwrap_or_default();
        self.pause_from(now, left);
        for line in lines(span) {
            self.device().hold(self.block(line), Stamp::HERE);
            self.cache().into_iter().for_each(|cache| cache.hold(line.0 / LINE_BYTES, Stamp::HERE));
        }
    }

    /// Writes back the lines of a span: the device holds them, and so does the cache if they stay there.
    fn write_back(&self, span: Span, is_kept: bool) {
        if !self.latency.is_by_block() {
            return;
        }
        let mut ticks = 0;
        for line in lines(span) {
            let block = self.block(line);
            if self.device().find(block).is_none() {
                ticks += self.latency.persist_block_ticks;
                self.device().hold(block, Stamp::HERE);
            }
            match self.cache() {
                Some(cache) if is_kept => cache.hold(line.0 / LINE_BYTES, Stamp::HERE),
                Some(cache) => cache.drop_number(line.0 / LINE_BYTES),
                None => {}
            }
        }
        self.pause(ticks);
    }

    /// Waits after everything before it is done: the fast memory's time is not part of the delay.
    fn pause(&self, ticks: u64) {
        if ticks > 0 {
            self.pause_from(self.clock.now_in_order(), ticks);
        }
    }

    fn pause_from(&self, now: u64, ticks: u64) {
        if ticks > 0 {
            self.clock.wait_until(now + ticks);
        }
    }
}

impl<C> fmt::Debug for Delays<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delays").field("latency", &self.latency).finish_non_exhaustive()
    }
}

impl<C: TickClock> Probe for Delays<C> {
    fn flushed(&self, span: Span) {
        self.write_back(span, true);
    }

    fn streamed(&self, span: Span) {
        self.write_back(span, false);
    }

    fn fenced(&self) {
        self.pause(self.latency.persist_ticks);
    }

    fn read(&self, span: Span) {
        self.pause(self.latency.read_ticks);
        self.wait_for(span);
    }

    #[inline(always)]
    fn loaded(&self, span: Span) {
        self.wait_for(span);
    }

    fn asked_for(&self, at: Offset) {
        let Latency { read_block_ticks, memory_read_ticks, .. } = self.latency;
        if read_block_ticks > 0 {
            self.arrival(at.line(), || self.clock.now() + memory_read_ticks + read_block_ticks);
        }
    }
}

#[cfg(test)]
mod tests;
