//! HiKV on a crash medium, without order and with it.

use std::cell::RefCell;
use std::ops::{Bound, ControlFlow};
use std::time::Duration;

use engine::{
    BatchOp, Check, Clock, Cursor, Decision, Depth, Early, Engine, Error, Expiry, Held, Moment, OpenError, Progress,
    ScanCursor, SnapshotEngine,
};
use engine_hikv::Order;
use engine_hikv::{HashOnly, HiKv, Ordered};
use heap::Parameters;
use heap::layout::{CHUNK_HEADER_BYTES, SEGMENT_BYTES, UNIT_BYTES};
use heap::{Class, HeapError};
use items::layout::HEADER_BYTES;
use parking_lot::Mutex;
use pmem::{Medium, MediumError};
use pmem_os::HostDram;
use pmem_sim::{Crashable, Sim};
use testkit::{Contents, Direction, Failure, Lasting, Operations, Space, Subject, Visit, expiring};

/// Head, one chunk of segments, and room for a few chunks of items.
pub(crate) const REGION_BYTES: u64 = (2 << 20) + (512 << 10);

/// The key of its hash.
pub(crate) const HASH_SEED: u64 = 7;

/// The store that is crashed. One partition, so that few keys fill a segment.
pub(crate) struct Crashed<O = HashOnly, M = Sim>(pub(crate) HiKv<M, HostDram, O>, Mutex<Vec<Moment>>);

/// The store that keeps its keys in order, once it was scanned.
pub(crate) type InOrder = Crashed<Ordered<HostDram>>;

thread_local! {
    /// The clock of this thread's stores: a script, and what its crashes leave, are looked at by one thread.
    static CLOCK: RefCell<Clock> = RefCell::new(Clock::manual(0));
}

fn now() -> Clock {
    CLOCK.with_borrow(Clock::clone)
}

/// A medium over something that can be crashed.
pub(crate) trait Over: Medium + Sized {
    /// What it lies on.
    type Medium: Crashable;

    /// One that holds nothing.
    fn make(on: Self::Medium) -> Result<Self, Failure>;

    /// The one that is there.
    fn open(on: Self::Medium) -> Result<Self, Failure>;

    /// Ends what it leaves to the background.
    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Over for Sim {
    type Medium = Sim;

    fn make(on: Sim) -> Result<Sim, Failure> {
        Ok(on)
    }

    fn open(on: Sim) -> Result<Sim, Failure> {
        Ok(on)
    }
}

/// Whether a store keeps order.
pub(crate) trait Kept<M: Medium>: Order<M, HostDram> {
    fn kept(store: HiKv<M, HostDram>) -> HiKv<M, HostDram, Self>;
}

impl<M: Medium> Kept<M> for HashOnly {
    fn kept(store: HiKv<M, HostDram>) -> HiKv<M, HostDram> {
        store
    }
}

impl<M: Medium> Kept<M> for Ordered<HostDram> {
    fn kept(store: HiKv<M, HostDram>) -> HiKv<M, HostDram, Ordered<HostDram>> {
        const QUEUE_COUNT: usize = 2;
        store.ordered(Ordered::new(QUEUE_COUNT, HostDram))
    }
}

impl<O: Kept<M>, M: Over> Crashed<O, M> {
    fn of(store: HiKv<M, HostDram>) -> Crashed<O, M> {
        Crashed(O::kept(store.by_clock(now())), Mutex::default())
    }

    fn taken(&self, snapshot: u64) -> Moment {
        self.1.lock()[snapshot as usize]
    }

