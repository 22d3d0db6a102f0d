//! HiKV on the crash medium, without order and with it.

use std::ops::Bound;

use engine::hikv::order::Order;
use engine::hikv::{Parameters, layout::HEADER_BYTES};
use engine::{
    Cursor, Early, Engine, Error, HashOnly, HiKv, HostDram, OpenError, Ordered, OrderedEngine, Progress, ScanCursor,
    SnapshotEngine, SnapshotEpoch,
};
use heap::layout::{CHUNK_HEADER_BYTES, SEGMENT_BYTES, UNIT_BYTES};
use heap::{Class, HeapError};
use parking_lot::Mutex;
use pmem::MediumError;
use pmem_sim::Sim;
use testkit::{Contents, Direction, Failure, Operations, Space, Subject, Visit};

/// Head, one chunk of segments, and room for a few chunks of items.
pub(crate) const REGION_BYTES: u64 = (2 << 20) + (512 << 10);

/// The store that is crashed. One partition, so that few keys fill a segment.
pub(crate) struct Crashed<O = HashOnly>(pub(crate) HiKv<Sim, HostDram, O>, Mutex<Vec<SnapshotEpoch>>);

/// The store that keeps its keys in order, once it was scanned.
pub(crate) type InOrder = Crashed<Ordered<HostDram>>;

/// Whether a store keeps order.
pub(crate) trait Kept: Order<Sim, HostDram> {
    fn kept(store: HiKv<Sim, HostDram>) -> HiKv<Sim, HostDram, Self>;
}

impl Kept for HashOnly {
    fn kept(store: HiKv<Sim, HostDram>) -> HiKv<Sim, HostDram> {
        store
    }
}

impl Kept for Ordered<HostDram> {
    fn kept(store: HiKv<Sim, HostDram>) -> HiKv<Sim, HostDram, Ordered<HostDram>> {
        const QUEUE_COUNT: usize = 2;
        store.ordered(Ordered::new(QUEUE_COUNT, HostDram))
    }
}

impl<O: Kept> Crashed<O> {
    fn of(store: HiKv<Sim, HostDram>) -> Crashed<O> {
        Crashed(O::kept(store), Mutex::default())
    }

    fn taken(&self, snapshot: u64) -> SnapshotEpoch {
        self.1.lock()[snapshot as usize]
    }

    fn free_garbage(&self) {
        while self.0.stats().garbage_count > 0 {
            self.0.tidy();
        }
    }
}

fn failure(error: Error) -> Failure {
    match error {
        Error::Medium(MediumError::Full { .. } | MediumError::Limit { .. }) => Failure::Full,
        other => Failure::Other(other.to_string()),
    }
}

fn open_failure(error: OpenError) -> Failure {
    match error {
        OpenError::Heap(HeapError::Unformatted) => Failure::Unfinished,
        OpenError::Heap(HeapError::Medium(MediumError::Full { .. } | MediumError::Limit { .. })) => Failure::Full,
        other => Failure::Other(other.to_string()),
    }
}

/// Scans what the tree holds by now.
fn scan(
    ordered: &dyn OrderedEngine,
    from: Bound<&[u8]>,
    direction: Direction,
    each: &mut Visit<'_>,
) -> Result<(), Error> {
    let mut cursor = ScanCursor::new(from, towards(direction));
    while ordered.scan(&mut cursor, each)? {}
    Ok(())
}

fn towards(direction: Direction) -> engine::Direction {
    match direction {
        Direction::Forward => engine::Direction::Forward,
        Direction::Backward => engine::Direction::Backward,
    }
}

