//! Two databases of a server, whose changes go through the catalog together with keys.
//!
//! Keys that begin with `a` belong to one database, all others to the other. `clear` empties both. `batch` empties the
//! first and changes keys of both, as `EXEC` of `FLUSHDB` and puts. `compact` swaps the two and notes it under a key of
//! the store's own tree, as `EXEC` of `SWAPDB` and a put. Each is one step.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use catalog::{Catalog, DatabaseIds, Reclaim, Space, TreeId, database_name};
use engine::{BatchOp, Engine};
use testkit::{Contents, Crashed, Failure, Made, Operations, Subject};

use crate::subject::{contents_of, damage_of};

const NUMBERS: [usize; 2] = [3, 5];
const SWAPPED: &[u8] = b"swapped";

/// A way of working, sound or broken.
pub(crate) trait Steps: Send + Sync + 'static {
    /// Databases and keys change in two batches.
    const ARE_TWO: bool;
}

pub(crate) struct One;
impl Steps for One {
    const ARE_TWO: bool = false;
}
pub(crate) struct Two;
impl Steps for Two {
    const ARE_TWO: bool = true;
}

/// The databases of a store that has nothing else.
pub(crate) struct Databases<K: Made, W = One> {
    store: Crashed<K>,
    is_swapped: AtomicBool,
    steps: PhantomData<W>,
}

impl<K: Made, W: Steps> Databases<K, W> {
    fn of(store: Crashed<K>) -> Result<Self, Failure> {
        let is_swapped = AtomicBool::new(store.get(SWAPPED)?.is_some());
        Ok(Databases { store, is_swapped, steps: PhantomData })
    }

    fn engine(&self) -> &dyn Engine {
        &self.store.0
    }

    fn ids(&self) -> Result<DatabaseIds, Failure> {
        let mut ids: DatabaseIds = std::array::from_fn(|number| TreeId::new(number as u32));
        for (number, id) in ids.iter_mut().enumerate() {
            if let Some(entry) = Catalog::of(self.engine()).find(&database_name(number))? {
                *id = entry.id;
            }
        }
        Ok(ids)
    }

    /// Returns the number of the database that has this key.
    fn number_of(&self, key: &[u8]) -> usize {
        NUMBERS[usize::from(key.starts_with(b"a") == self.is_swapped.load(Ordering::Relaxed))]
    }

    fn with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<R, Failure> {
        Ok(Space::of(self.ids()?[self.number_of(key)]).with_stored(key, f))
    }

    fn assign(&self, ids: &DatabaseIds, ops: &[BatchOp<'_>]) -> Result<(), Failure> {
        let catalog = Catalog::of(self.engine());
        if W::ARE_TWO {
            catalog.assign(ids, &[], &[])?;
            self.engine().write_batch(ops)?;
        } else {
            catalog.assign(ids, &[], ops)?;
        }
        self.reclaim()
    }

    fn renew(&self, numbers: &[usize]) -> Result<DatabaseIds, Failure> {
        let mut ids = self.ids()?;
        let first = Catalog::of(self.engine()).reserve(numbers.len() as u32)?.number();
        numbers.iter().zip(first..).for_each(|(number, id)| ids[*number] = TreeId::new(id));
        Ok(ids)
    }

    fn reclaim(&self) -> Result<(), Failure> {
        let mut pass = Reclaim::of(Catalog::of(self.engine()).dead_ids()?);
        while !pass.is_done() {
            pass.step(self.engine())?;
        }
        Ok(())
    }

    fn contents(&self) -> Result<Contents, Failure> {
        let ids = self.ids()?;
        let mut contents = Contents::new();
        for number in NUMBERS {
            let own = contents_of(&self.store, Space::of(ids[number]))?;
            if let Some(key) = own.keys().find(|key| self.number_of(key) != number) {
                return Err(Failure::Other(format!("{key:x?} is in database {number}")));
            }
            contents.extend(own);
        }
        Ok(contents)
    }
}

impl<K: Made, W: Steps> Operations for Databases<K, W> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.with(key, |key| self.store.get(key))?
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.with(key, |key| self.store.put(key, value))?
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.with(key, |key| self.store.delete(key))?
    }

    /// The changes delete each key of the first database, or put it.
    fn batch(&self, changes: &[(&[u8], Option<&[u8]>)]) -> Result<(), Failure> {
        let number = self.number_of(b"a");
        let ids = self.renew(&[number])?;
        let stored: Vec<Vec<u8>> = changes
            .iter()
            .map(|(key, _)| Space::of(ids[self.number_of(key)]).with_stored(key, <[u8]>::to_vec))
            .collect();
        let ops = stored.iter().zip(changes).map(|(key, (_, value))| match value {
            Some(value) => BatchOp::Put { key, value },
            None => BatchOp::Delete { key },
        });
        self.assign(&ids, &ops.collect::<Vec<_>>())
    }

    fn clear(&self) -> Result<(), Failure> {
        self.assign(&self.renew(&NUMBERS)?, &[])
    }

    fn compact(&self) -> Result<(), Failure> {
        let mut ids = self.ids()?;
        ids.swap(NUMBERS[0], NUMBERS[1]);
        let is_swapped = !self.is_swapped.load(Ordering::Relaxed);
        let noted =
            if is_swapped { BatchOp::Put { key: SWAPPED, value: b"1" } } else { BatchOp::Delete { key: SWAPPED } };
        self.assign(&ids, &[noted])?;
        self.is_swapped.store(is_swapped, Ordering::Relaxed);
        Ok(())
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.contents()?.len() as u64)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.contents()?.iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        damage_of(&self.store)
    }
}

impl<K: Made, W: Steps> Subject for Databases<K, W> {
    type Medium = K::Medium;

    fn format(on: K::Medium) -> Result<Self, Failure> {
        let store = Crashed::<K>::format(on)?;
        let catalog = Catalog::of(&store.0);
        catalog.begin()?;
        for number in NUMBERS {
            catalog.create_with_id(&database_name(number), TreeId::new(number as u32))?;
        }
        Self::of(store)
    }

    fn open(on: K::Medium) -> Result<Self, Failure> {
        let databases = Self::of(Crashed::<K>::open(on)?)?;
        if Catalog::of(databases.engine()).find(&database_name(NUMBERS[1]))?.is_none() {
            return Err(Failure::Unfinished);
        }
        databases.reclaim()?;
        Ok(databases)
    }

    fn set_time(now_ms: u64) {
        Crashed::<K>::set_time(now_ms);
    }

    fn close(self) -> Result<(), Failure> {
        self.store.close()
    }

    fn settle(&self) -> Result<(), Failure> {
        self.store.settle()
    }
}
