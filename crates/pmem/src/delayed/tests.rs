extern crate std;

use core::alloc::Layout;
use core::ptr::NonNull;

use super::*;
use crate::arch;

const READ: u64 = 100;
const MEMORY: u64 = 30;
const LATENCY: Latency = Latency {
    persist_ticks: 600,
    read_ticks: 60,
    persist_block_ticks: 7,
    read_block_ticks: READ,
    memory_read_ticks: MEMORY,
    block_bytes: 256,
    cache_bytes: 0,
};

type Driven = Delays<DrivenClock>;

struct Host;

// SAFETY: as the global allocator.
unsafe impl Dram for Host {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the layout has a size.
        NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
    }

    unsafe fn deallocate(&self, memory: NonNull<u8>, layout: Layout) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
    }
}

fn driven() -> Driven {
    cached(0)
}

fn cached(cache_bytes: u64) -> Driven {
    Delays::by_clock(Latency { cache_bytes, ..LATENCY }, &Host, DrivenClock::default()).unwrap()
}

/// Returns the ticks that some calls waited.
fn waits(delays: &Driven, calls: impl FnOnce()) -> u64 {
    let before = delays.clock().now();
    calls();
    delays.clock().now() - before
}

fn load(delays: &Driven, at: u64, len_bytes: u64) -> u64 {
    waits(delays, || delays.loaded(Offset(at).span(len_bytes)))
}

#[test]
fn block_costs_once_for_many_words() {
    for delays in [driven(), cached(1 << 16)] {
        assert_eq!(load(&delays, 512, 8), READ);
        assert!((0..32).all(|word| load(&delays, 512 + 8 * word, 8) == 0));
        assert_eq!(load(&delays, 768, 8), READ, "the next block is another");
        assert_eq!(delays.block_read_count(), 2);
    }
}

#[test]
fn blocks_of_one_read_arrive_together() {
    let delays = driven();
    assert_eq!(load(&delays, 4096 - 16, 272), READ, "16 bytes of one block, 256 of the next");
    assert_eq!(load(&delays, 8192, 0), 0);
    assert_eq!((load(&delays, 8192, 1024), delays.block_read_count()), (READ, 2 + 4));
    assert_eq!(waits(&delays, || delays.read(Offset(1 << 20).span(300))), 60 + READ, "an item costs its own time also");
}

#[test]
fn pointer_chase_pays_every_miss() {
    let delays = cached(1 << 20);
    let chase = || (0..40).for_each(|i| delays.loaded(Offset(i * 4096).span(8)));
    assert_eq!((waits(&delays, chase), delays.block_read_count()), (40 * READ, 40));
    assert_eq!(waits(&delays, chase), 0, "all are in the cache");
}

#[test]
fn prefetched_group_pays_one_miss() {
    for delays in [driven(), cached(1 << 20)] {
        let place = |i: u64| Offset(4096 * i + 256 * i);
        let prefetch = || (0..8).for_each(|i| delays.asked_for(place(i)));
        assert_eq!(waits(&delays, prefetch), 0);
        assert_eq!(load(&delays, place(0).0, 8), MEMORY + READ, "as long as a load, of which 30 are the memory's");
        assert!((1..8).all(|i| load(&delays, place(i).0 + 192, 8) == 0), "also the other lines of a block");
        assert_eq!(delays.block_read_count(), 8);
    }
}

#[test]
fn work_after_a_prefetch_hides_its_time() {
    let delays = cached(1 << 20);
    delays.asked_for(Offset(4096));
    delays.clock().advance(50);
    delays.asked_for(Offset(8192));
    delays.asked_for(Offset(4096));
    assert_eq!(load(&delays, 4096, 8), MEMORY + READ - 50, "a second prefetch does not begin again");
    assert_eq!(load(&delays, 8192, 8), 50);
    delays.asked_for(Offset(1 << 16));
    delays.clock().advance(1000);
    assert_eq!(load(&delays, 1 << 16, 8), 0);
}

