//! A named tree as a store of its own. Its changes go through the catalog in every way there is.
//!
//! `clear` empties the tree by one of three ways in turn, each of whose steps may crash; a crash leaves the tree full
//! or empty. `compact` changes names and leaves the contents.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use catalog::{Catalog, Prefix, Reclaim, Space, TreeId};
use engine::{BatchOp, Engine, Error};
use parking_lot::Mutex;
use testkit::{Contents, Crashed, Failure, Made, Operations, Subject};

const NAME: &str = "t";
const OTHER: &str = "other";
/// Holds the contents between two swaps.
const SPARE: &str = "spare";

/// A way of working, sound or broken.
pub(crate) trait Way: Send + Sync + 'static {
    /// The new id is used before the catalog's batch is written.
    const USES_ID_EARLY: bool = false;
    /// The record of a dead id goes before its keys.
    const FORGETS_FIRST: bool = false;
    /// The keys of the tree are deleted one by one.
    const CLEARS_ONE_BY_ONE: bool = false;
    /// The flag and the keys that look marked change in two batches.
    const BEGINS_IN_TWO: bool = false;
}

pub(crate) struct Sound;
impl Way for Sound {}
pub(crate) struct UsesIdEarly;
impl Way for UsesIdEarly {
    const USES_ID_EARLY: bool = true;
}
pub(crate) struct ForgetsFirst;
impl Way for ForgetsFirst {
    const FORGETS_FIRST: bool = true;
}
pub(crate) struct ClearsOneByOne;
impl Way for ClearsOneByOne {
    const CLEARS_ONE_BY_ONE: bool = true;
}
pub(crate) struct BeginsInTwo;
impl Way for BeginsInTwo {
    const BEGINS_IN_TWO: bool = true;
}

/// Returns the items of a space.
pub(crate) fn contents_of<K: Made>(store: &Crashed<K>, space: Space) -> Result<Contents, Failure> {
    let mut contents = Contents::new();
    store.for_each(&mut |stored, value| {
        contents.extend(space.key_of(stored).map(|key| (key.to_vec(), value.to_vec())));
    })?;
    Ok(contents)
}

/// Checks the store and its catalog.
pub(crate) fn damage_of<K: Made>(store: &Crashed<K>) -> Result<Vec<String>, Failure> {
    let mut damage = store.check()?;
    catalog::check(&store.0, &mut |found| damage.push(found))?;
    Ok(damage)
}

/// The named tree of a store that has nothing else.
pub(crate) struct OneTree<K: Made, W = Sound> {
    store: Crashed<K>,
    space: Mutex<Space>,
    turn: AtomicUsize,
    way: PhantomData<W>,
}

impl<K: Made, W: Way> OneTree<K, W> {
    fn of(store: Crashed<K>) -> Result<Self, Failure> {
        let tree = OneTree { store, space: Mutex::new(Space::Whole), turn: AtomicUsize::new(0), way: PhantomData };
        tree.find().map(|()| tree)
    }

    fn engine(&self) -> &dyn Engine {
        &self.store.0
    }

    fn catalog(&self) -> Catalog<'_> {
        Catalog::of(self.engine())
    }

    fn find(&self) -> Result<(), Failure> {
        let entry = self.catalog().find(NAME)?.ok_or(Failure::Unfinished)?;
        *self.space.lock() = Space::of(entry.id);
        Ok(())
    }

    fn with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
        let space = *self.space.lock();
        space.with_stored(key, f)
    }

    /// Deletes the keys of dead ids.
    fn reclaim(&self) -> Result<(), Error> {
        let dead = self.catalog().dead_ids()?;
        if W::FORGETS_FIRST {
            dead.iter().try_for_each(|id| self.catalog().forget(*id))?;
        }
        let mut pass = Reclaim::of(dead);
        while !pass.is_done() {
            pass.step(self.engine())?;
        }
        Ok(())
    }

    fn clear_by(&self, turn: usize) -> Result<(), Error> {
        let catalog = self.catalog();
        match turn % 3 {
            0 => catalog.clear(NAME).map(drop),
            1 => {
                catalog.create(OTHER)?;
                catalog.swap([NAME, OTHER])?;
                catalog.drop_tree(OTHER).map(drop)
            }
            _ => {
                catalog.rename(NAME, OTHER)?;
                catalog.clear(OTHER)?;
                catalog.rename(OTHER, NAME)
            }
        }
    }

    fn stored_contents(&self) -> Result<Contents, Failure> {
        contents_of(&self.store, *self.space.lock())
    }
}

