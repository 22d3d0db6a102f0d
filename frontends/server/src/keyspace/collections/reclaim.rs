//! Deletes what is dead, in the background: elements of deleted and expired collections, records of emptied databases
//! (steps 3 to 6 of the module above).

use std::ops::Bound;

use catalog::{DatabaseIds, TreeId};
use hikv::{Expiry, FrontEnd, Item};

use super::view::{Changes, View};
use super::{Collection, Record};
use crate::errors::Refusal;
use crate::keyspace::namespace::RawRange;

/// The number of keys per group. Between groups the thread can be stopped.
const GROUP_COUNT: usize = 256;
/// The number of collections that one pass finds to have expired.
const DUE_COUNT_MAX: usize = 1 << 16;

/// A group of deletions, and the row that goes after the last one.
pub(crate) struct Step {
    row: Vec<u8>,
    what: Dead,
    group: Vec<Item>,
}

enum Dead {
    Elements,
    Records(TreeId),
}

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

    /// Returns rows of collections whose time has come, with their owners; the time is in milliseconds since the Unix
    /// epoch.
    pub(crate) fn due(&self, now_ms: u64) -> Result<Vec<Item>, Refusal> {
        self.read(self.0.layout.due_until(now_ms), DUE_COUNT_MAX)
    }

    /// Step 3: marks a collection as dead whose time has come. The caller has a lane of the gate.
    pub(crate) fn expire(&self, (row, owner): &Item) -> Result<(), Refusal> {
        let (Some((_, id)), Some((tree, key))) = (self.0.layout.of_due(row), owner.split_first_chunk::<4>()) else {
            return Ok(());
        };
        let view = self.view(TreeId::new(u32::from_be_bytes(*tree)));
        let _locked = self.0.collections.locks.lock(view.namespace, std::iter::once(key), true);
        let mut changes = Changes::default();
        match view.find(key)? {
            // Its expiry has not passed, or has changed.
            Some(found) if found.record.id == id => return Ok(()),
            Some(_) => {}
            None => changes.delete(view.record_key(key)),
        }
        // A command may have removed the row before the lock.
        if !view.items.contains(row)? {
            return Ok(());
        }
        changes.delete(row.clone());
        changes.put(self.0.layout.dead(id), Vec::new(), Expiry::NEVER);
        changes.write(view.items)
    }

    /// Returns the next group of deletions; `None` if nothing is dead.
    pub(crate) fn next_step(&self) -> Result<Option<Step>, Refusal> {
        if let Some((row, _)) = self.read(self.0.layout.all_flushed(), 1)?.pop()
            && let Some(tree) = self.0.layout.namespace_of_flushed(&row)
        {
            let group = self.read(self.0.layout.records(tree), GROUP_COUNT)?;
            return Ok(Some(Step { row, what: Dead::Records(tree), group }));
        }
        let Some((row, _)) = self.read(self.0.layout.all_dead(), 1)?.pop() else { return Ok(None) };
        let Some(id) = self.0.layout.id_of_dead(&row) else { return Ok(None) };
        let all = (Bound::Unbounded, Bound::Unbounded);
        let group = self.read(self.0.layout.elements(id, all), GROUP_COUNT)?;
        Ok(Some(Step { row, what: Dead::Elements, group }))
    }

    /// Steps 4 to 6, for one group.
    pub(crate) fn carry_out(&self, step: &Step) -> Result<(), Refusal> {
        let items = self.0.items;
        if step.group.is_empty() {
            return items.delete(&step.row).map(drop);
        }
        let mut changes = Changes::default();
        match step.what {
            Dead::Elements => {
                let keys: Vec<&[u8]> = step.group.iter().map(|(raw, _)| &raw[..]).collect();
                let mut outcome = Ok(());
                FrontEnd::of(items.store()).multi_delete_each(&keys, |_, deleted| {
                    if let Err(error) = deleted {
                        outcome = Err(error);
                    }
                });
                return Ok(outcome?);
            }
            Dead::Records(tree) => {
                let view = self.view(tree);
                for (raw, stored) in &step.group {
                    let key = view.key_of(raw).unwrap_or_default();
                    match (Record::of(stored), items.expires_at(raw)?) {
                        (Some(record), Some(expiry)) => {
                            Collection { view, key: key.to_vec(), record, expiry }.delete(&mut changes);
                        }
                        // It has just expired, and has a due row; or it is damaged.
                        _ => changes.delete(raw.clone()),
                    }
                }
            }
        }
        changes.write(items)
    }
}
