//! Restoring the catalog of a repaired store, of which records may be lost.
//!
//! The store is not in use, and is made again if the repair is interrupted, so the records are written one by one.

use std::collections::{BTreeMap, BTreeSet};

use engine::{Cursor, Engine, Error};

use crate::names::Catalog;
use crate::record::{HEAD_KEY, Head, TreeRecord, id_key, name_key};
use crate::tree_id::TreeId;

/// The beginning of the names of trees whose own names are lost.
const LOST: &str = "lost:";

/// The records and keys that a repair has found.
#[derive(Default)]
struct Found {
    /// Names, and the ids that they lead to.
    names: BTreeMap<String, TreeId>,
    /// Ids, and their names; an empty one is of a dead id.
    ids: BTreeMap<TreeId, String>,
    /// Ids that have keys.
    with_keys: BTreeSet<TreeId>,
}

impl Found {
    fn note(&mut self, stored: &[u8], value: &[u8]) {
        let (name_prefix, id_prefix) = (name_key(""), id_key(TreeId::NAMELESS));
        let text = |bytes: &[u8]| str::from_utf8(bytes).map(str::to_owned);
        if let Some(id) = TreeId::of_stored(stored) {
            self.with_keys.insert(id);
        } else if let Some(name) = stored.strip_prefix(&name_prefix[..]) {
            if let (Ok(name), Ok(record)) = (text(name), TreeRecord::of(value)) {
                self.names.insert(name, record.id);
            }
        } else if let Some(id) = stored.strip_prefix(&id_prefix[..3]).and_then(|id| id.try_into().ok()) {
            let id = TreeId::new(u32::from_be_bytes(id));
            self.ids.extend(text(value).ok().map(|name| (id, name)));
        }
    }

    /// Returns the name of each id that has keys or a name. Of two names of an id, one is kept.
    fn names_by_id(&self) -> BTreeMap<TreeId, String> {
        let mut by_id: BTreeMap<_, _> = self.names.iter().map(|(name, id)| (*id, name.clone())).collect();
        let is_dead = |id: &TreeId| self.ids.get(id).is_some_and(String::is_empty);
        for id in self.with_keys.iter().filter(|id| **id != TreeId::NAMELESS && !is_dead(id)) {
            let own = self.ids.get(id).filter(|name| !self.names.contains_key(*name));
            by_id.entry(*id).or_insert_with(|| own.cloned().unwrap_or_else(|| format!("{LOST}{id}")));
        }
        by_id
    }
}

/// Makes the records of a repaired store fit its keys: keys of ids without a name become trees `lost:ID`. Does
/// nothing to a store without named trees. No other thread uses the store.
///
/// # Errors
/// As for [`engine::Writes::put`].
pub fn mend(engine: &dyn Engine) -> Result<(), Error> {
    let catalog = Catalog::of(engine);
    if !engine.has_trees() {
        return Ok(());
    }
    let (mut found, mut cursor) = (Found::default(), Cursor::default());
    while !cursor.is_done() {
        cursor = engine.walk(cursor, &mut |stored, value, _| found.note(stored, value))?;
    }
    let by_id = found.names_by_id();
    let without_name = || found.ids.iter().filter(|(id, _)| !by_id.contains_key(id));
    for (id, _) in without_name().filter(|(_, name)| !name.is_empty()) {
        engine.delete(&id_key(*id))?;
    }
    for (id, name) in &by_id {
        let record = match catalog.record(name)? {
            Some((_, record)) => TreeRecord { id: *id, ..record },
            None => TreeRecord::new(*id, catalog.now_ms()),
        };
        engine.put(&name_key(name), &record.bytes())?;
        engine.put(&id_key(*id), name.as_bytes())?;
    }
    let stray = found.names.iter().filter(|(name, id)| by_id.get(id) != Some(*name));
    stray.map(|(name, _)| name_key(name)).try_for_each(|key| engine.delete(&key).map(drop))?;
    let last = by_id.keys().chain(found.ids.keys()).max().map_or(0, |id| id.number());
    let head = Head {
        next: TreeId::new(last.saturating_add(1).max(TreeId::FIRST.number())),
        tree_count: by_id.len() as u32,
        dead_count: without_name().filter(|(_, name)| name.is_empty()).count() as u32,
        ..Head::NEW
    };
    engine.put(&HEAD_KEY, &head.bytes())
}
