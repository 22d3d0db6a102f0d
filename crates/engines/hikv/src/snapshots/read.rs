//! Reads at a snapshot: the index first, the side table second.

use std::ops::Bound;
use std::sync::Arc;

use index::Position;
use pmem::Medium;

use super::Snapshots;
use super::kept::Kept;
use crate::item;
use crate::read::walk::{Part, cursor_at, place_of};
use crate::read::{Reader, check_intact};
use engine::{Cursor, Error, Expiry, Limits, Moment, OnDamaged, OnFound, OnItem};
use items::Item;

/// Reads the store as one snapshot sees it.
pub(crate) struct SnapshotReader<'a, M> {
    reader: &'a Reader<M>,
    kept: &'a Kept,
    at: Moment,
}

impl Snapshots {
    /// Returns a reader of the snapshot `at`.
    pub(crate) fn reader<'a, M: Medium>(&'a self, reader: &'a Reader<M>, at: Moment) -> SnapshotReader<'a, M> {
        SnapshotReader { reader, kept: &self.kept, at }
    }
}

impl<'a, M: Medium> SnapshotReader<'a, M> {
    /// Passes the key's value to `found`.
    pub(crate) fn get(&self, key: &[u8], found: &mut OnFound<'_>) -> Result<bool, Error> {
        Limits::check_key(key)?;
        let _pin = epoch::pin();
        let newest = self.reader.find(self.reader.signature(key), key)?;
        let seen = match newest.filter(|(_, item)| self.at.sees(item.header.epoch)) {
            Some((position, item)) => {
                self.reader.verify_value(&item, position)?;
                self.unexpired(position, item)?
            }
            None => self.kept_item(key)?,
        };
        let is_there = seen.is_some();
        if let Some((position, item)) = seen {
            found(item::witness(item.header.checksum, position, item.expiry), item.expiry, item.value);
        }
        Ok(is_there)
    }

    /// Reads a segment of the index first, and the kept items of its signatures second. So a key that was removed
    /// before its entry was read is among the kept items, and so is the older item of each key whose present item the
    /// snapshot does not see. A key belongs to the signatures of exactly one step, however segments are split between
    /// two steps.
    pub(crate) fn walk(
        &self,
        cursor: &Cursor,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        let Some(place) = place_of(cursor)? else { return Ok(Cursor::End) };
        let _pin = epoch::pin();
        let part = Part::at(self.reader, place)?;
        let kept = self.kept.of_signatures(self.at, self.reader.index().signatures(place, part.next()));
        if kept.is_empty() {
            part.each_entry(|signature, position| match part.whole_plain(signature, position) {
                Some(item) if self.at.sees(item.epoch()) => {
                    each(item.key(), item.value(), Expiry::NEVER);
                    Ok(())
                }
                _ => self.met(signature, position).and_then(|seen| shown(seen, each)).or_else(&mut *damaged),
            })?;
        } else {
            self.reader.acknowledge_deferred()?;
            self.visit_with_kept(&part, &kept, each, damaged)?;
        }
        Ok(cursor_at(part.next()))
    }

    /// A key that was removed after its entry was read is met twice, and a key that was put again may be. All items are
    /// sorted first, so that each key is visited once.
    #[cold]
    fn visit_with_kept(
        &self,
        part: &Part<'_, M>,
        kept: &[Position],
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<(), Error> {
        let mut items = Vec::with_capacity(part.entry_count() + kept.len());
        part.each_entry(|signature, position| match self.met(signature, position) {
            Ok(seen) => {
                items.extend(seen);
                Ok(())
            }
            Err(error) => damaged(error),
        })?;
        for &position in kept {
            match self.kept_at(position) {
                Ok(seen) => items.extend(seen),
                Err(error) => damaged(error)?,
            }
        }
        items.sort_unstable_by_key(|(_, item)| item.key);
        items.dedup_by_key(|(_, item)| item.key);
        items.into_iter().try_for_each(|seen| shown(Some(seen), each).or_else(&mut *damaged))
    }

    /// Returns the item that the snapshot sees of the key of an entry.
    fn met(&self, signature: u64, position: Position) -> Result<Option<(Position, Item<'a>)>, Error> {
        // SAFETY: the walk passes positions to pinned callers, which stay pinned until they are done with the item.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        self.reader.check_signature(signature, &item, position)?;
        self.version(position, item)
    }

    /// Returns an item that was kept for the snapshot, unless it had expired.
    fn kept_at(&self, position: Position) -> Result<Option<(Position, Item<'a>)>, Error> {
        // SAFETY: kept for a live snapshot.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        self.unexpired(position, item)
    }

    /// Returns the kept items of keys within `bounds`: see [`Kept::within`].
    pub(crate) fn kept_within(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        is_backward: bool,
        count: usize,
    ) -> (Vec<Position>, Option<Arc<[u8]>>) {
        self.kept.within(self.at, bounds, is_backward, count)
    }

    /// Returns the item that the snapshot sees of a key whose newest item, as the caller found it, is `item`.
    pub(crate) fn version(&self, position: Position, item: Item<'a>) -> Result<Option<(Position, Item<'a>)>, Error> {
        if self.at.sees(item.header.epoch) { self.unexpired(position, item) } else { self.kept_item(item.key) }
    }

    /// Returns the item unless it had expired. An expiry counts only if the item's checksum matches.
    pub(crate) fn unexpired(&self, position: Position, item: Item<'a>) -> Result<Option<(Position, Item<'a>)>, Error> {
        if !self.at.is_past(item.expiry) {
            return Ok(Some((position, item)));
        }
        check_intact(&item, position)?;
        Ok(None)
    }

    /// Returns the key's replaced item that the snapshot sees. The caller is pinned.
    fn kept_item(&self, key: &[u8]) -> Result<Option<(Position, Item<'a>)>, Error> {
        let Some(position) = self.kept.at(self.at, key) else { return Ok(None) };
        self.reader.acknowledge_deferred()?;
        // SAFETY: it was kept after the caller pinned, and so not retired before.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        self.reader.verify_value(&item, position)?;
        self.unexpired(position, item)
    }
}

fn shown(seen: Option<(Position, Item<'_>)>, each: &mut OnItem<'_>) -> Result<(), Error> {
    let Some((position, item)) = seen else { return Ok(()) };
    check_intact(&item, position)?;
    each(item.key, item.value, item.expiry);
    Ok(())
}
