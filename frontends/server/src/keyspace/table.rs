//! The table of databases: the namespace of each, and which namespaces were used.

use catalog::{DATABASE_COUNT, DatabaseIds, RESERVED, TreeId};
use hikv::Store;

/// A byte for each database, and the bits of the used namespaces.
const TABLE_BYTES: usize = DATABASE_COUNT + 2;

/// The namespaces of all databases, and which of them were used.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(super) ids: DatabaseIds,
    pub(super) used: u16,
}

impl Table {
    pub(super) const NEW: Table = {
        let (mut ids, mut db) = ([TreeId::NAMELESS; DATABASE_COUNT], 0);
        while db < DATABASE_COUNT {
            ids[db] = TreeId::new(db as u32);
            db += 1;
        }
        Table { ids, used: 0 }
    };

    /// Returns the table of a stored one; `None` if it is invalid: each namespace must occur once.
    pub(super) fn of(stored: &[u8]) -> Option<Table> {
        let (ids, used) = stored.split_first_chunk::<DATABASE_COUNT>()?;
        let used = u16::from_le_bytes(used.try_into().ok()?);
        let is_whole = (0..DATABASE_COUNT as u8).all(|id| ids.contains(&id));
        is_whole.then(|| Table { ids: ids.map(|id| TreeId::new(id.into())), used })
    }

    /// Returns the table of a store with a catalog.
    pub(super) fn of_trees(store: &Store) -> Result<Table, hikv::Error> {
        let mut table = Table::NEW;
        for tree in store.trees()? {
            let db = tree.name.strip_prefix(RESERVED).and_then(|db| db.parse::<usize>().ok());
            if let Some(id) = db.and_then(|db| table.ids.get_mut(db)) {
                *id = TreeId::new(tree.id);
                table.used |= 1u16.checked_shl(tree.id).unwrap_or(0);
            }
        }
        Ok(table)
    }

    pub(super) fn bytes(&self) -> [u8; TABLE_BYTES] {
        let mut bytes = [0; TABLE_BYTES];
        bytes.iter_mut().zip(self.ids).for_each(|(byte, id)| *byte = id.number() as u8);
        bytes[DATABASE_COUNT..].copy_from_slice(&self.used.to_le_bytes());
        bytes
    }
}