/// Descents to random leaves of a tree with 16 children a node and a block a node, with a cache for 1024 lines.
#[test]
fn top_levels_of_a_tree_become_free() {
    let delays = cached(1 << 16);
    let mut random = 1_u64;
    let mut descend = |reads: &mut [u64; 4]| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        for (level, reads) in reads.iter_mut().enumerate() {
            let node = (random >> 32) % 16_u64.pow(level as u32 + 1);
            let first = (0..level as u32 + 1).map(|above| 16_u64.pow(above)).sum::<u64>();
            *reads += load(&delays, (first + node) * 256, 8) / READ;
        }
    };
    (0..5000).for_each(|_| descend(&mut [0; 4]));
    let mut reads = [0; 4];
    (0..1000).for_each(|_| descend(&mut reads));
    assert_eq!(reads[0], 0, "16 nodes, each read every 16 descents");
    assert!(reads[1] < 300 && reads[2] > 800 && reads[3] > 980, "{reads:?}");
}

#[test]
fn block_is_evicted_by_others() {
    let delays = driven();
    let blocks = HELD_BLOCK_COUNT as u64;
    (0..blocks).for_each(|i| assert_eq!(load(&delays, 256 * i, 8), READ));
    (0..blocks).for_each(|i| assert_eq!(load(&delays, 256 * i, 8), 0));
    assert_eq!(load(&delays, 256 * blocks, 8), READ);
    let first_eight = (0..8).map(|i| load(&delays, 256 * i, 8)).sum::<u64>();
    assert_eq!(first_eight, READ, "one of the blocks that were not used for longest lost its place");
}

#[test]
fn written_block_and_lines_are_cached() {
    let delays = cached(1 << 20);
    assert_eq!(waits(&delays, || delays.flushed(Offset(256).span(512))), 14);
    assert_eq!(load(&delays, 300, 8), 0);
    // The device holds other blocks by now, the cache still has what was flushed, and not what was streamed.
    delays.streamed(Offset(1 << 16).span(256));
    assert_eq!(load(&delays, 1 << 16, 8), 0, "the device holds it");
    delays.streamed(Offset(1 << 16).span(256));
    (0..1000).for_each(|i| _ = load(&delays, (1 << 18) + 256 * i, 8));
    assert_eq!((load(&delays, 300, 8), load(&delays, 1 << 16, 8)), (0, READ));
}

#[test]
fn cache_without_bytes_is_none() {
    let delays = cached(0);
    assert!(delays.cache().is_none());
    assert_eq!(cached(1 << 16).cache().map(|Tags(sets)| sets.len() * WAYS), Some(1024), "lines of 64 bytes");
}

/// A call of the medium takes at least its configured cost; the processor may make it longer.
#[test]
fn fences_and_reads_take_their_time() {
    const TICKS: u64 = 2_000_000;
    let took = |latency, asked: &dyn Fn(&Delays)| {
        let delays = Delays::new(latency, &Host).unwrap();
        let start = arch::timestamp_in_order();
        asked(&delays);
        arch::timestamp_in_order() - start
    };
    let span = Offset(0).span(4096);
    let of_persists = Latency { persist_ticks: TICKS, ..Latency::default() };
    assert!(took(of_persists, &|delays| delays.fenced()) >= TICKS);
    let of_reads = Latency { read_ticks: TICKS, ..Latency::default() };
    assert!(took(of_reads, &|delays| delays.read(span)) >= TICKS);
    let of_blocks = Latency { read_block_ticks: TICKS, block_bytes: 256, ..Latency::default() };
    assert!(took(of_blocks, &|delays| delays.read(span)) >= TICKS);
    let prefetched = |delays: &Delays| {
        delays.asked_for(span.start);
        delays.loaded(span);
    };
    assert!(took(Latency { memory_read_ticks: TICKS, ..of_blocks }, &prefetched) >= 2 * TICKS);
    let written = Latency { persist_block_ticks: TICKS / 16, block_bytes: 256, ..Latency::default() };
    assert!(took(written, &|delays| delays.streamed(span)) >= TICKS);
}

#[test]
fn blocks_without_cost_are_ignored() {
    let latency = Latency { persist_ticks: 600, cache_bytes: u64::MAX, ..Latency::default() };
    let delays = Delays::by_clock(latency, &Host, DrivenClock::default()).unwrap();
    delays.loaded(Offset(0).span(u64::MAX));
    delays.flushed(Offset(0).span(u64::MAX));
    delays.asked_for(Offset(u64::MAX));
    assert_eq!((delays.clock().now(), delays.block_read_count()), (0, 0));
}

#[test]
#[should_panic(expected = "blocks of 100 bytes")]
fn blocks_of_an_odd_length_are_refused() {
    let _ = Delays::new(Latency { block_bytes: 100, ..LATENCY }, &Host);
}
