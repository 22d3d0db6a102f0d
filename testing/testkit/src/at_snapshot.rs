//! A store at a snapshot, read like any store.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use crate::read::{read, refused};
use crate::rival::is_rival;
use crate::script::Key;
use crate::subject::{Contents, Direction, Failure, Operations, Subject, Visit};
use crate::violation::Problem;

/// A live snapshot, and the store's contents when it was taken.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) number: u64,
    pub(crate) contents: Arc<Contents>,
}

impl Taken {
    /// Checks that the snapshot shows exactly its contents in every way of reading it; by scans only if `in_order` is
    /// set. The second writer's key is ignored, because it may have been written before or after the snapshot.
    pub(crate) fn compare<S: Subject>(
        &self,
        store: &S,
        keys: &BTreeSet<Vec<u8>>,
        in_order: bool,
    ) -> Result<(), Problem> {
        let found = read(&AtSnapshot { store, number: self.number, in_order }, keys)?;
        let mut all = self.contents.keys().chain(found.keys()).filter(|key| !is_rival(key));
        match all.find(|key| self.contents.get(*key) != found.get(*key)) {
            Some(key) => Err(Problem::Snapshot(format!("a wrong value, or none, of {}", Key(key)))),
            None => Ok(()),
        }
    }

    /// Like [`Taken::compare`], but only by lookups: for visitors.
    pub(crate) fn compare_lookups<S: Subject>(&self, store: &S, keys: &BTreeSet<Vec<u8>>) -> Result<(), Problem> {
        for key in keys {
            let value = store.get_at(self.number, key).map_err(refused("get at a snapshot by a visitor"))?;
            if value.as_ref() != self.contents.get(key) {
                return Err(Problem::Snapshot(format!("a wrong value, or none, of {} between two steps", Key(key))));
            }
        }
        Ok(())
    }
}

struct AtSnapshot<'a, S> {
    store: &'a S,
    number: u64,
    in_order: bool,
}

fn read_only() -> Failure {
    Failure::Other("a snapshot is read-only".into())
}

impl<S: Subject> Operations for AtSnapshot<'_, S> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        self.store.get_at(self.number, key)
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<(), Failure> {
        Err(read_only())
    }

    fn delete(&self, _: &[u8]) -> Result<bool, Failure> {
        Err(read_only())
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        if self.in_order { self.store.scan_at(self.number, from, direction, each) } else { Ok(false) }
    }

    fn clear(&self) -> Result<(), Failure> {
        Err(read_only())
    }

    /// Counts the listing, because a snapshot has no count.
    fn len(&self) -> Result<u64, Failure> {
        let mut count = 0;
        self.for_each(&mut |_, _| count += 1)?;
        Ok(count)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.store.for_each_at(self.number, each)
    }
}
