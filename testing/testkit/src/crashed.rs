//! An adapter that makes any engine a [`Subject`] for the explorer and the conformance suite.

use std::cell::RefCell;
use std::ops::{Bound, ControlFlow};
use std::time::Duration;

use engine::prelude::*;
use engine::{
    BatchOp, Check, Clock, Condition, CurrentItem, Cursor, Decision, Depth, Early, Error, Expiry, Lookup, Moment,
    Progress, ScanCursor, Version, empty_buffer,
};
use parking_lot::Mutex;
use pmem::Backoff;
use pmem_sim::Crashable;

use crate::lives::expiring;
use crate::over::BackgroundWork;
use crate::subject::{Contents, Direction, Failure, Lasting, Operations, Space, Subject, Visit};

thread_local! {
    /// The clock of this thread's stores. A script and the images of its crashes are examined by one thread.
    static CLOCK: RefCell<Clock> = RefCell::new(Clock::manual(0));
}

fn now() -> Clock {
    CLOCK.with_borrow(Clock::clone)
}

/// The way an engine's stores are made on a crashable medium.
pub trait Made: Send + Sync + 'static {
    /// The engine.
    type Engine: Engine + 'static;
    /// The crashable medium.
    type Medium: Crashable;

    /// Creates an empty store that uses `clock`, whatever the medium holds.
    /// # Errors
    /// As for [`Subject::format`].
    fn format(on: Self::Medium, clock: Clock) -> Result<Self::Engine, Failure>;

    /// Opens and recovers a store that uses `clock`.
    /// # Errors
    /// As for [`Subject::open`].
    fn open(on: Self::Medium, clock: Clock) -> Result<Self::Engine, Failure>;

    /// See [`Operations::try_get`]; for engines whose readers take locks.
    /// # Errors
    /// Any error of the engine.
    fn try_get(store: &Crashed<Self>, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure>
    where
        Self: Sized,
    {
        store.get(key).map(Some)
    }

    /// Returns the medium, if it has background work.
    fn background(_engine: &Self::Engine) -> Option<&dyn BackgroundWork> {
        None
    }

    /// Returns the bytes of its region that the settled store needs for these contents, if the engine can compute them.
    fn needed_bytes(_engine: &Self::Engine, _contents: &Contents) -> Option<u64> {
        None
    }
}

/// An engine's store on a crashable medium, with the snapshots that were taken of it.
pub struct Crashed<K: Made>(pub K::Engine, Mutex<Vec<Moment>>);

impl<K: Made> Crashed<K> {
    fn of(engine: K::Engine) -> Crashed<K> {
        Crashed(engine, Mutex::default())
    }

    /// Returns the engine for a read, once the medium has memory for it.
    fn to_read(&self) -> &K::Engine {
        K::background(&self.0).into_iter().for_each(BackgroundWork::admit);
        &self.0
    }

    /// Returns the engine for a write, once the medium has memory for it.
    fn to_write(&self) -> &K::Engine {
        K::background(&self.0).into_iter().for_each(BackgroundWork::admit_write);
        &self.0
    }

    fn taken(&self, snapshot: u64) -> Moment {
        self.1.lock()[snapshot as usize]
    }

    fn snapshots(&self) -> Result<&dyn SnapshotEngine, Failure> {
        self.0.snapshots().ok_or_else(|| Failure::Other("this engine has no snapshots".into()))
    }

    /// Returns the value, followed by the key's expiry time if it has one.
    fn shown(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>, Failure> {
        let expiry = self.0.expiry(key)?;
        Ok(with_expiry(value, expiry.unwrap_or(Expiry::NEVER)))
    }

    /// Looks the key up without a lock, as the library does first; `None` if that is not conclusive.
    fn lookup(&self, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let engine = self.to_read();
        let (pin, mut buffer) = (epoch::pin(), empty_buffer());
        match engine.supports_lookup().then(|| engine.lookup(pin.pinned(), key, &mut buffer).unpack())? {
            Lookup::Value(value) => Some(Some(value.to_vec())),
            Lookup::Absent => Some(None),
            Lookup::Unsure => None,
        }
    }

    /// Scans the values without their expiry times. Returns false if the engine keeps no order.
    /// # Errors
    /// Any error of the engine.
    pub fn scan_values(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        let Some(ordered) = self.to_read().ordered() else { return Ok(false) };
        ordered.catch_up(Early::Wait)?;
        let mut cursor = ScanCursor::new(from, towards(direction));
        while ordered.scan(&mut cursor, each)? {}
        Ok(true)
    }

    /// Frees all garbage. Readers of other explorations can keep some of it, so this yields the processor to them.
    fn free_garbage(&self) {
        let mut backoff = Backoff::long();
        while self.0.stats().garbage_count > 0 {
            self.0.run_idle_maintenance();
            backoff.relax();
        }
    }
}

fn plain_op_of<'a>((key, value): (&'a [u8], Option<&'a [u8]>)) -> BatchOp<'a> {
    op_of((key, value.map(|value| (value, None))))
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

impl<K: Made> Operations for Crashed<K> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let found = match self.lookup(key) {
            Some(found) => found,
            None => {
                let mut copy = None;
                self.0.get(key, &mut |_, _, value| copy = Some(value.to_vec()))?;
                copy
            }
        };
        found.map(|value| self.shown(key, &value)).transpose()
    }

