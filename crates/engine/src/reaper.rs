//! The reaper: deletes keys whose time has come, for engines that do not know when their keys expire.
//!
//! The reaper walks the keys, a part a step, from the first to the last, rests, and begins again if the walk met a value that
//! expires, or one was put since it began. A store of which no value expires is walked once after the opening, and not again.
//!
//! What is due is deleted by a write that looks again whether it still is: a key that was renewed stays.
//!
//! Where writers put expiring keys faster than the worker deletes keys, writers do steps of the walk (`pace`).
//!
//! Reads of a key tell of damage, and the reaper does not stop there: what lies behind would stay for ever. So a walk goes past what cannot be
//! read, and a key that cannot be deleted for damage keeps back none of the others.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::expectation::REST;
use crate::{Cursor, Error, Expectation, ExpiredHook, Expiry, OnItem, Pace, Progress};

/// What an engine shows the reaper of its keys: the next part of a walk, with what has expired and without what is damaged. Where this ends with
/// an error the same part comes again, so it never does for what lies there.
pub type WalkAll<'a> = dyn FnMut(&Cursor, &mut OnItem<'_>) -> Result<Cursor, Error> + 'a;

/// The reaper of a store.
#[derive(Default)]
pub struct Reaper {
    /// Where the walk under way goes on, if there is one.
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
    /// What is known of the keys that expire.
    pub fn expectation(&self) -> &Expectation {
        &self.expectation
    }

    /// So many keys that expire were put, and a walk that begins now meets them.
    pub fn expect(&self, count: u64) {
        self.expectation.expect();
        if self.pace.put(count) {
            self.expectation.hurry();
        }
    }

    /// True if writers should do a step ([`Pace`]).
    pub fn is_behind(&self) -> bool {
        self.pace.is_behind()
    }

    /// How many keys it has deleted.
    pub fn reaped_count(&self) -> u64 {
        self.reaped_count.load(Ordering::Relaxed)
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
