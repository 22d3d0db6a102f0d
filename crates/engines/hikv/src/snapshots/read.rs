//! Reads at a snapshot: the index first, the side table second.

use index::Position;
use pmem::Medium;

use crate::item;
use crate::read::check_intact;
use crate::read::check_key;
use crate::read::walk::{Part, cursor_at, place_of};
use crate::{HiKv, Memory};
use engine::{Cursor, Error, Expiry, Moment, OnDamaged, OnItem, SnapshotEngine, Witness};
use items::Item;

impl<M: Medium, D: Memory> SnapshotEngine for HiKv<M, D> {
    fn take_snapshot(&self) -> Result<Moment, Error> {
        self.take_snapshot()
    }

    fn release_snapshot(&self, at: Moment) {
        self.release_snapshot(at);
    }

    fn get_at(&self, at: Moment, key: &[u8], found: &mut dyn FnMut(Witness, Expiry, &[u8])) -> Result<bool, Error> {
        check_key(key)?;
        let _pin = epoch::pin();
        let newest = self.reader.find(self.reader.signature(key), key)?.filter(|(_, item)| at.sees(item.header.epoch));
        let seen = match newest {
            Some((position, item)) => {
                self.reader.verify_value(&item, position)?;
                self.unexpired_at(at, position, item)?
            }
            None => self.kept_item(at, key)?,
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
    fn walk_at(
        &self,
        at: Moment,
        cursor: Cursor,
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<Cursor, Error> {
        let Some(place) = place_of(&cursor)? else { return Ok(Cursor::End) };
        let _pin = epoch::pin();
        let part = Part::at(&self.reader, place)?;
        let next = part.next();
        let kept = self.snapshots.kept.of_signatures(at, self.reader.index().signatures(place, next));
        if kept.is_empty() {
            part.each_entry(|signature, position| match part.whole_plain(signature, position) {
                Some(item) if at.sees(item.epoch()) => {
                    each(item.key(), item.value(), Expiry::NEVER);
                    Ok(())
                }
                _ => self.met(at, signature, position).and_then(|seen| shown(seen, each)).or_else(&mut *damaged),
            })?;
        } else {
            self.reader.acknowledge_deferred()?;
            self.visit_with_kept(at, &part, &kept, each, damaged)?;
        }
        Ok(cursor_at(next))
    }
}

fn shown(seen: Option<(Position, Item<'_>)>, each: &mut OnItem<'_>) -> Result<(), Error> {
    let Some((position, item)) = seen else { return Ok(()) };
    check_intact(&item, position)?;
    each(item.key, item.value, item.expiry);
    Ok(())
}

impl<M: Medium, D: Memory> HiKv<M, D> {
    /// A key that was removed after its entry was read is met twice, and a key that was put again may be. All items are
    /// sorted first, so that each key is visited once.
    #[cold]
    fn visit_with_kept(
        &self,
        at: Moment,
        part: &Part<'_, M>,
        kept: &[Position],
        each: &mut OnItem<'_>,
        damaged: &mut OnDamaged<'_>,
    ) -> Result<(), Error> {
        let mut items = Vec::with_capacity(part.entry_count() + kept.len());
        part.each_entry(|signature, position| match self.met(at, signature, position) {
            Ok(seen) => {
                items.extend(seen);
                Ok(())
            }
            Err(error) => damaged(error),
        })?;
        for &position in kept {
            match self.kept_at(at, position) {
                Ok(seen) => items.extend(seen),
                Err(error) => damaged(error)?,
            }
        }
        items.sort_unstable_by_key(|(_, item)| item.key);
        items.dedup_by_key(|(_, item)| item.key);
        items.into_iter().try_for_each(|seen| shown(Some(seen), each).or_else(&mut *damaged))
    }

    /// Returns the item that the snapshot sees of the key of an entry.
    fn met(&self, at: Moment, signature: u64, position: Position) -> Result<Option<(Position, Item<'_>)>, Error> {
        // SAFETY: the walk passes positions to pinned callers, which stay pinned until they are done with the item.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        self.reader.check_signature(signature, &item, position)?;
        self.version_at(at, position, item)
    }

    /// Returns an item that was kept for the snapshot, unless it had expired.
    fn kept_at(&self, at: Moment, position: Position) -> Result<Option<(Position, Item<'_>)>, Error> {
        // SAFETY: kept for a live snapshot.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        self.unexpired_at(at, position, item)
    }

    /// Returns the item that the snapshot sees of a key whose newest item, as the caller found it, is `item`.
    pub(crate) fn version_at<'a>(
        &'a self,
        at: Moment,
        position: Position,
        item: Item<'a>,
    ) -> Result<Option<(Position, Item<'a>)>, Error> {
        if at.sees(item.header.epoch) { self.unexpired_at(at, position, item) } else { self.kept_item(at, item.key) }
    }

    /// Returns the item unless it had expired. An expiry counts only if the item's checksum matches.
    pub(crate) fn unexpired_at<'a>(
        &self,
        at: Moment,
        position: Position,
        item: Item<'a>,
    ) -> Result<Option<(Position, Item<'a>)>, Error> {
        if !at.is_past(item.expiry) {
            return Ok(Some((position, item)));
        }
        check_intact(&item, position)?;
        Ok(None)
    }

    /// Returns the key's replaced item that the snapshot sees. The caller is pinned.
    fn kept_item(&self, at: Moment, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        let Some(position) = self.snapshots.kept.at(at, key) else { return Ok(None) };
        self.reader.acknowledge_deferred()?;
        // SAFETY: it was kept after the caller pinned, and so not retired before.
        let item = unsafe { item::read(self.reader.medium(), position) }?;
        self.reader.verify_value(&item, position)?;
        self.unexpired_at(at, position, item)
    }
}
