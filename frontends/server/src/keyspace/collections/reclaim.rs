//! Deletes what is dead, in the background: elements of deleted and expired collections, records of emptied databases
//! (steps 3 to 7 of the module above).

use std::ops::Bound;

use catalog::{DatabaseIds, TreeId};
use hikv::{Expiry, FrontEnd, Item};

use super::view::{Changes, View};
use super::{Collection, Record};
use crate::errors::Refusal;
use crate::keyspace::namespace::RawRange;

/// The number of elements or records per group. Between groups the thread can be stopped.
const GROUP_COUNT: usize = 256;
/// The number of collections per group, which may be small ones.
const ROW_COUNT: usize = 32;
/// The number of collections that one pass finds to have expired.
const DUE_COUNT_MAX: usize = 1 << 13;

/// The steps of the background, on the collections of any database.
pub(crate) struct Reclaim<'a>(View<'a>);

impl<'a> Reclaim<'a> {
    pub(crate) fn of(view: View<'a>) -> Reclaim<'a> {
        Reclaim(view)
    }

    fn view(&self, tree: TreeId) -> View<'a> {
        View { namespace: self.0.namespace.other(tree), ..self.0 }
    }

    fn read(&self, range: RawRange, count: usize) -> Result<Vec<Item>, Refusal> {
        let items = self.0.items.range(self.0.ordered()?, range, false)?;
        Ok(items.take(count).collect::<Result<_, _>>()?)
    }

    /// Marks the records of trees that are no database's any more: a program has emptied a database itself. No
    /// transaction is under way, which may have changed `ids` only in memory.
    pub(crate) fn note_lost(&self, ids: &DatabaseIds) -> Result<(), Refusal> {
        let mut next = Some(0);
        while let Some(from) = next {
            let first = self.read(self.0.layout.records_from(from), 1)?.pop();
            let found = first.and_then(|(raw, _)| self.0.layout.namespace_of_record(&raw));
            if let Some(lost) = found.filter(|id| !ids.contains(id)) {
                self.0.items.put(self.0.layout.flushed(lost), "")?;
            }
            next = found.and_then(|id| id.number().checked_add(1));
        }
        Ok(())
    }

    /// Begins a pass: reads rows of collections whose time has come, and decides how much may be dead before writers
    /// help. Returns whether there are more of these rows. The time is in milliseconds since the Unix epoch.
    pub(crate) fn begin_pass(&self, now_ms: u64) -> Result<bool, Refusal> {
        let due = self.read(self.0.layout.due_until(now_ms), DUE_COUNT_MAX)?;
        let (pace, is_more) = (&self.0.collections.pace, due.len() == DUE_COUNT_MAX);
        pace.set_due(due, is_more);
        pace.allow(self.0.items.store().len().unwrap_or(0));
        Ok(is_more)
    }

    /// Steps 3 to 5, for some of the collections whose time has come; returns false if there is none. The caller has a
    /// lane of the gate, and no command runs in the background.
    pub(crate) fn expire_some(&self) -> Result<bool, Refusal> {
        let pace = &self.0.collections.pace;
        let _turn = pace.turn();
        let due = pace.take_due(ROW_COUNT);
        let has_some = !due.is_empty();
        let mut dead = Vec::new();
        for item in due {
            // What fails is tried again in the next pass; a damaged record must not keep the others.
            dead.extend(self.expired(&item).unwrap_or_default().map(|id| (item, id)));
        }
        let rows: Vec<_> = dead.iter().map(|((row, _), id)| (&row[..], *id)).collect();
        let (_, done_count) = self.delete_elements(&rows)?;
        for (item, id) in dead.drain(done_count..) {
            let mut changes = Changes::default();
            changes.delete(item.0.clone());
            changes.put(self.0.layout.dead(id), Vec::new(), Expiry::NEVER);
            // In a full store its elements go first.
            if changes.write(self.0.items).is_err() {
                pace.put_back(item);
            }
        }
        Ok(has_some)
    }

