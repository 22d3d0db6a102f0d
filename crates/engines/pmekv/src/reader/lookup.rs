//! Lookups of values: of one key in one attempt, and of several keys together.

use engine::{Error, Limits, PackedLookup};
use epoch::Pinned;
use index::Position;
use index::bplus_tree::GROUP_COUNT;
use pmem::{Dram, Medium};

use super::Reader;
use crate::record::WithValues;

impl<M: Medium, D: Dram> Reader<M, D> {
    /// Looks the key's value up in one attempt. The caller is pinned.
    #[inline(always)]
    pub(crate) fn lookup_value(&self, pinned: Pinned<'_>, key: &[u8]) -> PackedLookup<'_> {
        if key.len() > Limits::KEY_BYTES_MAX || self.shown.is_shown(self.shown.turn()) {
            return PackedLookup::UNSURE;
        }
        let records = self.records();
        let found = self.tree().lookup_prefetched(&WithValues(&records), &self.tree().prefetch(pinned, &records, key));
        match found {
            _ if self.tickets.is_pending() => PackedLookup::UNSURE,
            Some(None) if !self.contents.verifies_absence() => PackedLookup::ABSENT,
            Some(Some(position)) => self.contents.value_of(position).map_or(PackedLookup::UNSURE, PackedLookup::at),
            _ => PackedLookup::UNSURE,
        }
    }

    /// Looks up at most [`GROUP_COUNT`] keys, and stops at the first key whose lookup is unsure. Returns the number of
    /// results in `values`. The caller is pinned.
    pub(crate) fn lookup_group<'a>(
        &'a self,
        pinned: Pinned<'a>,
        keys: &[&[u8]],
        values: &mut [Option<&'a [u8]>],
    ) -> usize {
        let keys = &keys[..keys.len().min(GROUP_COUNT)];
        let (turn, records) = (self.shown.turn(), self.records());
        if self.shown.is_shown(turn) || keys.iter().any(|key| key.len() > Limits::KEY_BYTES_MAX) {
            return 0;
        }
        let prefetched = self.tree().prefetch_many(pinned, &records, keys);
        for prefetched in &prefetched[..keys.len()] {
            self.tree().likely(&records, prefetched).into_iter().for_each(|position| records.prefetch_whole(position));
        }
        let mut found_count = 0;
        for (prefetched, value) in prefetched[..keys.len()].iter().zip(values) {
            let Some(position) = self.tree().lookup_prefetched(&records, prefetched) else { break };
            // Once a batch is published, this lookup may still see the state before it, while earlier keys of the group
            // had the state after it.
            if self.shown.turn() != turn {
                break;
            }
            *value = match position.map(|position| self.contents.value_of(position)) {
                Some(None) => break,
                None if self.contents.verifies_absence() => break,
                value => value.flatten(),
            };
            found_count += 1;
        }
        if self.tickets.is_pending() { 0 } else { found_count }
    }

    /// Calls `found` with the values of several keys, in order. Their lookups run together.
    pub(crate) fn read_many(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let _pin = epoch::pin();
            // The table is read before the tree, as for a single key.
            let (turn, table) = self.shown.now();
            let (records, mut shown) = (self.records(), Ok(()));
            let near = |position| records.prefetch_whole(position);
            self.tree().find_many(&records, keys, near, |number, position| {
                if shown.is_ok() {
                    let held = table.as_ref().and_then(|table| table.get(keys[number]).copied());
                    // A batch was published or withdrawn since: the table and this position may be of different states,
                    // so find the key again.
                    let position = match held.map_or(position, Ok) {
                        _ if self.shown.turn() != turn => self.find_position(keys[number]),
                        Ok(None) if held.is_none() && self.contents.verifies_absence() => {
                            self.contents.find_in_tree(keys[number])
                        }
                        position => position,
                    };
                    shown = self.read_found(keys[number], position, |value| found(group * GROUP_COUNT + number, value));
                }
            });
            shown?;
        }
        Ok(())
    }

    fn read_found(
        &self,
        key: &[u8],
        position: Result<Option<Position>, Error>,
        found: impl FnOnce(Option<&[u8]>),
    ) -> Result<(), Error> {
        let position = position?;
        self.met_key(key)?;
        let live = self.contents.item_at(position)?.filter(|(_, item)| !self.contents.is_past(item.expiry));
        live.as_ref().map_or(Ok(()), |(position, item)| self.contents.verify_value(*position, item))?;
        found(live.map(|(_, item)| item.value));
        Ok(())
    }
}
