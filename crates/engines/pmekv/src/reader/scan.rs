//! Scans and walks read one leaf of the tree at a time, pinned while they visit the leaf. While a batch is changing the
//! tree, its table is laid over the leaf (`writer/batch.rs`).

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use engine::{Cursor, Error, OnItem, ScanCursor, Visit};
use index::Position;
use index::bplus_tree::{Direction, Page};
use pmem::{Dram, Medium};

use super::{Reader, Table};
use crate::record::Records;

/// The keys of a leaf.
#[derive(Default)]
struct Leaf {
    page: Page,
    /// The records of the page's keys, in the order of the scan.
    positions: Vec<Position>,
}

impl Leaf {
    /// Returns true if the next leaf begins behind this key.
    fn ends_behind(&self, key: &[u8], direction: Direction) -> bool {
        let reversed = match direction {
            Direction::Forward => Direction::Backward,
            Direction::Backward => Direction::Forward,
        };
        let end = match self.page.next() {
            Some(Bound::Included(end)) => Bound::Excluded(end),
            Some(Bound::Excluded(end)) => Bound::Included(end),
            _ => Bound::Unbounded,
        };
        is_next(key, end, reversed)
    }

    /// Sets the positions to those of the page, with the table's changes.
    #[cold]
    fn lay_over<M: Medium>(
        &mut self,
        records: &Records<'_, M>,
        table: &Table,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<(), Error> {
        let mut held: BTreeMap<&[u8], Option<Position>> = BTreeMap::new();
        for &position in self.page.positions() {
            held.insert(records.read(position)?.key, Some(position));
        }
        held.extend(part_of(table, from, &self.page, direction).map(|(key, position)| (key.as_slice(), *position)));
        self.positions.extend(held.into_values().flatten());
        if direction == Direction::Backward {
            self.positions.reverse();
        }
        Ok(())
    }
}

/// The state that a scan keeps from one step to the next.
#[derive(Default)]
struct Scan(Leaf);

/// Returns the keys of a table from `from` to the end of the page, in key order.
fn part_of<'t>(
    table: &'t Table,
    from: Bound<&[u8]>,
    page: &Page,
    direction: Direction,
) -> impl Iterator<Item = (&'t Vec<u8>, &'t Option<Position>)> {
    let range = match (direction, page.next()) {
        (Direction::Forward, Some(Bound::Included(end) | Bound::Excluded(end))) => (from, Bound::Excluded(end)),
        (Direction::Forward, _) => (from, Bound::Unbounded),
        (Direction::Backward, Some(Bound::Included(end) | Bound::Excluded(end))) => (Bound::Included(end), from),
        (Direction::Backward, _) => (Bound::Unbounded, from),
    };
    table.range::<[u8], _>(range)
}

/// Returns true if a key may follow `before` in a scan, which itself counts as the bound of the first key.
fn is_next(key: &[u8], before: Bound<&[u8]>, direction: Direction) -> bool {
    match (direction, before) {
        (_, Bound::Unbounded) => true,
        (Direction::Forward, Bound::Included(before)) => before <= key,
        (Direction::Forward, Bound::Excluded(before)) => before < key,
        (Direction::Backward, Bound::Included(before)) => key <= before,
        (Direction::Backward, Bound::Excluded(before)) => key < before,
    }
}

/// Returns an error for a record that is intact, but not the one that the tree names: its key would make a scan repeat
/// or skip other keys.
#[cold]
fn out_of_order(position: Position) -> Error {
    Error::Corrupt { offset: position.offset().0, what: "a record's key is out of order" }
}