impl<O: Kept> Operations for Crashed<O> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut copy = None;
        self.0.get(key, &mut |_, value| copy = Some(value.to_vec())).map_err(failure)?;
        Ok(copy)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.0.put(key, value).map_err(failure)
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Failure> {
        self.0.multi_put(items).map_err(failure)
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        let Some(ordered) = self.0.ordered() else { return Ok(false) };
        ordered.catch_up(Early::Wait).map_err(failure)?;
        scan(ordered, from, direction, each).map_err(failure)?;
        Ok(true)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.0.delete(key).map_err(failure)
    }

    fn clear(&self) -> Result<(), Failure> {
        self.0.clear().map_err(failure)
    }

    fn len(&self) -> Result<u64, Failure> {
        self.0.len().map_err(failure)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let mut cursor = Cursor::default();
        while !cursor.is_done() {
            cursor = self.0.walk(cursor, each).map_err(failure)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let (mut cursor, mut damage) = (Cursor::default(), Vec::new());
        while !cursor.is_done() {
            let step = self.0.check(cursor, &mut |found| damage.push(format!("{:#x}: {}", found.offset, found.what)));
            cursor = step.map_err(failure)?.cursor;
        }
        Ok(damage)
    }
}

impl<O: Kept> Subject for Crashed<O> {
    const HAS_SNAPSHOTS: bool = true;

    fn format(medium: Sim) -> Result<Crashed<O>, Failure> {
        let parameters = Parameters { uuid: [7; 16], hash_seed: 7, partition_count: 1, region_bytes: REGION_BYTES };
        HiKv::format(medium, HostDram, &parameters).map(Crashed::of).map_err(open_failure)
    }

    fn open(medium: Sim) -> Result<Crashed<O>, Failure> {
        HiKv::open(medium, HostDram).map(Crashed::of).map_err(open_failure)
    }

    fn snapshot(&self) -> Result<u64, Failure> {
        let taken = SnapshotEngine::take_snapshot(&self.0).map_err(failure)?;
        let mut all = self.1.lock();
        all.push(taken);
        Ok(all.len() as u64 - 1)
    }

    fn release(&self, snapshot: u64) {
        SnapshotEngine::release_snapshot(&self.0, self.taken(snapshot));
    }

    fn get_at(&self, snapshot: u64, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut copy = None;
        self.0.get_at(self.taken(snapshot), key, &mut |_, value| copy = Some(value.to_vec())).map_err(failure)?;
        Ok(copy)
    }

    fn for_each_at(&self, snapshot: u64, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let mut cursor = Cursor::default();
        while !cursor.is_done() {
            cursor = self.0.walk_at(self.taken(snapshot), cursor, each).map_err(failure)?;
        }
        Ok(())
    }

    fn scan_at(
        &self,
        snapshot: u64,
        from: Bound<&[u8]>,
        direction: Direction,
        each: &mut Visit<'_>,
    ) -> Result<bool, Failure> {
        let Some(ordered) = self.0.ordered() else { return Ok(false) };
        ordered.catch_up(Early::Wait).map_err(failure)?;
        let mut cursor = ScanCursor::new(from, towards(direction));
        while ordered.scan_at(self.taken(snapshot), &mut cursor, each).map_err(failure)? {}
        Ok(true)
    }

    /// However long the other scripts' threads keep what is retired: a close that does not wait for them leaves no image.
    fn close(self) -> Result<(), Failure> {
        self.free_garbage();
        self.0.close().map_err(failure)
    }

    fn settle(&self) -> Result<(), Failure> {
        while self.0.step().map_err(failure)? == Progress::More {}
        self.free_garbage();
        Ok(())
    }

    fn space(&self, contents: &Contents) -> Option<Space> {
        let stats = self.0.stats();
        let items: u64 = contents.iter().map(|(key, value)| room_bytes(HEADER_BYTES + key.len() + value.len())).sum();
        Some(Space { live_bytes: stats.live_bytes, needed_bytes: items + stats.segment_count * SEGMENT_BYTES })
    }
}

fn room_bytes(item_bytes: usize) -> u64 {
    match Class::for_bytes(item_bytes as u64) {
        Some(class) => class.bytes(),
        None => (item_bytes as u64 + CHUNK_HEADER_BYTES).next_multiple_of(UNIT_BYTES) - CHUNK_HEADER_BYTES,
    }
}