impl<K: Made, W: Way> Operations for OneTree<K, W> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.with(key, |key| self.store.get(key))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.with(key, |key| self.store.put(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.with(key, |key| self.store.delete(key))
    }

    fn clear(&self) -> Result<(), Failure> {
        if W::CLEARS_ONE_BY_ONE {
            return self.stored_contents()?.keys().try_for_each(|key| self.delete(key).map(drop));
        }
        if W::USES_ID_EARLY {
            // The next id is known; the batch is written by the next change of a name.
            let ids = self.catalog().entries()?.into_iter().map(|entry| entry.id.number());
            *self.space.lock() = Space::Prefixed(Prefix::of(TreeId::new(ids.max().unwrap_or(15) + 1)));
            return Ok(());
        }
        self.clear_by(self.turn.fetch_add(1, Ordering::Relaxed))?;
        self.find()?;
        Ok(self.reclaim()?)
    }

    /// Renames the tree, and swaps it twice with another.
    fn compact(&self) -> Result<(), Failure> {
        let catalog = self.catalog();
        catalog.rename(NAME, OTHER)?;
        catalog.rename(OTHER, NAME)?;
        catalog.create(SPARE)?;
        catalog.swap([NAME, SPARE])?;
        catalog.swap([NAME, SPARE])?;
        catalog.drop_tree(SPARE)?;
        Ok(self.reclaim()?)
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.stored_contents()?.len() as u64)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.stored_contents()?.iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        damage_of(&self.store)
    }
}

impl<K: Made, W: Way> Subject for OneTree<K, W> {
    type Medium = K::Medium;

    fn format(on: K::Medium) -> Result<Self, Failure> {
        let store = Crashed::<K>::format(on)?;
        let catalog = Catalog::of(&store.0);
        catalog.begin()?;
        catalog.create(NAME)?;
        Self::of(store)
    }

    /// Goes on with an interrupted change: the tree may have its other name, or another tree may be left.
    fn open(on: K::Medium) -> Result<Self, Failure> {
        let store = Crashed::<K>::open(on)?;
        let catalog = Catalog::of(&store.0);
        match (catalog.find(NAME)?, catalog.find(OTHER)?) {
            (None, Some(_)) => catalog.rename(OTHER, NAME)?,
            (Some(_), Some(_)) => catalog.drop_tree(OTHER).map(drop)?,
            _ => {}
        }
        if let (Some(own), Some(spare)) = (catalog.find(NAME)?, catalog.find(SPARE)?) {
            // The contents have the older id.
            if spare.id < own.id {
                catalog.swap([NAME, SPARE])?;
            }
            catalog.drop_tree(SPARE)?;
        }
        let tree = Self::of(store)?;
        tree.reclaim()?;
        Ok(tree)
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

/// The nameless tree of a store that gets its catalog by `compact`.
pub(crate) struct Nameless<K: Made, W = Sound>(Crashed<K>, PhantomData<W>);

impl<K: Made, W: Way> Nameless<K, W> {
    fn space(&self) -> Result<Space, Failure> {
        Ok(if Catalog::of(&self.0.0).is_begun()? { Space::Nameless } else { Space::Whole })
    }

    fn stored_contents(&self) -> Result<Contents, Failure> {
        contents_of(&self.0, self.space()?)
    }
}

impl<K: Made, W: Way> Operations for Nameless<K, W> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.space()?.with_stored(key, |key| self.0.get(key))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.space()?.with_stored(key, |key| self.0.put(key, value))
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        self.space()?.with_stored(key, |key| self.0.delete(key))
    }

    fn clear(&self) -> Result<(), Failure> {
        self.0.clear()
    }

    fn compact(&self) -> Result<(), Failure> {
        if W::BEGINS_IN_TWO && self.space()? == Space::Whole {
            let engine: &dyn Engine = &self.0.0;
            for (key, value) in self.stored_contents()?.iter().filter(|(key, _)| catalog::is_marked(key)) {
                Space::Nameless.with_stored(key, |stored| {
                    engine.write_batch(&[BatchOp::Delete { key }, BatchOp::Put { key: stored, value }])
                })?;
            }
            // Nothing looks marked any more, except for these keys, which the catalog would rename again.
        }
        let catalog = Catalog::of(&self.0.0);
        catalog.begin()?;
        if catalog.find(NAME)?.is_none() {
            catalog.create(NAME)?;
        }
        Ok(())
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.stored_contents()?.len() as u64)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.stored_contents()?.iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }

    fn check(&self) -> Result<Vec<String>, Failure> {
        damage_of(&self.0)
    }
}

impl<K: Made, W: Way> Subject for Nameless<K, W> {
    type Medium = K::Medium;

    fn format(on: K::Medium) -> Result<Self, Failure> {
        Ok(Nameless(Crashed::<K>::format(on)?, PhantomData))
    }

    fn open(on: K::Medium) -> Result<Self, Failure> {
        Ok(Nameless(Crashed::<K>::open(on)?, PhantomData))
    }

    fn set_time(now_ms: u64) {
        Crashed::<K>::set_time(now_ms);
    }

    fn close(self) -> Result<(), Failure> {
        self.0.close()
    }

    fn settle(&self) -> Result<(), Failure> {
        self.0.settle()
    }
}
