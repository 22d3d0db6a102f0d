//! The reaper: deletes keys whose time has come, for engines that do not know when their keys expire.
//!
//! The reaper walks the keys, a part a step, from the first to the last, rests, and begins again if the walk met a value that
//! expires, or one was put since it began. A store of which no value expires is walked once after the opening, and not again.
//!
//! What is due is deleted by a write that looks again whether it still is: a key that was renewed stays.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::{Cursor, Error, ExpiredHook, Expiry, Progress, Show};

/// What an engine shows the reaper of its keys: the next part of a walk, with what has expired.
pub type WalkAll<'a> = dyn FnMut(&Cursor, &mut Show<'_>) -> Result<Cursor, Error> + 'a;

/// The reaper of a store.
#[derive(Default)]
pub struct Reaper {
    /// Where the walk under way goes on.
    cursor: Mutex<Cursor>,
    /// Whether a value that expires was met or put since the walk under way began.
    is_expected: AtomicBool,
    reaped_count: AtomicU64,
    hook: ExpiredHook,
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reaper").field("reaped_count", &self.reaped_count).finish_non_exhaustive()
    }
}

impl Reaper {
    /// Between two walks.
    pub const REST: Duration = Duration::from_secs(1);

    /// A value that expires was put, and a walk that begins now meets it.
    pub fn expect(&self) {
        if !self.is_expected.load(Ordering::Relaxed) {
            self.is_expected.store(true, Ordering::Release);
        }
    }

    /// How many keys it has deleted.
    pub fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }

    /// Whether there is something to walk for.
    pub fn is_awake(&self) -> bool {
        self.is_expected.load(Ordering::Acquire) || !self.cursor.lock().is_done()
    }

    /// What is told of the keys that are taken away: by the reaper's deletes, and by other writes to a key that has expired.
    pub fn hook(&self) -> &ExpiredHook {
        &self.hook
    }

    /// Walks a part; `delete` deletes a key that is still due, tells the hook of it, and says whether it was.
    ///
    /// # Errors
    /// Those of `walk` and `delete`.
    pub fn reap(
        &self,
        is_past: &dyn Fn(Expiry) -> bool,
        walk: &mut WalkAll<'_>,
        delete: &mut dyn FnMut(&[u8]) -> Result<bool, Error>,
    ) -> Result<Progress, Error> {
        let mut due = Vec::new();
        let mut cursor = self.cursor.lock();
        if cursor.is_done() {
            if !self.is_expected.swap(false, Ordering::AcqRel) {
                return Ok(Progress::Idle);
            }
            *cursor = Cursor::Start;
        }
        *cursor = walk(&cursor, &mut |key, _, expiry| {
            if !expiry.is_never() {
                self.expect();
            }
            if is_past(expiry) {
                due.push(key.to_vec());
            }
        })?;
        let is_at_end = cursor.is_done();
        drop(cursor);
        for key in due {
            if delete(&key)? {
                self.reaped_count.fetch_add(1, Ordering::Relaxed);
            }
        }
        let is_to_rest = is_at_end && self.is_expected.load(Ordering::Acquire);
        Ok(if is_to_rest {
            Progress::Rest(Reaper::REST)
        } else if is_at_end {
            Progress::Idle
        } else {
            Progress::More
        })
    }
}
