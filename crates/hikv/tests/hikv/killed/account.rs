//! The expected contents of the store.

use std::collections::BTreeMap;

use hikv::Store;
use testkit::Stamped;

use crate::killed::changes::{Change, KEY_COUNT, THREAD_COUNT, changes, name, standing_value};

/// The value of each key, and the changes whose outcome is unknown.
#[derive(Default)]
pub(crate) struct Account {
    held: BTreeMap<u64, Vec<u8>>,
    in_flight: Vec<Change>,
}

impl Account {
    /// Puts values that no round changes.
    pub(crate) fn put_standing(&mut self, store: &Store, count: u64) {
        for key in KEY_COUNT..KEY_COUNT + count {
            store.put(name(key), standing_value(key)).unwrap();
            self.held.insert(key, standing_value(key));
        }
    }

    /// Adds the changes of a round: for each thread, as many as were acknowledged.
    pub(crate) fn enter(&mut self, round: u64, acknowledged: [usize; THREAD_COUNT as usize]) {
        for (thread, count) in (0..).zip(acknowledged) {
            let mut changes = changes(round, thread);
            changes.by_ref().take(count).for_each(|change| self.make(change));
            self.in_flight.extend(changes.next());
        }
    }

    fn make(&mut self, Change { key, value }: Change) {
        match value {
            Some(value) => drop(self.held.insert(key, value)),
            None => drop(self.held.remove(&key)),
        }
    }

    /// Compares the expected contents with `store`. A change in flight counts as made if the store has it.
    pub(crate) fn compare(&mut self, store: &Store) {
        for change in std::mem::take(&mut self.in_flight) {
            if store.get(name(change.key)).unwrap().map(Vec::from) == change.value {
                self.make(change);
            }
        }
        (0..KEY_COUNT).for_each(|key| self.compare_key(key, store.get(name(key)).unwrap().as_deref()));
        self.compare_walk(store);
        assert_eq!(store.len().unwrap(), self.held.len() as u64);
        let report = store.verify(|_| {}).unwrap();
        assert_eq!((report.items, report.damage), (self.held.len() as u64, vec![]));
    }

    fn compare_key(&self, key: u64, found: Option<&[u8]>) {
        let held = self.held.get(&key).map(Vec::as_slice);
        let what = |value: Option<&[u8]>| value.map(Stamped::read);
        assert!(found == held, "{}: {:?} was found, {:?} was acknowledged", name(key), what(found), what(held));
    }

    fn compare_walk(&self, store: &Store) {
        let mut shown = BTreeMap::new();
        let walked = store.for_each(|key, value| {
            assert_eq!(shown.insert(key.to_vec(), value.to_vec()), None, "a key was shown twice");
        });
        walked.unwrap();
        let held = self.held.iter().map(|(&key, value)| (name(key).into_bytes(), value.clone()));
        assert!(shown == held.collect(), "a walk shows something else than gets");
    }
}
