//! Finding a key's record.

use engine::{Error, Expiry, Verify};
use index::Position;
use index::bplus_tree::GROUP_COUNT;
use items::Item;
use pmem::{Dram, Medium, Ticket, Waited};

use crate::Pmekv;
use crate::record::whole;

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// The key's record, whatever its time; what is found is durable. The caller is pinned.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        let position = match self.batches.held(key) {
            Some(held) => held,
            None => self.tree.find(&self.records(), key)?,
        };
        self.met_key(key)?;
        position.map(|position| self.records().read(position).map(|item| (position, item))).transpose()
    }

    /// Shows the values of several keys to `found`, in order: their searches go together.
    pub(crate) fn show_many(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        for (group, keys) in keys.chunks(GROUP_COUNT).enumerate() {
            let _pin = epoch::pin();
            // It is asked before the tree, as for a single key.
            let (_, table) = self.batches.shown.now();
            let (records, mut shown) = (self.records(), Ok(()));
            let near = |position| records.prefetch_whole(position);
            self.tree.find_many(&records, keys, near, |number, position| {
                if shown.is_ok() {
                    let held = table.as_ref().and_then(|table| table.get(keys[number]).copied());
                    let position = held.map_or(position, Ok);
                    shown = self.show_found(keys[number], position, |value| found(group * GROUP_COUNT + number, value));
                }
            });
            shown?;
        }
        Ok(())
    }

    fn show_found(
        &self,
        key: &[u8],
        position: Result<Option<Position>, Error>,
        found: impl FnOnce(Option<&[u8]>),
    ) -> Result<(), Error> {
        let position = position?;
        self.met_key(key)?;
        let item = position.map(|position| self.records().read(position).map(|item| (position, item))).transpose()?;
        let live = item.filter(|(_, item)| !self.is_past(item.expiry));
        live.as_ref().map_or(Ok(()), |(position, item)| self.may_show(*position, item))?;
        found(live.map(|(_, item)| item.value));
        Ok(())
    }

    /// The key's record, unless its time has come. The caller is pinned.
    pub(crate) fn find_live(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        Ok(self.find(key)?.filter(|(_, item)| !self.is_past(item.expiry)))
    }

    /// Comes before a value is shown.
    pub(crate) fn may_show(&self, position: Position, item: &Item<'_>) -> Result<(), Error> {
        if self.verify > Verify::Nothing { whole(position, item) } else { Ok(()) }
    }

    /// For a reader that met this key, or its absence. Where nothing at all is to be waited for, its hash need not be known: the latest
    /// point of all keys is raised with each key's, before the tree changes.
    pub(crate) fn met_key(&self, key: &[u8]) -> Result<(), Error> {
        if self.tickets.latest() == Ticket::default() { Ok(()) } else { self.met(self.hasher.signature(key)) }
    }

    /// For a reader that met the key of this hash, or its absence, and has written nothing: what it met is durable once
    /// this has returned.
    pub(crate) fn met(&self, hash: u64) -> Result<(), Error> {
        let ticket = self.tickets.of(hash);
        if ticket != Ticket::default() && self.medium.acknowledge_met(ticket)? == Waited::Durable {
            self.tickets.settle(hash, ticket);
        }
        Ok(())
    }

    /// The same for a reader that met several keys.
    pub(crate) fn met_many(&self) -> Result<(), Error> {
        let ticket = self.tickets.latest();
        if ticket != Ticket::default() {
            let _ = self.medium.acknowledge_met(ticket)?;
        }
        Ok(())
    }

    /// True where a key is absent, though it has a record.
    pub(crate) fn is_past(&self, expiry: Expiry) -> bool {
        self.clock.is_past(expiry)
    }
}