    /// The value, and with it when the key expires, if it does.
    fn shown(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>, Failure> {
        let expiry = self.0.expiry(key).map_err(failure)?;
        Ok(with_expiry(value, expiry.unwrap_or(Expiry::NEVER)))
    }

    /// Shows every item that is kept in order, and not when it expires.
    pub(crate) fn scan_values(
        &self,
        from: Bound<&[u8]>,
        direction: Direction,
        each: &mut Visit<'_>,
    ) -> Result<bool, Failure> {
        let Some(ordered) = self.0.ordered() else { return Ok(false) };
        ordered.catch_up(Early::Wait).map_err(failure)?;
        let mut cursor = ScanCursor::new(from, towards(direction));
        while ordered.scan(&mut cursor, each).map_err(failure)? {}
        Ok(true)
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

fn op_of<'a>((key, new): (&'a [u8], Lasting<'a>)) -> BatchOp<'a> {
    match new {
        Some((value, None)) => BatchOp::Put { key, value },
        Some((value, Some(at_ms))) => BatchOp::PutUntil { key, value, expiry: Expiry::at_ms(at_ms) },
        None => BatchOp::Delete { key },
    }
}

fn with_expiry(value: &[u8], expiry: Expiry) -> Vec<u8> {
    if expiry.is_never() { value.to_vec() } else { expiring(value, expiry.ms()) }
}

fn towards(direction: Direction) -> engine::Direction {
    match direction {
        Direction::Forward => engine::Direction::Forward,
        Direction::Backward => engine::Direction::Backward,
    }
}

impl<O: Kept<M>, M: Over> Operations for Crashed<O, M> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut copy = None;
        self.0.get(key, &mut |_, value| copy = Some(value.to_vec())).map_err(failure)?;
        copy.map(|value| self.shown(key, &value)).transpose()
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.0.put(key, value).map_err(failure)
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Failure> {
        self.0.multi_put(items).map_err(failure)
    }

    fn put_expiring(&self, key: &[u8], value: &[u8], at_ms: u64) -> Result<(), Failure> {
        self.0.put_until(key, value, Expiry::at_ms(at_ms)).map_err(failure)
    }

    fn expire(&self, key: &[u8], at_ms: Option<u64>) -> Result<bool, Failure> {
        self.0.expire(key, at_ms.map_or(Expiry::NEVER, Expiry::at_ms)).map_err(failure)
    }

    fn batch(&self, changes: &[(&[u8], Option<&[u8]>)]) -> Result<(), Failure> {
        let op = |&(key, value): &(_, Option<_>)| match value {
            Some(value) => BatchOp::Put { key, value },
            None => BatchOp::Delete { key },
        };
        self.0.write_batch(&changes.iter().map(op).collect::<Vec<_>>()).map_err(failure)
    }

    fn batch_expiring(&self, changes: &[(&[u8], Lasting<'_>)]) -> Result<(), Failure> {
        self.0.write_batch(&changes.iter().copied().map(op_of).collect::<Vec<_>>()).map_err(failure)
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        let (mut flow, mut failed) = (ControlFlow::Continue(()), None);
        let mut show = |key: &[u8], value: &[u8]| {
            match self.shown(key, value) {
                Ok(value) => flow = each(key, &value),
                Err(failure) => (flow, failed) = (ControlFlow::Break(()), Some(failure)),
            }
            flow
        };
        let is_ordered = self.scan_values(from, direction, &mut show)?;
        failed.map_or(Ok(is_ordered), Err)
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.0.delete(key).map_err(failure)
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        let mut is_equal = false;
        let mut decide = |held: Option<Held<'_>>| {
            is_equal = held.map(|held| held.value) == expected;
            match new {
                _ if !is_equal => Decision::Keep,
                Some(new) => Decision::Put(new.into()),
                None => Decision::Delete,
            }
        };
        self.0.update(key, &mut decide).map_err(failure)?;
        Ok(is_equal)
    }

    fn clear(&self) -> Result<(), Failure> {
        self.0.clear().map_err(failure)
    }

    fn compact(&self) -> Result<(), Failure> {
        self.0.compact(&mut |_| {}).map(drop).map_err(failure)
    }

    /// Keys that have expired count until they are reaped.
    fn len(&self) -> Result<u64, Failure> {
        while now().now_ms() > 0 && self.0.step().map_err(failure)? == Progress::More {}
        self.0.len().map_err(failure)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let (mut cursor, mut failed) = (Cursor::default(), None);
        let mut show = |key: &[u8], value: &[u8], _| match self.shown(key, value) {
            Ok(value) => each(key, &value),
            Err(failure) => failed = Some(failure),
        };
        while !cursor.is_done() {
            cursor = self.0.walk(cursor, &mut show).map_err(failure)?;
        }
        failed.map_or(Ok(()), Err)
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let (mut check, mut damage) = (Check::new(Depth::Deep), Vec::new());
        while !check.is_done() {
            let step =
                self.0.check(&mut check, &mut |found| damage.push(format!("{:#x}: {}", found.offset, found.what)));
            step.map_err(failure)?;
        }
        Ok(damage)
    }
}

impl<O: Kept<M>, M: Over> Subject for Crashed<O, M> {
    type Medium = M::Medium;

    const HAS_SNAPSHOTS: bool = true;

    fn format(on: M::Medium) -> Result<Crashed<O, M>, Failure> {
        let parameters =
            Parameters { uuid: [7; 16], hash_seed: HASH_SEED, partition_count: 1, region_bytes: REGION_BYTES };
        HiKv::format(M::make(on)?, HostDram, &parameters).map(Crashed::of).map_err(open_failure)
    }

    fn open(on: M::Medium) -> Result<Crashed<O, M>, Failure> {
        HiKv::open(M::open(on)?, HostDram).map(Crashed::of).map_err(open_failure)
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
        let mut found = |_, expiry: Expiry, value: &[u8]| copy = Some(with_expiry(value, expiry));
        self.0.get_at(self.taken(snapshot), key, &mut found).map_err(failure)?;
        Ok(copy)
    }

    fn for_each_at(&self, snapshot: u64, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let (mut cursor, at) = (Cursor::default(), self.taken(snapshot));
        let mut each = |key: &[u8], value: &[u8], expiry| each(key, &with_expiry(value, expiry));
        while !cursor.is_done() {
            cursor = self.0.walk_at(at, cursor, &mut each, &mut Err).map_err(failure)?;
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
        let (mut cursor, at) = (ScanCursor::new(from, towards(direction)), self.taken(snapshot));
        let mut each = |key: &[u8], value: &[u8]| {
            let mut expires = Expiry::NEVER;
            let found = self.0.get_at(at, key, &mut |_, expiry, _| expires = expiry);
            assert!(found.is_ok_and(|found| found), "a scan shows what a lookup does not find");
            each(key, &with_expiry(value, expires))
        };
        while ordered.scan_at(at, &mut cursor, &mut each).map_err(failure)? {}
        Ok(true)
    }

    fn set_time(now_ms: u64) {
        CLOCK.with_borrow_mut(|clock| match now_ms.checked_sub(clock.now_ms()) {
            Some(ms) => clock.advance(Duration::from_millis(ms)),
            None => *clock = Clock::manual(now_ms),
        });
    }

    /// However long the other scripts' threads keep what is retired: a close that does not wait for them leaves no image.
    fn close(self) -> Result<(), Failure> {
        self.free_garbage();
        self.0.close().map_err(failure)
    }

    fn settle(&self) -> Result<(), Failure> {
        while self.0.step().map_err(failure)? == Progress::More {}
        self.free_garbage();
        self.0.medium().settle()
    }

    fn space(&self, contents: &Contents) -> Option<Space> {
        let stats = self.0.stats();
        let items: u64 = contents.iter().map(|(key, value)| room_bytes(HEADER_BYTES + key.len() + value.len())).sum();
        Some(Space {
            live_bytes: stats.live_bytes,
            needed_bytes: items + stats.figure("segment_count").unwrap_or_default() as u64 * SEGMENT_BYTES,
        })
    }
}

fn room_bytes(item_bytes: usize) -> u64 {
    match Class::for_bytes(item_bytes as u64) {
        Some(class) => class.bytes(),
        None => (item_bytes as u64 + CHUNK_HEADER_BYTES).next_multiple_of(UNIT_BYTES) - CHUNK_HEADER_BYTES,
    }
}