impl<M: Medium, D: Dram> Reader<M, D> {
    /// Visits the items of one leaf like [`engine::OrderedEngine::scan`].
    pub(crate) fn scan(&self, cursor: &mut ScanCursor, each: &mut Visit<'_>) -> Result<bool, Error> {
        let (from, direction, Scan(leaf)) = cursor.parts::<Scan>();
        let direction = match direction {
            engine::Direction::Forward => Direction::Forward,
            engine::Direction::Backward => Direction::Backward,
        };
        let _pin = epoch::pin();
        self.read_leaf(from, direction, leaf)?;
        self.tickets.met_many(self.region().medium())?;
        let shown = self.visit(leaf, (from, direction), each)?;
        if let ControlFlow::Break(last) = shown {
            cursor.continue_after(last);
            return Ok(false);
        }
        if cursor.continue_at_state::<Scan>(|Scan(leaf)| leaf.page.next()) {
            return Ok(true);
        }
        shown.continue_value().flatten().into_iter().for_each(|key| cursor.continue_after(key));
        Ok(false)
    }

    /// Reads a leaf, including the changes of a batch that is changing the tree. The caller is pinned.
    fn read_leaf(&self, from: Bound<&[u8]>, direction: Direction, leaf: &mut Leaf) -> Result<(), Error> {
        loop {
            let (turn, table) = self.shown.now();
            self.tree().read_page(&self.records(), from, direction, &mut leaf.page)?;
            if self.shown.turn() != turn {
                continue;
            }
            leaf.positions.clear();
            match table {
                None => leaf.positions.extend_from_slice(leaf.page.positions()),
                Some(table) => leaf.lay_over(&self.records(), &table, from, direction)?,
            }
            return Ok(());
        }
    }

    /// Calls `each` with the items that have not expired, until it breaks. Returns the key at which it broke, or the
    /// last key, if there is one. The caller was pinned before it found the records.
    fn visit(
        &self,
        leaf: &Leaf,
        (from, direction): (Bound<&[u8]>, Direction),
        each: &mut Visit<'_>,
    ) -> Result<ControlFlow<&[u8], Option<&[u8]>>, Error> {
        let (mut last, records) = (None, self.records());
        for position in records.in_time(&leaf.positions, Records::request_whole) {
            let (key, value) = self.contents.pair(position)?;
            if !is_next(key, last.map_or(from, Bound::Excluded), direction) {
                return Err(out_of_order(position));
            }
            last = Some(key);
            let Some(value) = value else { continue };
            if each(key, value) == ControlFlow::Break(()) {
                let is_of_leaf = leaf.ends_behind(key, direction);
                return if is_of_leaf { Ok(ControlFlow::Break(key)) } else { Err(out_of_order(position)) };
            }
        }
        Ok(ControlFlow::Continue(last))
    }

    /// Visits the items of one leaf like [`engine::Walks::walk`], also those that have expired.
    pub(crate) fn walk(&self, cursor: &Cursor, each: &mut OnItem<'_>) -> Result<Cursor, Error> {
        let mut from = match cursor {
            Cursor::Start => Bound::Unbounded,
            Cursor::After(key) => Bound::Excluded(key.clone()),
            Cursor::Number(_) | Cursor::End => return Ok(Cursor::End),
        };
        let mut leaf = Leaf::default();
        loop {
            let _pin = epoch::pin();
            let start = from.as_ref().map(Vec::as_slice);
            self.read_leaf(start, Direction::Forward, &mut leaf)?;
            self.tickets.met_many(self.region().medium())?;
            let (mut last, records) = (None, self.records());
            for position in records.in_time(&leaf.positions, Records::request_whole) {
                let item = records.read(position)?;
                self.contents.verify_value(position, &item)?;
                let is_next = is_next(item.key, last.map_or(start, Bound::Excluded), Direction::Forward);
                if !is_next || !leaf.ends_behind(item.key, Direction::Forward) {
                    return Err(out_of_order(position));
                }
                each(item.key, item.value, item.expiry);
                last = Some(item.key);
            }
            match (last, leaf.page.next()) {
                (_, None) => return Ok(Cursor::End),
                (Some(last), _) => return Ok(Cursor::After(last.to_vec())),
                (None, Some(next)) => from = next.map(<[u8]>::to_vec),
            }
        }
    }
}
