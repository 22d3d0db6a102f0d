//! Lookups of a key's record.

use engine::{Error, Expiry, Limits, PackedLookup, Verify};
use epoch::Pinned;
use index::Position;
use index::bplus_tree::GROUP_COUNT;
use items::Item;
use pmem::{Dram, Medium, Ticket, Waited};

use crate::Pmekv;
use crate::record::{Intact, WithValues, check_intact};
use crate::tickets::Met;

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Finds the key's record, expired or not; the result is durable. The caller is pinned.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        let position = self.find_position(key)?;
        self.met_key(key)?;
        position.map(|position| self.records().read(position).map(|item| (position, item))).transpose()
    }

    fn find_position(&self, key: &[u8]) -> Result<Option<Position>, Error> {
        match self.batches.held(key) {
            Some(held) => Ok(held),
            None => self.find_in_tree(key),
        }
    }

    /// Finds the key in the tree; verifies an absence if the store's `verify` asks for it. The caller is pinned, or
    /// holds the lock of the key's lane.
    pub(crate) fn find_in_tree(&self, key: &[u8]) -> Result<Option<Position>, Error> {
        loop {
            let found = self.tree.find(&self.records(), key)?;
            if found.is_some() || self.is_surely_absent(key)? {
                return Ok(found);
            }
        }
    }

    /// Returns false if a lookup that found nothing has to be repeated, and an error if damage may have hidden the
    /// key's record.
    #[inline(always)]
    pub(crate) fn is_surely_absent(&self, key: &[u8]) -> Result<bool, Error> {
        if self.verify < Verify::Absence {
            return Ok(true);
        }
        Ok(self.tree.find(&Intact(&self.records()), key)?.is_none())
    }

    /// Looks the key's value up in one attempt. The caller is pinned.
    #[inline(always)]
    pub(crate) fn lookup_value(&self, pinned: Pinned<'_>, key: &[u8]) -> PackedLookup<'_> {
        if key.len() > Limits::KEY_BYTES_MAX || self.batches.shown.is_shown(self.batches.shown.turn()) {
            return PackedLookup::UNSURE;
        }
        let records = self.records();
        let found = self.tree.lookup_prefetched(&WithValues(&records), &self.tree.prefetch(pinned, &records, key));
        match found {
            _ if self.tickets.latest() != Ticket::default() => PackedLookup::UNSURE,
            Some(None) if self.verify < Verify::Absence => PackedLookup::ABSENT,
            Some(Some(position)) => self.value_of(position).map_or(PackedLookup::UNSURE, PackedLookup::at),
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
        let (turn, records) = (self.batches.shown.turn(), self.records());
        if self.batches.shown.is_shown(turn) || keys.iter().any(|key| key.len() > Limits::KEY_BYTES_MAX) {
            return 0;
        }
        let prefetched = self.tree.prefetch_many(pinned, &records, keys);
        for prefetched in &prefetched[..keys.len()] {
            self.tree.likely(&records, prefetched).into_iter().for_each(|position| records.prefetch_whole(position));
        }
        let mut found_count = 0;
        for (prefetched, value) in prefetched[..keys.len()].iter().zip(values) {
            let Some(position) = self.tree.lookup_prefetched(&records, prefetched) else { break };
            // Once a batch is published, this lookup may still see the state before it, while earlier keys of the group
            // had the state after it.
            if self.batches.shown.turn() != turn {
                break;
            }
            *value = match position.map(|position| self.value_of(position)) {
                Some(None) => break,
                None if self.verify >= Verify::Absence => break,
                value => value.flatten(),
            };
            found_count += 1;
        }
        if self.tickets.latest() == Ticket::default() { found_count } else { 0 }
    }

    /// Returns the record's value, if the record is plain and passes the checks that reads make.
    #[inline(always)]
    fn value_of(&self, position: Position) -> Option<&[u8]> {
        let plain = self.records().plain(position)?;
        (self.verify == Verify::Nothing || plain.is_intact()).then(|| plain.value())
    }

    /// Calls `found` with the values of several keys, in order. Their lookups run together.
    pub(crate) fn read_many(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let _pin = epoch::pin();
            // The table is read before the tree, as for a single key.
            let (turn, table) = self.batches.shown.now();
            let (records, mut shown) = (self.records(), Ok(()));
            let near = |position| records.prefetch_whole(position);
            self.tree.find_many(&records, keys, near, |number, position| {
                if shown.is_ok() {
                    let held = table.as_ref().and_then(|table| table.get(keys[number]).copied());
                    // A batch was published or withdrawn since: the table and this position may be of different states,
                    // so find the key again.
                    let position = match held.map_or(position, Ok) {
                        _ if self.batches.shown.turn() != turn => self.find_position(keys[number]),
                        Ok(None) if held.is_none() && self.verify >= Verify::Absence => self.find_in_tree(keys[number]),
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
        let item = position.map(|position| self.records().read(position).map(|item| (position, item))).transpose()?;
        let live = item.filter(|(_, item)| !self.is_past(item.expiry));
        live.as_ref().map_or(Ok(()), |(position, item)| self.verify_value(*position, item))?;
        found(live.map(|(_, item)| item.value));
        Ok(())
    }

    /// Finds the key's record, unless it has expired. The caller is pinned.
    pub(crate) fn find_live(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        Ok(self.find(key)?.filter(|(_, item)| !self.is_past(item.expiry)))
    }

    /// Verifies a value before it is returned, if reads do so.
    pub(crate) fn verify_value(&self, position: Position, item: &Item<'_>) -> Result<(), Error> {
        if self.verify > Verify::Nothing { check_intact(position, item) } else { Ok(()) }
    }

    /// Waits for the durability of a key, or of its absence, that a reader met. If nothing is pending at all, the key
    /// need not be hashed: the latest ticket of all keys is raised with each key's, before the tree changes.
    pub(crate) fn met_key(&self, key: &[u8]) -> Result<(), Error> {
        if self.tickets.latest() == Ticket::default() { Ok(()) } else { self.met(self.hasher.signature(key)) }
    }

    /// Waits for the durability of the key of this hash, or of its absence, that a reader met without writing.
    pub(crate) fn met(&self, hash: u64) -> Result<(), Error> {
        let Met { ticket, is_others } = self.tickets.of(hash);
        if ticket == Ticket::default() {
            return Ok(());
        }
        match self.region.medium().acknowledge_met(ticket) {
            Ok(Waited::Durable) => self.tickets.settle(hash, ticket),
            Ok(Waited::Deferred) => {}
            Err(error) if !is_others => return Err(error.into()),
            Err(_) => {}
        }
        Ok(())
    }

    /// Waits likewise for a reader that met several keys.
    pub(crate) fn met_many(&self) -> Result<(), Error> {
        let ticket = self.tickets.latest();
        if ticket != Ticket::default() {
            let _ = self.region.medium().acknowledge_met(ticket)?;
        }
        Ok(())
    }

    /// Returns true if a record with this expiry has expired, so that its key is absent.
    pub(crate) fn is_past(&self, expiry: Expiry) -> bool {
        self.clock.is_past(expiry)
    }
}
