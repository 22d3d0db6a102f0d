//! The engine on a crash medium.

use std::marker::PhantomData;

use engine::prelude::*;
use engine::{Clock, Cursor, Expiry};
use engine_rewo_hash::RewoHash;
use heap::layout::SEGMENT_BYTES;
use heap::{Class, Parameters};
use index::block_hash::{Content, Slot};
use index::segmented::Cursor as Place;
use items::NewItem;
use pmem::{Medium, Offset};
use pmem_os::HostDram;
use pmem_sim::Sim;
use testkit::{BackgroundWork, Contents, Failure, Made, Over};

pub(crate) struct OfRewoHash<M = Sim>(PhantomData<fn() -> M>);

pub(crate) type OnSim = RewoHash<Sim, HostDram>;

pub(crate) const PARAMETERS: Parameters =
    Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: 1 << 20 };

/// Returns key and bucket of each small item of a store of one segment, including duplicates.
pub(crate) fn buckets<M: Medium>(store: &RewoHash<M, HostDram>) -> Vec<(Vec<u8>, Offset)> {
    let _pin = epoch::pin();
    let mut all = Vec::new();
    let mut note = |at, slot: &Slot| {
        if let Content::Whole { key, .. } = slot.content() {
            all.push((key.to_vec(), at));
        }
    };
    let next = store.table().check_segment(store.medium(), Place::default(), &mut |_| {}, &mut note);
    assert!(next.is_done(), "the table has split");
    all.sort();
    all
}

/// Returns the bytes of the items outside the table, and of its segments.
pub(crate) fn needed_bytes<M: Medium>(store: &RewoHash<M, HostDram>) -> u64 {
    let stats = store.stats();
    let segments: f64 = ["segment_count", "chained_count"].iter().filter_map(|name| stats.figure(name)).sum();
    let (mut bytes, mut cursor) = (segments as u64 * SEGMENT_BYTES, Cursor::default());
    while !cursor.is_done() {
        let mut add = |key: &[u8], value: &[u8], expiry: Expiry| {
            if !expiry.is_never() || Slot::whole(key, value).is_none() {
                let item = NewItem { key, value, expiry };
                bytes += Class::for_bytes(item.item_bytes()).expect("no extents in these stores").bytes();
            }
        };
        cursor = store.walk(cursor, &mut add).unwrap();
    }
    bytes
}

/// The engine with a cached table that holds few items.
pub(crate) struct OfCached<M = Sim>(PhantomData<fn() -> M>);

impl<M: Over> Made for OfCached<M> {
    type Engine = RewoHash<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(OfRewoHash::<M>::format(on, clock)?.caching(1, HostDram)?)
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(OfRewoHash::<M>::open(on, clock)?.caching(1, HostDram)?)
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        OfRewoHash::<M>::background(engine)
    }

    fn needed_bytes(engine: &Self::Engine, _contents: &Contents) -> Option<u64> {
        Some(needed_bytes(engine))
    }
}

/// Like `OfCached`, with threads that write the copies.
pub(crate) struct OfServed<M = Sim>(PhantomData<fn() -> M>);

impl<M: Over> Made for OfServed<M> {
    type Engine = RewoHash<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(OfCached::<M>::format(on, clock)?.copying_by(2)?)
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(OfCached::<M>::open(on, clock)?.copying_by(2)?)
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        OfRewoHash::<M>::background(engine)
    }

    fn needed_bytes(engine: &Self::Engine, _contents: &Contents) -> Option<u64> {
        Some(needed_bytes(engine))
    }
}

/// The engine with pre-eviction in the background.
pub(crate) struct OfRelieved<M = Sim>(PhantomData<fn() -> M>);

impl<M: Over> Made for OfRelieved<M> {
    type Engine = RewoHash<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(OfRewoHash::<M>::format(on, clock)?.pre_evicting(true))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(OfRewoHash::<M>::open(on, clock)?.pre_evicting(true))
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        OfRewoHash::<M>::background(engine)
    }

    fn needed_bytes(engine: &Self::Engine, _contents: &Contents) -> Option<u64> {
        Some(needed_bytes(engine))
    }
}

impl<M: Over> Made for OfRewoHash<M> {
    type Engine = RewoHash<M, HostDram>;
    type Medium = M::Medium;

    fn format(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(RewoHash::format(M::make(on, &PARAMETERS)?, HostDram, &PARAMETERS)?.by_clock(clock))
    }

    fn open(on: M::Medium, clock: Clock) -> Result<Self::Engine, Failure> {
        Ok(RewoHash::open(M::open(on)?, HostDram)?.by_clock(clock))
    }

    fn background(engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        Some(engine.medium())
    }

    fn needed_bytes(engine: &Self::Engine, _contents: &Contents) -> Option<u64> {
        Some(needed_bytes(engine))
    }
}
