//! Reading the catalog.

use engine::{Engine, Error, Version};

use crate::databases::{DATABASE_COUNT, database_name};
use crate::record::{HEAD_KEY, Head, TreeRecord, id_key, name_key};
use crate::space::Space;
use crate::tree_id::{CATALOG, MARK, TreeId};

/// The longest name of a tree.
pub const NAME_BYTES_MAX: usize = 255;
/// The beginning of names that belong to hikv's own front ends.
pub const RESERVED: &str = "hikv:";
/// The most trees of a store.
pub const TREE_COUNT_MAX: u32 = 65_000;

/// The key of the server's table of databases in a store without a catalog.
pub(crate) const TABLE_KEY: [u8; 2] = [MARK, CATALOG];

/// A tree of the catalog.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TreeEntry {
    /// The name.
    pub name: String,
    /// The number.
    pub id: TreeId,
    /// The time of creation, in milliseconds after the Unix epoch.
    pub created_ms: u64,
}

/// Returns an error if a tree cannot be created under this name.
///
/// # Errors
/// [`Error::TreeName`].
pub fn check_name(name: &str) -> Result<(), Error> {
    let refused = |why| Err(Error::TreeName { name: name.into(), why });
    match name.len() {
        0 => refused("it is empty"),
        NAME_BYTES_MAX.. if name.len() > NAME_BYTES_MAX => refused("it has more than 255 bytes"),
        _ if name.starts_with(RESERVED) => refused("names that begin with 'hikv:' are reserved"),
        _ => Ok(()),
    }
}

/// The catalog of an engine's store.
#[derive(Clone, Copy)]
pub struct Catalog<'e> {
    pub(crate) engine: &'e dyn Engine,
}

impl<'e> Catalog<'e> {
    /// Returns the catalog of the store that `engine` holds.
    #[must_use]
    pub fn of(engine: &'e dyn Engine) -> Catalog<'e> {
        Catalog { engine }
    }

    /// Returns true if the store has a catalog. Costs no read in a store that never had a named tree.
    ///
    /// # Errors
    /// As for [`engine::Reads::get`].
    pub fn is_begun(self) -> Result<bool, Error> {
        Ok(self.engine.has_trees() && self.head()?.is_some())
    }

    /// Returns the tree of this name. In a server's store without a catalog, these are the databases.
    ///
    /// # Errors
    /// As for [`engine::Reads::get`].
    pub fn find(self, name: &str) -> Result<Option<TreeEntry>, Error> {
        if self.is_begun()? {
            return Ok(self.record(name)?.map(|(_, record)| entry(name, &record)));
        }
        Ok(self.databases()?.into_iter().find(|entry| entry.name == name))
    }

    /// Returns all trees with names, in the order of their names.
    ///
    /// # Errors
    /// As for [`engine::Reads::get`].
    pub fn entries(self) -> Result<Vec<TreeEntry>, Error> {
        if !self.is_begun()? {
            return self.databases();
        }
        let mut entries = Vec::new();
        self.for_each_id(|_, name| {
            let Some(name) = name else { return Ok(()) };
            if let Some((_, record)) = self.record(name)? {
                entries.push(entry(name, &record));
            }
            Ok(())
        })?;
        entries.sort();
        Ok(entries)
    }

    /// Returns the ids whose keys await their deletion.
    ///
    /// # Errors
    /// As for [`engine::Reads::get`].
    pub fn dead_ids(self) -> Result<Vec<TreeId>, Error> {
        let mut dead = Vec::new();
        if self.engine.has_trees() && self.head()?.is_some_and(|(_, head)| head.dead_count > 0) {
            self.for_each_id(|id, name| {
                dead.extend(name.is_none().then_some(id));
                Ok(())
            })?;
        }
        Ok(dead)
    }

    /// Calls `each` with every id that has a record, and with its name unless it is dead.
    pub(crate) fn for_each_id(
        self,
        mut each: impl FnMut(TreeId, Option<&str>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some((_, head)) = self.head()? else { return Ok(()) };
        let numbers = (0..TreeId::FIRST.number()).chain(head.least.number()..head.next.number());
        for id in numbers.map(TreeId::new) {
            let Some((_, name)) = self.read(&id_key(id))? else { continue };
            let name = str::from_utf8(&name).map_err(|_| damaged("a tree's name in the catalog"))?;
            each(id, Some(name).filter(|name| !name.is_empty()))?;
        }
        Ok(())
    }

    /// Returns the databases of a server's store that has no catalog. Those that were never used are left out.
    pub(crate) fn databases(self) -> Result<Vec<TreeEntry>, Error> {
        let Some((_, table)) = self.read(&TABLE_KEY)? else { return Ok(Vec::new()) };
        let Some((ids, used)) = table.split_first_chunk::<DATABASE_COUNT>() else { return Ok(Vec::new()) };
        let Ok(used) = used.try_into().map(u16::from_le_bytes) else { return Ok(Vec::new()) };
        if !(0..DATABASE_COUNT as u8).all(|id| ids.contains(&id)) {
            return Ok(Vec::new());
        }
        let in_use = |(db, &id): (usize, &u8)| (id == 0 || used & 1 << id != 0).then_some((db, id));
        let databases = ids.iter().enumerate().filter_map(in_use).map(|(db, id)| TreeEntry {
            name: database_name(db),
            id: TreeId::new(u32::from(id)),
            created_ms: 0,
        });
        Ok(databases.collect())
    }

    pub(crate) fn head(self) -> Result<Option<(Version, Head)>, Error> {
        Ok(self.read(&HEAD_KEY)?.and_then(|(version, head)| Some((version, Head::of(&head)?))))
    }

    pub(crate) fn record(self, name: &str) -> Result<Option<(Version, TreeRecord)>, Error> {
        let read = self.read(&name_key(name))?;
        read.map(|(version, record)| Ok((version, TreeRecord::of(&record)?))).transpose()
    }

    pub(crate) fn read(self, key: &[u8]) -> Result<Option<(Version, Vec<u8>)>, Error> {
        let mut found = None;
        self.engine.get(key, &mut |witness, _, value| found = Some((witness.version(key, value), value.to_vec())))?;
        Ok(found)
    }
}

/// Returns the space of the tree of a name, or of the nameless one, at the moment at which `read` reads keys. `None` if
/// no tree had that name.
///
/// # Errors
/// Those of `read`; [`Error::Corrupt`].
pub fn space_at(
    name: Option<&str>,
    read: impl Fn(&[u8]) -> Result<Option<Vec<u8>>, Error>,
) -> Result<Option<Space>, Error> {
    let is_begun = read(&HEAD_KEY)?.is_some_and(|head| Head::of(&head).is_some());
    match name {
        None => Ok(Some(if is_begun { Space::Nameless } else { Space::Whole })),
        Some(_) if !is_begun => Ok(None),
        Some(name) => match read(&name_key(name))? {
            Some(record) => Ok(Some(Space::of(TreeRecord::of(&record)?.id))),
            None => Ok(None),
        },
    }
}

fn entry(name: &str, record: &TreeRecord) -> TreeEntry {
    TreeEntry { name: name.to_owned(), id: record.id, created_ms: record.created_ms }
}

pub(crate) fn damaged(what: &'static str) -> Error {
    Error::Corrupt { offset: 0, what }
}
