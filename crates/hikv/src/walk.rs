//! All items, in no order, and walks whose cursors are numbers.
//!
//! An engine whose walks go by keys has the cursors kept here, the latest of them, by a number each. Numbers begin anywhere, so
//! that one of an earlier opening is found out.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use engine::Cursor;
use uuid::Uuid;

use crate::{Error, Store};

/// The latest cursors that are kept.
const KEPT_COUNT_MAX: usize = 4096;

/// Cursors of walks by keys.
pub(crate) struct Walks(Mutex<Kept>);

struct Kept {
    /// The number of the first one.
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
    /// A number for the cursor.
    fn number(&self, cursor: Cursor) -> u64 {
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

    /// The cursor of a number that was given.
    fn cursor(&self, number: u64) -> Option<Cursor> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.cursors.get(usize::try_from(number.checked_sub(kept.first)?).ok()?).cloned()
    }
}

impl Store {
    /// Shows every item to `each`, in no order, until it says to stop. Not a snapshot: what is written meanwhile may be
    /// shown or not.
    ///
    /// # Errors
    /// See [`Error`]; a damaged item ends the walk.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>) -> Result<(), Error> {
        let (mut cursor, mut flow) = (Cursor::default(), ControlFlow::Continue(()));
        while !cursor.is_done() && flow.is_continue() {
            cursor = self.engine()?.walk(cursor, &mut |key, value, _| {
                if flow.is_continue() {
                    flow = each(key, value);
                }
            })?;
        }
        Ok(())
    }

    /// Shows the items of the next part of the store, up to some thousand, to `each`, in no order, and says where to go on.
    /// 0 is the beginning, and the end. Such a number stays good while the store grows, and when it is opened again: each
    /// key that is there from the first step to the last is shown exactly once. Any other number is harmless.
    ///
    /// An engine whose walks are not numbered ([`crate::Features::numbered_walk`]) keeps the latest 4,096 numbers, until the store
    /// is closed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// # for number in 0..100u8 { store.put([number], "value")?; }
    /// let (mut at, mut count) = (0, 0);
    /// loop {
    ///     at = store.walk(at, |_key, _value| count += 1)?;
    ///     if at == 0 {
    ///         break;
    ///     }
    /// }
    /// assert_eq!(count, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Error`]; [`Error::CursorForgotten`].
    pub fn walk(&self, from: u64, mut each: impl FnMut(&[u8], &[u8])) -> Result<u64, Error> {
        let engine = self.engine()?;
        let cursor = match from {
            0 => Cursor::Start,
            number if engine.features().numbered_walk => Cursor::Number(number),
            number => self.walks().cursor(number).ok_or(Error::CursorForgotten { number })?,
        };
        let next = engine.walk(cursor, &mut |key, value, _| each(key, value))?;
        Ok(self.walks().number(next))
    }

    /// Where a walk begins that shows any part of the store first, by chance (`seed`): as [`Store::walk`] takes it.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn random_cursor(&self, seed: u64) -> Result<u64, Error> {
        Ok(self.walks().number(self.engine()?.random_cursor(seed)))
    }
}
