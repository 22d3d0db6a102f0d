//! The reaper deletes expired keys, for engines that do not record when their keys expire.
//!
//! The reaper walks the keys from the first to the last, one part per step, and rests. It begins again if the walk met
//! a value that expires, or if one was put since the walk began. A store without expiring values is walked once after
//! an open, and not again.
//!
//! The delete checks again whether the key has expired: a key that was renewed stays.
//!
//! If writers put expiring keys faster than the worker deletes keys, writers do steps of the walk (`pace`).
//!
//! Damage does not stop the reaper, or the expired keys behind it would stay forever; reads report the damage. So a
//! walk skips unreadable items, and a key that cannot be deleted because of damage does not delay other keys.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::expectation::REST;
use crate::{Cursor, Error, Expectation, ExpiredHook, Expiry, OnItem, Pace, Progress};

/// Returns the next part of a walk over an engine's keys: with expired keys, without damaged ones. After an error the
/// reaper requests the same part again, so damage must not be an error.
pub type WalkAll<'a> = dyn FnMut(&Cursor, &mut OnItem<'_>) -> Result<Cursor, Error> + 'a;

/// The reaper of a store.
#[derive(Default)]
pub struct Reaper {
    /// The position of the walk under way, if there is one.
    cursor: Mutex<Option<Cursor>>,
    expectation: Expectation,
    pace: Pace,
    reaped_count: AtomicU64,
    hook: ExpiredHook,
}

impl fmt::Debug for Reaper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reaper").field("reaped_count", &self.reaped_count).finish_non_exhaustive()
    }
}

impl Reaper {
    /// Returns the state of expiring keys.
    pub fn expectation(&self) -> &Expectation {
        &self.expectation
    }

    /// Records puts of `count` expiring keys; a walk that begins now meets them.
    pub fn expect(&self, count: u64) {
        self.expectation.expect();
        if self.pace.put(count) {
            self.expectation.hurry();
        }
    }

    /// Returns true if writers should do a step ([`Pace`]).
    pub fn is_behind(&self) -> bool {
        self.pace.is_behind()
    }

    /// Returns the number of keys that the reaper has deleted.
    pub fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
    }

    /// Returns the callback for expired keys. The reaper's deletes call it, and so do other writes to an expired key.
    pub fn hook(&self) -> &ExpiredHook {
        &self.hook
    }

    /// Walks one part. `delete` deletes a key that has still expired, notifies the hook, and returns true if it did.
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
        let mut place = self.cursor.lock();
        let cursor = match place.take() {
            Some(cursor) => cursor,
            None if self.expectation.begin() => {
                self.pace.begin();
                Cursor::Start
            }
            None => return Ok(Progress::Idle),
        };
        let mut visited_count = 0;
        let walked = walk(&cursor, &mut |key, _, expiry| {
            visited_count += 1;
            if !expiry.is_never() {
                self.expectation.expect();
            }
            if is_past(expiry) {
                due.push(key.to_vec());
            }
        });
        let next = match walked {
            Ok(next) => next,
            Err(error) => {
                *place = Some(cursor);
                return Err(error);
            }
        };
        let is_at_end = next.is_done();
        *place = (!is_at_end).then_some(next);
        let is_to_rest = is_at_end && self.expectation.end();
        drop(place);
        self.pace.advance(visited_count, due.len() as u64);
        if is_at_end {
            self.pace.end();
        }
        for key in due {
            match delete(&key) {
                Ok(is_deleted) => _ = self.reaped_count.fetch_add(is_deleted.into(), Ordering::Relaxed),
                Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(if is_to_rest {
            Progress::Rest(REST)
        } else if is_at_end {
            Progress::Idle
        } else {
            Progress::More
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_expired_key_delays_no_other() {
        let reaper = Reaper::default();
        let mut walk = |_: &Cursor, each: &mut OnItem<'_>| {
            [&b"one"[..], b"damaged", b"other"].iter().for_each(|key| each(key, b"", Expiry::at_ms(1)));
            Ok(Cursor::End)
        };
        let mut delete = |key: &[u8]| match key {
            b"damaged" => Err(Error::Corrupt { offset: 64, what: "a key's neighbour is damaged" }),
            _ => Ok(true),
        };
        let progress = reaper.reap(&|_| true, &mut walk, &mut delete).unwrap();
        assert_eq!((progress, reaper.reaped_count()), (Progress::Rest(REST), 2));
    }
}
