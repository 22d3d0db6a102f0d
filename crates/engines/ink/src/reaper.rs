//! The reaper: deletes keys whose time has come.
//!
//! The tree does not know when its keys expire, so the reaper walks it, a leaf a step. It walks from the first to the last, rests,
//! and begins again if it met a value that expires, or one was put since it began. A store of which no value expires is walked
//! once after it was opened, and not again.
//!
//! What is due is deleted by a write that looks again, under the leaf's lock, whether it still is: a key that was renewed stays.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use engine::{Cursor, Error, OnExpired, Progress};
use parking_lot::{Mutex, RwLock};
use pbtree::Change;
use pmem::{Dram, Medium};

use crate::Ink;
use crate::copy::expiry_of;

thread_local! {
    /// Whether this thread is telling somebody of a key.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Between two walks.
pub(crate) const REST: Duration = Duration::from_secs(1);

/// What the reaper knows.
#[derive(Default)]
pub(crate) struct Reaper {
    /// Where the walk under way goes on.
    cursor: Mutex<Cursor>,
    /// Whether a value that expires was met or put since the walk under way began.
    is_expected: AtomicBool,
    reaped_count: AtomicU64,
    told: Mutex<Option<Arc<Told>>>,
}

impl Reaper {
    /// A value that expires is being put.
    pub(crate) fn expect(&self) {
        if !self.is_expected.load(Ordering::Relaxed) {
            self.is_expected.store(true, Ordering::Release);
        }
    }

    pub(crate) fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }

    /// Whether there is something to walk for.
    pub(crate) fn is_awake(&self) -> bool {
        self.is_expected.load(Ordering::Acquire) || !self.cursor.lock().is_done()
    }

    /// Who is told of keys from now on. Who calls from inside of being told does not wait for itself.
    pub(crate) fn tell(&self, told: Option<Arc<OnExpired>>) {
        let before = std::mem::replace(&mut *self.told.lock(), told.map(Told::new));
        if let Some(before) = before.filter(|_| !IS_TELLING.get()) {
            drop(before.telling.write());
        }
    }

    /// Tells somebody of a key, if anybody wants to know.
    pub(crate) fn say(&self, key: &[u8]) {
        let told = self.told.lock().clone();
        told.iter().for_each(|told| told.say(key));
    }
}

/// Somebody who is told.
struct Told {
    callback: Arc<OnExpired>,
    /// Read while it is told.
    telling: RwLock<()>,
}

impl Told {
    fn new(callback: Arc<OnExpired>) -> Arc<Told> {
        Arc::new(Told { callback, telling: RwLock::new(()) })
    }

    fn say(&self, key: &[u8]) {
        let _telling = self.telling.read_recursive();
        let was_telling = IS_TELLING.replace(true);
        let _ = catch_unwind(AssertUnwindSafe(|| (self.callback)(key)));
        IS_TELLING.set(was_telling);
    }
}

impl<M: Medium, D: Dram> Ink<M, D> {
    /// Walks a leaf.
    pub(crate) fn reap(&self) -> Result<Progress, Error> {
        let mut due = Vec::new();
        let mut cursor = self.reaper.cursor.lock();
        if cursor.is_done() {
            if !self.reaper.is_expected.swap(false, Ordering::AcqRel) {
                return Ok(Progress::Idle);
            }
            *cursor = Cursor::Start;
        }
        *cursor = self.walk_all(&cursor, &mut |key, _, expiry| {
            if !expiry.is_never() {
                self.reaper.expect();
            }
            if self.is_past(expiry) {
                due.push(key.to_vec());
            }
        })?;
        let is_at_end = cursor.is_done();
        drop(cursor);
        due.iter().try_for_each(|key| self.reap_key(key))?;
        let is_to_rest = is_at_end && self.reaper.is_expected.load(Ordering::Acquire);
        Ok(if is_to_rest {
            Progress::Rest(REST)
        } else if is_at_end {
            Progress::Idle
        } else {
            Progress::More
        })
    }

    fn reap_key(&self, key: &[u8]) -> Result<(), Error> {
        let is_due = &mut |held: Option<&pbtree::Value<'_>>| held.is_some_and(|value| self.is_past(expiry_of(value)));
        if self.write(key, Change::Delete, is_due)?.is_done {
            self.reaper.reaped_count.fetch_add(1, Ordering::Relaxed);
            self.reaper.say(key);
        }
        Ok(())
    }
}
