//! Walks over all items in no order, with numbers as cursors.
//!
//! For engines whose cursors are keys, this module keeps the latest cursors and numbers them. The first number is
//! random, so that a number of an earlier opening is recognised.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use engine::Cursor;
use uuid::Uuid;

use crate::{Error, Tree};

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

/// Walks over all items by numbers, from [`Tree::cursors`](crate::Tree::cursors).
#[derive(Clone, Copy)]
pub struct Cursors<'s> {
    tree: &'s Tree,
}

impl<'s> Cursors<'s> {
    pub(crate) fn of(tree: &'s Tree) -> Cursors<'s> {
        Cursors { tree }
    }

    /// Calls `each` with the tree's items in the next part of the store, at most about a thousand, in no order, and
    /// returns the next cursor. 0 means both the beginning and the end.
    ///
    /// A cursor stays valid while the store grows and after it is opened again. A key that exists during the entire
    /// walk is visited exactly once. Any other number is harmless. Engines without numbered walks
    /// ([`crate::Features::numbered_walk`]) keep the latest 4,096 cursors until the store is closed.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// # for number in 0..100u8 { store.put([number], "value")?; }
    /// let (mut at, mut count) = (0, 0);
    /// loop {
    ///     at = store.cursors().walk(at, |_key, _value| count += 1)?;
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
    /// [`Error::CursorForgotten`] if the engine no longer keeps the cursor. [`Error::Corrupt`] at a damaged item.
    pub fn walk(&self, from: u64, mut each: impl FnMut(&[u8], &[u8])) -> Result<u64, Error> {
        let (engine, space) = (self.tree.inner().engine()?, self.tree.keyspace().space()?);
        let cursor = match from {
            0 => Cursor::Start,
            number if engine.features().numbered_walk => Cursor::Number(number),
            number => self.tree.inner().walks.cursor(number).ok_or(Error::CursorForgotten { number })?,
        };
        let next = engine.walk(cursor, &mut |stored, value, _| {
            if let Some(key) = space.key_of(stored) {
                each(key, value);
            }
        })?;
        Ok(self.tree.inner().walks.number(next))
    }

    /// Returns a cursor for [`Cursors::walk`] at a random part of the store, chosen by `seed`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.put("key", "value")?;
    /// let somewhere = store.cursors().random(7)?;
    /// store.cursors().walk(somewhere, |key, _value| println!("{}", key.escape_ascii()))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn random(&self, seed: u64) -> Result<u64, Error> {
        Ok(self.tree.inner().walks.number(self.tree.inner().engine()?.random_cursor(seed)))
    }
}
