//! The databases of a server: trees whose ids the server chooses, and changes together with keys.
//!
//! | step of a change | a crash after it leaves |
//! |---|---|
//! | 1 [`Catalog::reserve`]: the head gets a higher next id, if a database gets a new id | everything as before |
//! | 2 [`Catalog::assign`]: one batch of the names, the ids, the head's counts, and other stored keys | all of it done |
//!
//! A database without a record has the id of its own number. The conditions of step 2 hold unless another change of the
//! catalog, or the background, was faster: the batch is then made again from the present records.

use std::collections::BTreeSet;

use engine::{BatchOp, Condition, Error};

use crate::changes::{Batch, advance, tree_records};
use crate::names::{Catalog, RESERVED};
use crate::record::{HEAD_KEY, TreeRecord, id_key, name_key};
use crate::tree_id::TreeId;

/// The number of databases of a server.
pub const DATABASE_COUNT: usize = 16;

/// The ids of a server's databases, by number.
pub type DatabaseIds = [TreeId; DATABASE_COUNT];

/// Returns the name of a database's tree.
#[must_use]
pub fn database_name(number: usize) -> String {
    format!("{RESERVED}{number}")
}

impl Catalog<'_> {
    /// Gives a name to the keys of an id that has none, for the databases of a server; does nothing if the name exists.
    ///
    /// # Errors
    /// As for [`engine::Atomic::write_batch_if`].
    pub fn create_with_id(self, name: &str, id: TreeId) -> Result<(), Error> {
        self.change(|batch| {
            let mut head = self.expected_head(batch)?;
            if self.record(name)?.is_some() {
                return Ok(());
            }
            head.tree_count += 1;
            batch.expect(&name_key(name), None);
            tree_records(name, id, self.now_ms()).into_iter().for_each(|(key, record)| batch.put(key, record));
            batch.put(HEAD_KEY.to_vec(), head.bytes());
            Ok(())
        })
    }

    /// Returns the first of `count` ids that no tree has, and that no other tree will get.
    ///
    /// # Errors
    /// [`Error::TooManyTrees`] after four billion ids; otherwise as for [`engine::Atomic::write_batch_if`].
    pub fn reserve(self, count: u32) -> Result<TreeId, Error> {
        self.change(|batch| {
            let mut head = self.expected_head(batch)?;
            let first = advance(&mut head, count)?;
            batch.put(HEAD_KEY.to_vec(), head.bytes());
            Ok(first)
        })
    }

    /// Gives the databases these ids, and carries out `ops` on other stored keys if `conditions` hold, all in one step.
    /// New ids come from [`Catalog::reserve`]. Returns the ids that no database has any more, which are dead:
    /// [`Catalog::dead_ids`]. The tree without a name never dies.
    ///
    /// # Errors
    /// [`Error::ConditionFailed`] with the number of one of `conditions`; otherwise as for
    /// [`engine::Atomic::write_batch_if`].
    pub fn assign(
        self,
        ids: &DatabaseIds,
        conditions: &[Condition<'_>],
        ops: &[BatchOp<'_>],
    ) -> Result<Vec<TreeId>, Error> {
        loop {
            let mut batch = Batch::default();
            let dead = self.plan(ids, &mut batch)?;
            match batch.write_after(self.engine, conditions, ops) {
                Ok(()) => return Ok(dead),
                Err(Error::ConditionFailed { condition }) if condition >= conditions.len() => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn plan(self, ids: &DatabaseIds, batch: &mut Batch) -> Result<Vec<TreeId>, Error> {
        let (mut head, mut unassigned) = (self.expected_head(batch)?, BTreeSet::new());
        for (number, &id) in ids.iter().enumerate() {
            let (name, own) = (database_name(number), TreeId::new(number as u32));
            let (version, mut record) = match self.record(&name)? {
                Some((version, record)) => (Some(version), record),
                None => (None, TreeRecord::new(own, self.now_ms())),
            };
            if record.id == id {
                continue;
            }
            unassigned.insert(record.id);
            record.id = id;
            head.tree_count += u32::from(version.is_none());
            batch.expect(&name_key(&name), version);
            batch.put(name_key(&name), record.bytes());
            batch.put(id_key(id), name.into());
        }
        let dead: Vec<_> = unassigned.into_iter().filter(|id| *id != TreeId::NAMELESS && !ids.contains(id)).collect();
        dead.iter().for_each(|id| batch.put(id_key(*id), Vec::new()));
        head.dead_count += dead.len() as u32;
        batch.put(HEAD_KEY.to_vec(), head.bytes());
        Ok(dead)
    }
}
