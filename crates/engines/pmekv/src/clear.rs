//! Clearing: a checkpoint of no keys that cuts all lanes.
//!
//! # Steps, under the checkpoint's lock
//! 1. Lock all lanes, which excludes all writers. Note the records of all keys, and allocate an empty tree: from step 2
//!    on only the medium can fail.
//! 2. Carry out steps 3 and 4 of a checkpoint, of no keys, with cuts at the ends of the lanes. *Crash before the root:
//!    all keys are present; after: none.*
//! 3. Empty the tree; unlock the lanes.
//! 4. Free nodes and segments; retire the records.

use engine::{Engine, Error};
use pmem::{Dram, Level, Medium, Waited};

use crate::Pmekv;
use crate::checkpoint::{Checkpoint, cuts_of, name};

impl<M: Medium, D: Dram> Pmekv<M, D> {
    pub(crate) fn remove_all(&self) -> Result<(), Error> {
        self.reader.region().may_write()?;
        let mut counts = self.checkpoint.lock();
        let lanes = self.lanes.lock_all();
        self.reader.is_learnt()?;
        // No record is read, so damaged ones are cleared as well. No leaf is merged while all lanes are locked.
        let mut records = Vec::new();
        self.reader.each_leaf(|_, leaf| {
            records.extend_from_slice(leaf);
            Ok(())
        })?;
        let forget =
            self.reader.tree().clearing().map_err(|error| Error::NoMemory { wanted_bytes: error.wanted_bytes })?;
        let new = Checkpoint::empty(counts.number + 1, cuts_of(&lanes));
        name(self.reader.region().medium(), &self.uuid(), &new);
        let ticket = self.reader.region().medium().commit(Level::default());
        self.reader.region().medium().health()?;
        self.reader.tickets().raise_all(ticket);
        self.reserve.forget(self.reader.tree().len());
        forget();
        self.lanes.count_entries(0, self.lanes.entry_count());
        drop(lanes);
        let before = std::mem::replace(&mut *counts, new);
        self.last_checkpoint.set(&counts);
        self.let_go(&before, &counts.cuts, 0);
        drop(counts);
        records.into_iter().try_for_each(|record| self.reader.region().retire(record))?;
        if self.reader.region().medium().acknowledge(ticket)? == Waited::Durable {
            self.reader.tickets().settle_all(ticket);
        }
        Ok(())
    }
}
