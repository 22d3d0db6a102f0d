//! Walks over all items in no order, with numbers as cursors.
//!
//! For engines whose cursors are keys, this module keeps the latest cursors and numbers them. The first number is
//! random, so that a number of an earlier opening is recognised.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use engine::Cursor;
use uuid::Uuid;

/// The number of cursors that are kept.
const KEPT_COUNT_MAX: usize = 4096;

/// Cursors that are keys.
pub(crate) struct Walks(Mutex<Kept>);

struct Kept {
    /// The number of the first cursor.
    first: u64,
    cursors: VecDeque<Cursor>,
}

impl Default for Walks {
    fn default() -> Walks {
        let first = (Uuid::new_v4().as_u64_pair().0 >> 16).max(1);
        Walks(Mutex::new(Kept { first, cursors: VecDeque::new() }))
    }
}

impl Walks {
    /// Returns a number for the cursor.
    pub(crate) fn number(&self, cursor: Cursor) -> u64 {
        match cursor {
            Cursor::Start | Cursor::End => 0,
            Cursor::Number(number) => number,
            Cursor::After(_) => {
                let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.cursors.len() == KEPT_COUNT_MAX {
                    kept.cursors.pop_front();
                    kept.first += 1;
                }
                kept.cursors.push_back(cursor);
                kept.first + kept.cursors.len() as u64 - 1
            }
        }
    }

    /// Returns the cursor of a number, if it is kept.
    pub(crate) fn cursor(&self, number: u64) -> Option<Cursor> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.cursors.get(usize::try_from(number.checked_sub(kept.first)?).ok()?).cloned()
    }
}