    /// Step 3: deletes the record of a collection whose time has come, and returns its id; `None` if it has not come.
    fn expired(&self, (row, owner): &Item) -> Result<Option<u64>, Refusal> {
        let (Some((_, id)), Some((tree, key))) = (self.0.layout.of_due(row), owner.split_first_chunk::<4>()) else {
            return Ok(None);
        };
        let view = self.view(TreeId::new(u32::from_be_bytes(*tree)));
        let _locked = self.0.collections.locks.lock(view.namespace, std::iter::once(key), true);
        match view.find(key)? {
            // Its expiry has not passed, or has changed.
            Some(found) if found.record.id == id => return Ok(None),
            Some(_) => {}
            // So that it does not exist again if the clock is set back before the next start.
            None => _ = view.items.delete(view.record_key(key))?,
        }
        // A command may have removed the row before the lock.
        Ok(view.items.contains(row)?.then_some(id))
    }

    /// Deletes a group of elements of these dead collections, and the rows of the first ones, which have none left;
    /// returns how many elements and rows these are. No command uses them.
    fn delete_elements(&self, dead: &[(&[u8], u64)]) -> Result<(usize, usize), Refusal> {
        let (mut elements, mut done_count) = (Vec::new(), 0);
        for (_, id) in dead {
            let missing_count = GROUP_COUNT - elements.len();
            let all = (Bound::Unbounded, Bound::Unbounded);
            let group = self.read(self.0.layout.elements(*id, all), missing_count)?;
            let is_done = group.len() < missing_count;
            elements.extend(group.into_iter().map(|(raw, _)| raw));
            if !is_done {
                break;
            }
            done_count += 1;
        }
        self.delete(elements.iter().map(|raw| &raw[..]))?;
        self.delete(dead[..done_count].iter().map(|(row, _)| *row))?;
        Ok((elements.len(), done_count))
    }

    fn delete<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<(), Refusal> {
        let mut outcome = Ok(());
        FrontEnd::of(self.0.items.store()).multi_delete_each(&keys.collect::<Vec<_>>(), |_, deleted| {
            if let Err(error) = deleted {
                outcome = Err(error);
            }
        });
        Ok(outcome?)
    }

    /// Steps 4 to 7, for a group of deleted collections, or of records of an emptied database; returns false if there
    /// is none.
    pub(crate) fn delete_some(&self) -> Result<bool, Refusal> {
        let _turn = self.0.collections.pace.turn();
        if let Some((row, _)) = self.read(self.0.layout.all_flushed(), 1)?.pop()
            && let Some(tree) = self.0.layout.namespace_of_flushed(&row)
        {
            let records = self.read(self.0.layout.records(tree), GROUP_COUNT)?;
            self.delete_records(tree, &records, row)?;
            return Ok(true);
        }
        let rows = self.read(self.0.layout.all_dead(), ROW_COUNT)?;
        let dead = rows.iter().filter_map(|(row, _)| self.0.layout.id_of_dead(row).map(|id| (&row[..], id)));
        let dead: Vec<_> = dead.collect();
        if dead.is_empty() {
            self.0.collections.pace.note_none();
        }
        let (element_count, row_count) = self.delete_elements(&dead)?;
        self.0.collections.pace.note_deleted((element_count + row_count) as u64);
        Ok(!dead.is_empty())
    }

    /// Deletes records of an emptied database, or its row if there are none.
    fn delete_records(&self, tree: TreeId, records: &[Item], row: Vec<u8>) -> Result<(), Refusal> {
        let (items, view, mut changes) = (self.0.items, self.view(tree), Changes::default());
        if records.is_empty() {
            items.delete(&row)?;
            self.0.collections.pace.note_flushed_done();
            return Ok(());
        }
        for (raw, stored) in records {
            let key = view.key_of(raw).unwrap_or_default();
            match (Record::of(stored), items.expires_at(raw)?) {
                (Some(record), Some(expiry)) => {
                    Collection { view, key: key.to_vec(), record, expiry }.delete(&mut changes);
                }
                // It has just expired, and has a due row; or it is damaged.
                _ => changes.delete(raw.clone()),
            }
        }
        changes.write(items)
    }
}
