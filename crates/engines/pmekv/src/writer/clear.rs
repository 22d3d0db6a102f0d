//! Clearing: a checkpoint of no keys that cuts all lanes.
//!
//! # Steps, under the checkpoint's lock
//! 1. Lock all lanes, which excludes all writers. Note the records of all keys, and allocate an empty tree: from step 2
//!    on only the medium can fail.
//! 2. Carry out steps 3 and 4 of a checkpoint, of no keys, with cuts at the ends of the lanes. *Crash before the root:
//!    all keys are present; after: none.*
//! 3. Empty the tree; unlock the lanes.
//! 4. Free nodes and segments; retire the records.

use engine::Error;
use pmem::{Dram, Level, Medium, Waited};

use super::Writer;
use crate::lanes::cuts_of;
use crate::root::{Checkpoint, name};

impl<M: Medium, D: Dram> Writer<M, D> {
    /// Deletes all keys.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        let (reader, region, medium) = (self.reader(), self.reader().region(), self.reader().region().medium());
        region.may_write()?;
        let mut current = self.checkpointer.lock();
        let logs = self.lanes().lock_all();
        reader.check_batches_applied()?;
        // No record is read, so damaged ones are cleared as well. No leaf is merged while all lanes are locked.
        let mut records = Vec::new();
        reader.contents().each_leaf(|_, leaf| {
            records.extend_from_slice(leaf);
            Ok(())
        })?;
        let forget = reader.tree().clearing().map_err(|error| Error::NoMemory { wanted_bytes: error.wanted_bytes })?;
        let new = Checkpoint::empty(current.number + 1, cuts_of(&logs));
        name(medium, &region.heap().region().superblock().uuid, &new);
        let ticket = medium.commit(Level::default());
        medium.health()?;
        reader.tickets().raise_all(ticket);
        self.lanes().reserve().forget(reader.tree().len());
        forget();
        self.lanes().count_entries(0, self.lanes().entry_count());
        drop(logs);
        self.checkpointer.replace(&mut current, new);
        drop(current);
        records.into_iter().try_for_each(|record| region.retire(record))?;
        if medium.acknowledge(ticket)? == Waited::Durable {
            reader.tickets().settle_all(ticket);
        }
        Ok(())
    }
}
