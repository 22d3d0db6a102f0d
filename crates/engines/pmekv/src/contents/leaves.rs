//! Walks of all records, leaf by leaf, in key order.

use std::mem;
use std::ops::Bound;

use engine::{Check, Cursor, Damage, Depth, Error, OnDamaged, OnItem};
use index::Position;
use index::bplus_tree::{Direction, Page};
use items::Item;
use pmem::{Dram, Medium};

use super::Contents;
use crate::record::{Records, check_intact, place_of};

/// Leaves that are read under one pin; retired records can be freed between pins.
const LEAVES_PER_PIN: usize = 16;

/// A callback for a record and its contents.
type EachRecord<'e> = dyn FnMut(Position, &Item<'_>) -> Result<(), Error> + 'e;

impl<M: Medium, D: Dram> Contents<M, D> {
    /// Visits every key's record, leaf by leaf, with the first key of the leaf. Reads no record: it visits damaged ones
    /// as well, and may visit those of leaves that are being merged twice.
    pub(crate) fn each_leaf(&self, mut each: impl FnMut(&[u8], &[Position]) -> Result<(), Error>) -> Result<(), Error> {
        let (mut page, mut from) = (Page::default(), Vec::new());
        loop {
            let _pin = epoch::pin();
            self.tree.read_leaf(&from, &mut page);
            each(&from, page.positions())?;
            let Some(end) = page.end() else { return Ok(()) };
            end.clone_into(&mut from);
        }
    }

    /// Visits every key's record, in key order. While a leaf's records are read, those of the next leaf are prefetched.
    pub(crate) fn each_record(&self, each: &mut EachRecord<'_>) -> Result<(), Error> {
        let ([mut page, mut ahead], mut from) = ([Page::default(), Page::default()], Bound::Unbounded);
        loop {
            let _pin = epoch::pin();
            self.read_ahead(from.as_ref().map(Vec::as_slice), &mut page)?;
            for leaf in 1..=LEAVES_PER_PIN {
                let next = page.next().filter(|_| leaf < LEAVES_PER_PIN);
                next.map_or(Ok(()), |next| self.read_ahead(next, &mut ahead))?;
                page.positions().iter().try_for_each(|&record| each(record, &self.records().read(record)?))?;
                if next.is_none() {
                    break;
                }
                mem::swap(&mut page, &mut ahead);
            }
            match page.next() {
                Some(next) => from = next.map(<[u8]>::to_vec),
                None => return Ok(()),
            }
        }
    }

    /// Reads a leaf, and prefetches its records.
    fn read_ahead(&self, from: Bound<&[u8]>, page: &mut Page) -> Result<(), Error> {
        let records = self.records();
        self.tree.read_page(&records, from, Direction::Forward, page)?;
        page.positions().iter().for_each(|&record| records.prefetch_head(record));
        Ok(())
    }

    /// Visits the intact items, and reports the damage of the others. No thread writes.
    pub(crate) fn walk_intact(&self, each: &mut OnItem<'_>, damaged: &mut OnDamaged<'_>) -> Result<(), Error> {
        self.each_leaf(|_, leaf| {
            for position in self.records().in_time(leaf, Records::request_whole) {
                match self.records().read(position).and_then(|item| check_intact(position, &item).map(|()| item)) {
                    Ok(item) if self.is_past(item.expiry) => {}
                    Ok(item) => each(item.key, item.value, item.expiry),
                    Err(error) => damaged(error)?,
                }
            }
            Ok(())
        })
    }

    /// Calls `each` with the readable items of the leaf that contains the cursor's key, including keys before it.
    /// Neither the search nor the next cursor depends on a record. A batch that is changing the tree reports its
    /// expiring keys to the reaper afterwards.
    pub(crate) fn walk_readable(&self, cursor: &Cursor, each: &mut OnItem<'_>) -> Cursor {
        let from = match cursor {
            Cursor::Start => &[][..],
            Cursor::After(key) => key,
            Cursor::Number(_) | Cursor::End => return Cursor::End,
        };
        let _pin = epoch::pin();
        let (mut page, records) = (Page::default(), self.records());
        self.tree.read_leaf(from, &mut page);
        let found = records.in_time(page.positions(), Records::request_whole).map(|record| records.read(record));
        found.flatten().for_each(|item| each(item.key, item.value, item.expiry));
        page.end().map_or(Cursor::End, |end| Cursor::After(end.to_vec()))
    }

    /// Returns the number of records whose key cannot be read.
    pub(crate) fn count_damaged(&self) -> Result<u64, Error> {
        let (records, mut count) = (self.records(), 0);
        self.each_leaf(|_, leaf| {
            let leaf = records.in_time(leaf, Records::request_whole);
            count += leaf.filter(|record| matches!(records.read(*record), Err(Error::Corrupt { .. }))).count() as u64;
            Ok(())
        })?;
        Ok(count)
    }

    /// Returns the bytes of the region that the records occupy.
    pub(crate) fn record_bytes(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        self.each_record(&mut |record, _| {
            bytes += self.region.heap().table().place_bytes(place_of(record)?);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Checks all records and counts them. Writers may continue.
    pub(crate) fn check_records(&self, check: &mut Check, damaged: &mut dyn FnMut(Damage)) -> Result<(), Error> {
        let is_deep = check.depth() == Depth::Deep;
        self.each_leaf(|from, leaf| {
            for record in self.records().in_time(leaf, Records::request_whole) {
                match self.check_record(record, from, is_deep) {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(Error::Corrupt { offset, what }) => damaged(Damage { offset, what: what.into() }),
                    Err(error) => return Err(error),
                }
                check.count_item();
            }
            Ok(())
        })
    }

    /// Checks a record. Returns false if its key is below `from`: then the record was in a leaf that was merged with
    /// the previous one, and was visited before.
    fn check_record(&self, record: Position, from: &[u8], is_deep: bool) -> Result<bool, Error> {
        let (place, heap) = (place_of(record)?, self.region.heap());
        if heap.table().check_place(place).is_err() || heap.table().is_free(place) {
            return Err(Error::Corrupt { offset: place.offset.0, what: "a key's record is at an impossible place" });
        }
        let item = self.records().read(record)?;
        let was_seen = item.key < from;
        // A low key may also be a damaged one.
        if is_deep || was_seen {
            check_intact(record, &item)?;
        }
        Ok(!was_seen)
    }
}
