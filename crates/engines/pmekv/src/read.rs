//! Finding a key's record.

use engine::{Error, Expiry, Verify};
use index::Position;
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
        self.met(self.hasher.signature(key))?;
        position.map(|position| self.records().read(position).map(|item| (position, item))).transpose()
    }

    /// The key's record, unless its time has come. The caller is pinned.
    pub(crate) fn find_live(&self, key: &[u8]) -> Result<Option<(Position, Item<'_>)>, Error> {
        Ok(self.find(key)?.filter(|(_, item)| !self.is_past(item.expiry)))
    }

    /// Comes before a value is shown.
    pub(crate) fn may_show(&self, position: Position, item: &Item<'_>) -> Result<(), Error> {
        if self.verify > Verify::Nothing { whole(position, item) } else { Ok(()) }
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
