//! Iterating over a range.

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::ops::ControlFlow;

use engine::{Direction, Error, ScanCursor, Visit};

use super::Item;
use super::bounds::Bounds;
use super::ordered_engine;
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
#[derive(Debug)]
struct Side {
    items: VecDeque<Item>,
    is_at_end: bool,
}

impl Range {
    pub(super) fn new(tree: &Tree, bounds: Bounds) -> Range {
        let side = || Side { items: VecDeque::new(), is_at_end: bounds.is_empty() };
        let (front, back) = (side(), side());
        let tree = tree.held_by(Kind::Range);
        Range { tree, snapshot: None, rest: bounds, ahead_bytes: AHEAD_BYTES_MIN, front, back }
    }

    /// Reads a snapshot. The ordered index must have every change that the snapshot sees.
    pub(crate) fn at_snapshot(snapshot: Snapshot, bounds: Bounds) -> Range {
        Range { snapshot: Some(snapshot.clone()), ..Range::new(snapshot.store(), bounds) }
    }

    fn read_page(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let engine = ordered_engine(self.tree.inner().engine()?)?;
        match &self.snapshot {
            Some(snapshot) => engine.scan_at(snapshot.moment(), cursor, each),
            None => engine.scan(cursor, each),
        }
    }

    fn next_from(&mut self, direction: Direction) -> Option<Result<Item, Error>> {
        if self.side(direction).items.is_empty()
            && let Err(error) = self.read_on(direction)
        {
            (self.front, self.back) = (Side::at_end(), Side::at_end());
            return Some(Err(error));
        }
        // The last items may have been read from the other end.
        let item = self.side(direction).items.pop_front();
        item.or_else(|| self.side(opposite(direction)).items.pop_back()).map(Ok)
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
        let from = if direction == Direction::Forward { self.rest.low() } else { self.rest.high() };
        let mut cursor = ScanCursor::new(from, direction);
        let ahead_bytes = self.ahead_bytes;
        let (mut items, mut len_bytes, mut is_outside) = (VecDeque::new(), 0, false);
        let mut goes_on = true;
        while goes_on && items.is_empty() && !is_outside {
            goes_on = self.read_page(&mut cursor, &mut |key, value| {
                is_outside = !self.rest.contains(key);
                if is_outside {
                    return ControlFlow::Break(());
                }
                len_bytes += key.len() + value.len();
                items.push_back((key.to_vec(), value.to_vec()));
                if len_bytes < ahead_bytes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        let is_at_end = is_outside || !goes_on && len_bytes < ahead_bytes;
        if let Some((last, _)) = items.back() {
            match direction {
                Direction::Forward => self.rest.raise(last),
                Direction::Backward => self.rest.lower(last),
            }
        }
        *self.side(direction) = Side { items, is_at_end };
        self.ahead_bytes = (ahead_bytes * AHEAD_GROWTH).min(AHEAD_BYTES_MAX);
        Ok(())
    }
}

impl Side {
    fn at_end() -> Side {
        Side { items: VecDeque::new(), is_at_end: true }
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
        self.next_from(Direction::Forward)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Result<Item, Error>> {
        self.next_from(Direction::Backward)
    }
}

impl FusedIterator for Range {}
