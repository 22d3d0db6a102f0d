//! Checking the catalog and the owners of all stored keys.

use std::collections::BTreeMap;

use engine::{Cursor, Engine, Error};

use crate::names::Catalog;
use crate::record::{TreeRecord, id_key, name_key};
use crate::tree_id::{TreeId, is_marked};

/// Calls `damaged` with a description of each contradiction: between names and ids, in the counts of the head, and
/// of stored keys that belong to no tree. Visits all keys. No thread may write during the check.
///
/// # Errors
/// As for [`Engine::walk`].
pub fn check(engine: &dyn Engine, damaged: &mut dyn FnMut(String)) -> Result<(), Error> {
    let catalog = Catalog::of(engine);
    if !engine.has_trees() {
        return Ok(());
    }
    let Some((_, head)) = catalog.head()? else { return Ok(()) };
    let mut names = BTreeMap::new();
    catalog.for_each_id(|id, name| {
        names.insert(id, name.map(str::to_owned));
        Ok(())
    })?;
    let living = names.iter().filter_map(|(id, name)| Some((*id, name.as_deref()?)));
    for (id, name) in living.clone() {
        if catalog.record(name)?.is_none_or(|(_, record)| record.id != id) {
            damaged(format!("tree {id} has the name '{name}', which does not lead to it"));
        }
    }
    let counts = (living.count() as u32, names.values().filter(|name| name.is_none()).count() as u32);
    if counts != (head.tree_count, head.dead_count) {
        let (trees, dead) = counts;
        damaged(format!(
            "the catalog counts {} trees and {} dead ids; it has {trees} and {dead}",
            head.tree_count, head.dead_count
        ));
    }
    check_keys(engine, &names, damaged)
}

/// Finds stored keys without a tree, and records of names that no id leads to.
fn check_keys(
    engine: &dyn Engine,
    names: &BTreeMap<TreeId, Option<String>>,
    damaged: &mut dyn FnMut(String),
) -> Result<(), Error> {
    let (mut unknown, mut stray_count) = (BTreeMap::new(), 0u64);
    let (mut records, name_prefix, id_prefix) = (Vec::new(), name_key(""), id_key(TreeId::NAMELESS));
    let mut cursor = Cursor::default();
    while !cursor.is_done() {
        cursor = engine.walk(cursor, &mut |stored, value, _| match TreeId::of_stored(stored) {
            Some(id) if id == TreeId::NAMELESS || names.contains_key(&id) => {}
            Some(id) => *unknown.entry(id).or_insert(0u64) += 1,
            None if stored.starts_with(&name_prefix) => records.push((stored.to_vec(), value.to_vec())),
            None if stored == crate::HEAD_KEY || stored.starts_with(&id_prefix[..3]) => {}
            None => stray_count += u64::from(is_marked(stored)),
        })?;
    }
    for (key, value) in records {
        let name = String::from_utf8_lossy(&key[name_prefix.len()..]).into_owned();
        let id = TreeRecord::of(&value).map(|record| record.id);
        if !id.is_ok_and(|id| names.get(&id).is_some_and(|known| known.as_deref() == Some(&*name))) {
            damaged(format!("the name '{name}' has a tree that the catalog does not know"));
        }
    }
    unknown.into_iter().for_each(|(id, count)| damaged(format!("{count} keys belong to tree {id}, which is unknown")));
    if stray_count > 0 {
        damaged(format!("{stray_count} keys belong to no tree"));
    }
    Ok(())
}