    fn multi_get(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let mut values = Vec::new();
        self.to_read().multi_get(keys, &mut |_, value| values.push(value.map(<[u8]>::to_vec)))?;
        keys.iter().zip(values).map(|(key, value)| value.map(|value| self.shown(key, &value)).transpose()).collect()
    }

    fn try_get(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, Failure> {
        K::try_get(self, key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        Ok(self.to_write().put(key, value)?)
    }

    fn multi_put(&self, items: &[(&[u8], &[u8])]) -> Result<(), Failure> {
        Ok(self.to_write().multi_put(items)?)
    }

    fn multi_delete(&self, keys: &[&[u8]]) -> Result<Vec<bool>, Failure> {
        let (mut were_there, mut first) = (vec![false; keys.len()], Ok(()));
        self.to_write().multi_delete_each(keys, &mut |number, done| match done {
            Ok(was_there) => were_there[number] = was_there,
            Err(error) => first = std::mem::replace(&mut first, Ok(())).and(Err(error)),
        });
        Ok(first.map(|()| were_there)?)
    }

    fn put_expiring(&self, key: &[u8], value: &[u8], at_ms: u64) -> Result<(), Failure> {
        Ok(self.to_write().put_until(key, value, Expiry::at_ms(at_ms))?)
    }

    fn expire(&self, key: &[u8], at_ms: Option<u64>) -> Result<bool, Failure> {
        Ok(self.to_write().expire(key, at_ms.map_or(Expiry::NEVER, Expiry::at_ms))?)
    }

    fn batch(&self, changes: &[(&[u8], Option<&[u8]>)]) -> Result<(), Failure> {
        Ok(self.to_write().write_batch(&changes.iter().copied().map(plain_op_of).collect::<Vec<_>>())?)
    }

    /// Uses a version that no key has where a key does not hold the expected value.
    fn batch_if(
        &self,
        expected: &[(&[u8], Option<&[u8]>)],
        changes: &[(&[u8], Option<&[u8]>)],
    ) -> Result<bool, Failure> {
        let mut conditions = Vec::new();
        for &(key, value) in expected {
            let mut held = None;
            self.0.get(key, &mut |witness, _, value| held = Some((witness.version(key, value), value.to_vec())))?;
            let version = match (held, value) {
                (Some((version, held)), Some(value)) if held == value => Some(version),
                (_, Some(_)) => Some(Version::new([u64::MAX; 2])),
                (_, None) => None,
            };
            conditions.push(Condition { key, required: version.into() });
        }
        let ops: Vec<_> = changes.iter().copied().map(plain_op_of).collect();
        match self.to_write().write_batch_if(&conditions, &ops) {
            Ok(()) => Ok(true),
            Err(Error::ConditionFailed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn batch_expiring(&self, changes: &[(&[u8], Lasting<'_>)]) -> Result<(), Failure> {
        Ok(self.to_write().write_batch(&changes.iter().copied().map(op_of).collect::<Vec<_>>())?)
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
        Ok(self.to_write().delete(key)?)
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        let mut is_equal = false;
        let mut decide = |held: Option<CurrentItem<'_>>| {
            is_equal = held.map(|held| held.value) == expected;
            match new {
                _ if !is_equal => Decision::Keep,
                Some(new) => Decision::Put(new.into()),
                None => Decision::Delete,
            }
        };
        self.to_write().update(key, &mut decide)?;
        Ok(is_equal)
    }

    fn clear(&self) -> Result<(), Failure> {
        Ok(self.to_write().clear()?)
    }

    fn compact(&self) -> Result<(), Failure> {
        if self.0.features().compaction {
            self.to_write().compact(&mut |_| ControlFlow::Continue(()))?;
        }
        Ok(())
    }

    /// Reaps expired keys first, because the engine counts them until then.
    fn len(&self) -> Result<u64, Failure> {
        while now().now_ms() > 0 && self.0.step()? == Progress::More {}
        Ok(self.0.len()?)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let mut cursor = Cursor::default();
        let mut show = |key: &[u8], value: &[u8], expiry| each(key, &with_expiry(value, expiry));
        while !cursor.is_done() {
            cursor = self.to_read().walk(cursor, &mut show)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        let (mut check, mut damage) = (Check::new(Depth::Deep), Vec::new());
        while !check.is_done() {
            self.to_read()
                .check(&mut check, &mut |found| damage.push(format!("{:#x}: {}", found.offset, found.what)))?;
        }
        Ok(damage)
    }
}

impl<K: Made> Subject for Crashed<K> {
    type Medium = K::Medium;

    fn format(on: K::Medium) -> Result<Crashed<K>, Failure> {
        K::format(on, now()).map(Crashed::of)
    }

    fn open(on: K::Medium) -> Result<Crashed<K>, Failure> {
        K::open(on, now()).map(Crashed::of)
    }

    fn open_to_read(on: K::Medium) -> Option<Result<Crashed<K>, Failure>> {
        Some(Self::open(on))
    }

    fn has_snapshots(&self) -> bool {
        self.0.features().snapshots
    }

    fn snapshot(&self) -> Result<u64, Failure> {
        let taken = self.snapshots()?.take_snapshot()?;
        let mut all = self.1.lock();
        all.push(taken);
        Ok(all.len() as u64 - 1)
    }

    fn release(&self, snapshot: u64) {
        self.0.snapshots().into_iter().for_each(|snapshots| snapshots.release_snapshot(self.taken(snapshot)));
    }

    fn get_at(&self, snapshot: u64, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut copy = None;
        let mut found = |_, expiry: Expiry, value: &[u8]| copy = Some(with_expiry(value, expiry));
        self.snapshots()?.get_at(self.taken(snapshot), key, &mut found)?;
        Ok(copy)
    }

    fn for_each_at(&self, snapshot: u64, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let (mut cursor, at) = (Cursor::default(), self.taken(snapshot));
        let mut each = |key: &[u8], value: &[u8], expiry| each(key, &with_expiry(value, expiry));
        while !cursor.is_done() {
            cursor = self.snapshots()?.walk_at(at, cursor, &mut each, &mut Err)?;
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
        let (Some(ordered), snapshots) = (self.0.ordered(), self.snapshots()?) else { return Ok(false) };
        ordered.catch_up(Early::Wait)?;
        let (mut cursor, at) = (ScanCursor::new(from, towards(direction)), self.taken(snapshot));
        let mut each = |key: &[u8], value: &[u8]| {
            let mut expires = Expiry::NEVER;
            let found = snapshots.get_at(at, key, &mut |_, expiry, _| expires = expiry);
            assert!(found.is_ok_and(|found| found), "a scan shows what a lookup does not find");
            each(key, &with_expiry(value, expires))
        };
        while ordered.scan_at(at, &mut cursor, &mut each)? {}
        Ok(true)
    }

    fn set_time(now_ms: u64) {
        CLOCK.with_borrow_mut(|clock| match now_ms.checked_sub(clock.now_ms()) {
            Some(ms) => clock.advance(Duration::from_millis(ms)),
            None => *clock = Clock::manual(now_ms),
        });
    }

    /// Waits for other scripts' threads to release retired memory: otherwise a close leaves no image.
    fn close(self) -> Result<(), Failure> {
        self.free_garbage();
        Ok(self.0.close()?)
    }

    fn settle(&self) -> Result<(), Failure> {
        while self.to_write().step()? == Progress::More {}
        self.free_garbage();
        K::background(&self.0).map_or(Ok(()), BackgroundWork::settle)
    }

    fn space(&self, contents: &Contents) -> Option<Space> {
        let needed_bytes = K::needed_bytes(&self.0, contents)?;
        Some(Space { live_bytes: self.0.stats().live_bytes, needed_bytes })
    }
}
