//! Iterators over all items, in no order.

use std::iter::FusedIterator;
use std::{mem, vec};

use engine::Cursor;

use super::Tree;
use crate::Error;
use crate::ordered::Item;

/// Values of one part of the store that are copied together. Further values of the part are read one by one.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// An iterator over all items of a store, in no order: [`Tree::iter`]. Between two calls it blocks neither writers nor
/// the reuse of space. An error ends the iteration.
#[derive(Debug)]
pub struct Iter {
    walk: Walk,
}

/// An iterator over all keys of a store, in no order: [`Tree::keys`].
#[derive(Debug)]
pub struct IterKeys {
    walk: Walk,
}

/// A key, and its value if it was copied.
type Copied = (Vec<u8>, Option<Vec<u8>>);

/// The walk, and the keys of its last part that were not returned yet.
#[derive(Debug)]
struct Walk {
    tree: Tree,
    next: Cursor,
    part: vec::IntoIter<Copied>,
}

impl Walk {
    fn new(tree: Tree) -> Walk {
        Walk { tree, next: Cursor::Start, part: Vec::new().into_iter() }
    }

    /// Returns the next key, and its value if that was copied. Copies at most `ahead_bytes_max` of a part's values.
    fn next(&mut self, ahead_bytes_max: usize) -> Option<Result<Copied, Error>> {
        loop {
            if let Some(item) = self.part.next() {
                return Some(Ok(item));
            }
            match mem::replace(&mut self.next, Cursor::End) {
                Cursor::End => return None,
                cursor => {
                    if let Err(error) = self.read_part(cursor, ahead_bytes_max) {
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    fn read_part(&mut self, cursor: Cursor, ahead_bytes_max: usize) -> Result<(), Error> {
        let (space, mut part, mut ahead_bytes) = (self.tree.keyspace().space()?, Vec::new(), 0);
        self.next = self.tree.inner().engine()?.walk(cursor, &mut |stored, value, _| {
            let Some(key) = space.key_of(stored) else { return };
            ahead_bytes += value.len();
            part.push((key.to_vec(), (ahead_bytes <= ahead_bytes_max).then(|| value.to_vec())));
        })?;
        self.part = part.into_iter();
        Ok(())
    }

    fn end(&mut self) {
        self.next = Cursor::End;
        self.part = Vec::new().into_iter();
    }
}

impl Iter {
    pub(super) fn new(tree: Tree) -> Iter {
        Iter { walk: Walk::new(tree) }
    }
}

impl Iterator for Iter {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Result<Item, Error>> {
        loop {
            let (key, value) = match self.walk.next(AHEAD_BYTES_MAX)? {
                Ok((key, Some(value))) => return Some(Ok((key, value))),
                Ok((key, None)) => {
                    let value = self.walk.tree.get(&key);
                    (key, value)
                }
                Err(error) => return Some(Err(error)),
            };
            match value {
                Ok(Some(value)) => return Some(Ok((key, value.into_vec()))),
                // It was deleted since its part was read.
                Ok(None) => {}
                Err(error) => {
                    self.walk.end();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl FusedIterator for Iter {}

impl IterKeys {
    pub(super) fn new(tree: Tree) -> IterKeys {
        IterKeys { walk: Walk::new(tree) }
    }
}

impl Iterator for IterKeys {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Result<Vec<u8>, Error>> {
        Some(self.walk.next(0)?.map(|(key, _)| key))
    }
}

impl FusedIterator for IterKeys {}
