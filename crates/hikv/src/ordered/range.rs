//! Iterating over a range.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::mem;
use std::ops::ControlFlow;

use catalog::Space;
use engine::{Direction, Error, ScanCursor, Visit};

use super::bounds::Bounds;
use super::ordered_engine;
use super::{Item, ItemRef};
use crate::handles::Kind;
use crate::{Snapshot, Tree};

/// Bytes of items that a new range copies ahead: many ranges are opened for a few items.
const AHEAD_BYTES_MIN: usize = 1024;
/// The most bytes copied ahead. The amount grows with the number of items read; large values come one at a time.
const AHEAD_BYTES_MAX: usize = 64 * 1024;
const AHEAD_GROWTH: usize = 4;

/// An iterator over a range of items, from both ends. Between two calls it blocks neither writers nor the reuse of
/// space, except for items that its snapshot keeps. An error ends the iteration.
#[derive(Debug)]
pub struct Range {
    tree: Tree,
    /// The tree's keys when the range began. The range of a cleared tree ends.
    space: Space,
    /// The snapshot to read, or `None` for the present items.
    snapshot: Option<Snapshot>,
    /// The unread part of the range.
    rest: Bounds,
    /// Bytes to copy ahead the next time.
    ahead_bytes: usize,
    front: Side,
    back: Side,
}

/// Items that were read from one end and not returned yet.
#[derive(Debug, Default)]
struct Side {
    /// Keys and values, one after the other. It is reused for the next items.
    bytes: Vec<u8>,
    items: VecDeque<Place>,
    is_at_end: bool,
}

/// The place of an item in a side's bytes.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    key_bytes: usize,
    value_bytes: usize,
}

impl Side {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.items.push_back(Place { start: self.bytes.len(), key_bytes: key.len(), value_bytes: value.len() });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    fn item(&self, place: Place) -> ItemRef<'_> {
        self.bytes[place.start..][..place.key_bytes + place.value_bytes].split_at(place.key_bytes)
    }

    /// Ends the side: it has no items and reads none.
    fn end(&mut self) {
        self.items.clear();
        self.is_at_end = true;
    }
}

impl Range {
    pub(super) fn new(tree: &Tree, bounds: Bounds) -> Result<Range, Error> {
        Ok(Range::of(tree, tree.keyspace().space()?, bounds))
    }

    fn of(tree: &Tree, space: Space, bounds: Bounds) -> Range {
        let side = || Side { is_at_end: bounds.is_empty(), ..Side::default() };
        let (front, back) = (side(), side());
        let tree = tree.held_by(Kind::Range);
        Range { tree, space, snapshot: None, rest: bounds, ahead_bytes: AHEAD_BYTES_MIN, front, back }
    }

    /// Reads a snapshot. The ordered index must have every change that the snapshot sees.
    pub(crate) fn at_snapshot(snapshot: Snapshot, bounds: Bounds) -> Range {
        let space = snapshot.space();
        Range { snapshot: Some(snapshot.clone()), ..Range::of(snapshot.store(), space, bounds) }
    }

    fn read_page(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let engine = ordered_engine(self.tree.inner().engine()?)?;
        match &self.snapshot {
            Some(snapshot) => engine.scan_at(snapshot.moment(), cursor, each),
            None => engine.scan(cursor, each),
        }
    }

