//! The engine's part of reaping expired keys (`engine::Reaper`): a step visits one leaf of the tree, and deletes an
//! expired key if it still has the record that was seen.

use engine::{Cursor, Error, OnItem, Progress, WriteResult};
use index::bplus_tree::Page;
use pmem::{Dram, Medium};

use crate::Pmekv;
use crate::record::{Records, check_intact};
use crate::write::{Expected, Outcome};

impl<M: Medium, D: Dram> Pmekv<M, D> {
    /// Reaps one leaf.
    pub(crate) fn reap(&self) -> Result<Progress, Error> {
        self.reaper.reap(
            &|expiry| self.is_past(expiry),
            &mut |cursor, each| Ok(self.walk_past_damage(cursor, each)),
            &mut |key| self.reap_key(key),
        )
    }

    /// Calls `each` with the readable items of the leaf that contains the cursor's key, including keys before it.
    /// Neither the search nor the next cursor depends on a record. A batch that is changing the tree reports its
    /// expiring keys to the reaper afterwards.
    fn walk_past_damage(&self, cursor: &Cursor, each: &mut OnItem<'_>) -> Cursor {
        let from = match cursor {
            Cursor::Start => &[][..],
            Cursor::After(key) => key,
            Cursor::Number(_) | Cursor::End => return Cursor::End,
        };
        let _pin = epoch::pin();
        let (mut page, records) = (Page::default(), self.records());
        self.tree.read_leaf(from, &mut page);
        let found = records.in_time(page.positions(), Records::prefetch_whole).map(|record| records.read(record));
        found.flatten().for_each(|item| each(item.key, item.value, item.expiry));
        page.end().map_or(Cursor::End, |end| Cursor::After(end.to_vec()))
    }

    fn reap_key(&self, key: &[u8]) -> Result<bool, Error> {
        self.bound_log()?;
        let outcome = self.with_space_to_delete(|| self.reap_due(key))?;
        Ok(self.report_expired(outcome).answer != WriteResult::Unexpected)
    }

    fn reap_due(&self, key: &[u8]) -> Result<Outcome, Error> {
        let _pin = epoch::pin();
        let due = self.find(key)?.filter(|(_, item)| self.is_past(item.expiry));
        let Some((position, item)) = due else { return Ok(Outcome::UNEXPECTED) };
        // A damaged expiry must not delete a key.
        check_intact(position, &item)?;
        self.change(key, &mut None, Expected::Record(Some(position)))
    }
}
