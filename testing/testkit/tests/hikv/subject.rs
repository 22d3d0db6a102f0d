//! HiKV on a crash medium, without and with an ordered index.

use std::marker::PhantomData;

use engine::{Clock, Engine};
use engine_hikv::{HiKv, Ordered};
use heap::layout::{CHUNK_HEADER_BYTES, SEGMENT_BYTES, UNIT_BYTES};
use heap::{Class, Parameters};
use items::layout::HEADER_BYTES;
use pmem::Medium;
use pmem_os::HostDram;
use pmem_sim::Sim;
use testkit::{BackgroundWork, Contents, Failure, Made, Over};

/// Space for the head, one chunk of segments, and a few chunks of items.
pub(crate) const REGION_BYTES: u64 = (2 << 20) + (512 << 10);

/// The seed of its hash.
pub(crate) const HASH_SEED: u64 = 7;

/// Makes HiKV's stores, with one partition, so that few keys fill a segment.
pub(crate) struct OfHiKv<O, M>(PhantomData<fn() -> (O, M)>);

/// The store that is crashed.
pub(crate) type Crashed<O = NoOrder, M = Sim> = testkit::Crashed<OfHiKv<O, M>>;

/// The store with an ordered index once it was scanned.
pub(crate) type InOrder = Crashed<WithOrder>;

/// Adds an ordered index to a store, or does not.
pub(crate) trait Kept: 'static {
    fn kept<M: Medium>(store: HiKv<M, HostDram>) -> HiKv<M, HostDram>;
}

/// No ordered index.
pub(crate) struct NoOrder;

/// An ordered index.
pub(crate) struct WithOrder;

impl Kept for NoOrder {
    fn kept<M: Medium>(store: HiKv<M, HostDram>) -> HiKv<M, HostDram> {
        store
    }
}

impl Kept for WithOrder {
    fn kept<M: Medium>(store: HiKv<M, HostDram>) -> HiKv<M, HostDram> {
        const QUEUE_COUNT: usize = 2;
        store.keeping_order(Ordered::new(QUEUE_COUNT, HostDram))
    }
}

/// An ordered index, and a read cache with copies of few items.
pub(crate) struct Cached;

impl Kept for Cached {
    fn kept<M: Medium>(store: HiKv<M, HostDram>) -> HiKv<M, HostDram> {
        WithOrder::kept(store).caching(1, HostDram).expect("there is enough memory")
    }
}

impl<O: Kept, M: Over> Made for OfHiKv<O, M> {
    type Engine = HiKv<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        let parameters =
            Parameters { uuid: [7; 16], hash_seed: HASH_SEED, partition_count: 1, region_bytes: REGION_BYTES };
        Ok(O::kept(HiKv::format(M::make(on, &parameters)?, HostDram, &parameters)?.by_clock(clock)))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(O::kept(HiKv::open(M::open(on)?, HostDram)?.by_clock(clock)))
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        Some(engine.medium())
    }

    fn needed_bytes(engine: &Self::Engine, contents: &Contents) -> Option<u64> {
        let items: u64 =
            contents.iter().map(|(key, value)| capacity_bytes(HEADER_BYTES + key.len() + value.len())).sum();
        Some(items + engine.stats().figure("segment_count")? as u64 * SEGMENT_BYTES)
    }
}

fn capacity_bytes(item_bytes: usize) -> u64 {
    match Class::for_bytes(item_bytes as u64) {
        Some(class) => class.bytes(),
        None => (item_bytes as u64 + CHUNK_HEADER_BYTES).next_multiple_of(UNIT_BYTES) - CHUNK_HEADER_BYTES,
    }
}