    /// Returns the next item without a copy of its own, or `None` at the end of the range. The item is valid until the
    /// next call.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("one", "eins"), ("two", "zwei")])?;
    /// let mut range = store.ordered()?.iter()?;
    /// let mut value_bytes = 0;
    /// while let Some((_key, value)) = range.next_ref()? {
    ///     value_bytes += value.len();
    /// }
    /// assert_eq!(value_bytes, 8);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Tree::get`](crate::Tree::get). An error ends the range.
    pub fn next_ref(&mut self) -> Result<Option<ItemRef<'_>>, Error> {
        self.next_from(Direction::Forward)
    }

    /// Like [`Range::next_ref`], from the end of the range.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("one", "eins"), ("two", "zwei")])?;
    /// let mut range = store.range("o"..)?;
    /// assert_eq!(range.next_back_ref()?, Some((&b"two"[..], &b"zwei"[..])));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Range::next_ref`].
    pub fn next_back_ref(&mut self) -> Result<Option<ItemRef<'_>>, Error> {
        self.next_from(Direction::Backward)
    }

    /// Returns an iterator over the remaining keys, which copies no value.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Store::open(dir.path())?;
    /// store.multi_put([("one", "eins"), ("two", "zwei")])?;
    /// let keys = store.ordered()?.iter()?.keys().collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(keys, [b"one", b"two"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn keys(self) -> Keys {
        Keys(self)
    }

    fn next_from(&mut self, direction: Direction) -> Result<Option<ItemRef<'_>>, Error> {
        if self.side(direction).items.is_empty()
            && let Err(error) = self.read_on(direction)
        {
            self.front.end();
            self.back.end();
            return Err(error);
        }
        if let Some(place) = self.side(direction).items.pop_front() {
            return Ok(Some(self.side(direction).item(place)));
        }
        // The last items may have been read from the other end.
        let other = self.side(opposite(direction));
        Ok(other.items.pop_back().map(|place| other.item(place)))
    }

    /// Returns the space of the range's keys, or `None` if the tree was cleared after the range began.
    fn space_now(&self) -> Result<Option<Space>, Error> {
        if self.snapshot.is_some() {
            return Ok(Some(self.space));
        }
        let now = self.tree.keyspace().space()?;
        // A store may get its catalog while a range reads nameless keys: they are then stored under other names.
        let is_same = now == self.space || (self.space, now) == (Space::Whole, Space::Nameless);
        Ok(is_same.then_some(now))
    }

    fn side(&mut self, direction: Direction) -> &mut Side {
        match direction {
            Direction::Forward => &mut self.front,
            Direction::Backward => &mut self.back,
        }
    }

    /// Reads some more items from one end.
    fn read_on(&mut self, direction: Direction) -> Result<(), Error> {
        if self.front.is_at_end || self.back.is_at_end {
            return Ok(());
        }
        let Some(space) = self.space_now()? else {
            self.side(direction).is_at_end = true;
            return Ok(());
        };
        let mut side = mem::take(self.side(direction));
        side.bytes.clear();
        side.is_at_end = true;
        let mut ranges = self.rest.stored(space);
        if direction == Direction::Backward {
            ranges.reverse();
        }
        let ahead_bytes = self.ahead_bytes;
        for stored in &ranges {
            let mut cursor = ScanCursor::new(stored.start(direction), direction);
            let (mut is_outside, mut goes_on) = (false, true);
            while goes_on && side.items.is_empty() && !is_outside {
                goes_on = self.read_page(&mut cursor, &mut |key, value| {
                    let Some(key) = space.key_of(key).filter(|_| stored.contains(key)) else {
                        is_outside = true;
                        return ControlFlow::Break(());
                    };
                    side.push(key, value);
                    if side.bytes.len() < ahead_bytes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                })?;
            }
            if !side.items.is_empty() {
                let is_last = std::ptr::eq(stored, ranges.last().unwrap_or(stored));
                side.is_at_end = is_last && (is_outside || !goes_on && side.bytes.len() < ahead_bytes);
                break;
            }
        }
        if let Some(&last) = side.items.back() {
            let (last, _) = side.item(last);
            match direction {
                Direction::Forward => self.rest.raise(last),
                Direction::Backward => self.rest.lower(last),
            }
        }
        *self.side(direction) = side;
        self.ahead_bytes = (ahead_bytes * AHEAD_GROWTH).min(AHEAD_BYTES_MAX);
        Ok(())
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Backward,
        Direction::Backward => Direction::Forward,
    }
}

impl Iterator for Range {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Result<Item, Error>> {
        self.next_ref().map(|item| item.map(owned)).transpose()
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Result<Item, Error>> {
        self.next_back_ref().map(|item| item.map(owned)).transpose()
    }
}

impl FusedIterator for Range {}

/// An iterator over the keys of a range, from both ends: [`Range::keys`].
#[derive(Debug)]
pub struct Keys(Range);

impl Iterator for Keys {
    type Item = Result<Vec<u8>, Error>;

    fn next(&mut self) -> Option<Result<Vec<u8>, Error>> {
        self.0.next_ref().map(|item| item.map(|(key, _)| key.to_vec())).transpose()
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Result<Vec<u8>, Error>> {
        self.0.next_back_ref().map(|item| item.map(|(key, _)| key.to_vec())).transpose()
    }
}

impl FusedIterator for Keys {}

fn owned((key, value): ItemRef<'_>) -> Item {
    (key.to_vec(), value.to_vec())
}
