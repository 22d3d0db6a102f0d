//! The history judge's own test: a correct store passes under contention, and each broken variant is caught.

use std::ops::{Bound, ControlFlow};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use testkit::{Contention, Contents, Direction, Disorder, Failure, Operations, Stamped, Visit, contend};

/// The occasional misbehaviour of a map.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Habit {
    Honest,
    /// Returns the previous value.
    ReadsStale,
    /// Acknowledges a put without storing it.
    LosesUpdates,
    /// Reports a key as deleted that it keeps.
    KeepsDeleted,
    /// Checks whether the key exists, and deletes it in a second step.
    DeletesInTwoSteps,
    /// Compares, and swaps in a second step.
    SwapsInTwoSteps,
    /// Clears all keys except one.
    ClearsNearlyAll,
    /// Returns a value with one wrong byte.
    Tears,
    /// Returns another key's value.
    MixesKeysUp,
    /// Scans miss the last put.
    ScansStale,
    /// Scans leave out a key.
    ScansSkip,
    /// Scans show a key twice.
    ScansTwice,
}

struct Map {
    contents: Mutex<Contents>,
    /// The value that was replaced last.
    replaced: Mutex<Vec<u8>>,
    call_count: AtomicU64,
    habit: Habit,
}

/// A broken variant misbehaves in one call out of this many.
const RARELY: u64 = 50;

impl Map {
    fn new(habit: Habit) -> Map {
        let (contents, replaced, call_count) = Default::default();
        Map { contents, replaced, call_count, habit }
    }

    /// Returns true if this call is to misbehave.
    fn gives_in_to(&self, habit: Habit) -> bool {
        self.habit == habit && self.call_count.fetch_add(1, Ordering::Relaxed) % RARELY == RARELY - 1
    }
}

impl Operations for Map {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let value = self.contents.lock().unwrap().get(key).cloned();
        let Some(mut value) = value else { return Ok(None) };
        if self.gives_in_to(Habit::Tears) {
            let last = value.len() - 1;
            value[last] ^= 1;
        }
        if self.gives_in_to(Habit::MixesKeysUp) {
            value = Stamped { key: u64::MAX, put: 0 }.value(0);
        }
        if self.gives_in_to(Habit::ReadsStale) {
            let replaced = self.replaced.lock().unwrap().clone();
            let is_of_this_key =
                |value: &Vec<u8>| Stamped::read(value).is_some_and(|old| old.key.to_be_bytes() == *key);
            return Ok(Some(replaced).filter(is_of_this_key).or(Some(value)));
        }
        Ok(Some(value))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        if self.gives_in_to(Habit::LosesUpdates) {
            return Ok(());
        }
        let before = self.contents.lock().unwrap().insert(key.to_vec(), value.to_vec());
        *self.replaced.lock().unwrap() = before.unwrap_or_default();
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<bool, Failure> {
        if self.gives_in_to(Habit::KeepsDeleted) {
            return Ok(self.contents.lock().unwrap().contains_key(key));
        }
        if self.habit == Habit::DeletesInTwoSteps {
            let was_there = self.contents.lock().unwrap().contains_key(key);
            std::thread::yield_now();
            self.contents.lock().unwrap().remove(key);
            return Ok(was_there);
        }
        Ok(self.contents.lock().unwrap().remove(key).is_some())
    }

    fn compare_and_swap(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool, Failure> {
        let mut contents = self.contents.lock().unwrap();
        let is_equal = contents.get(key).map(Vec::as_slice) == expected;
        if self.habit == Habit::SwapsInTwoSteps {
            drop(contents);
            std::thread::yield_now();
            contents = self.contents.lock().unwrap();
        }
        if is_equal {
            match new {
                Some(new) => _ = contents.insert(key.to_vec(), new.to_vec()),
                None => _ = contents.remove(key),
            }
        }
        Ok(is_equal)
    }

    fn scan(&self, from: Bound<&[u8]>, direction: Direction, each: &mut Visit<'_>) -> Result<bool, Failure> {
        let contents = self.contents.lock().unwrap().clone();
        let range = match direction {
            Direction::Forward => (from.map(<[u8]>::to_vec), Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, from.map(<[u8]>::to_vec)),
        };
        let mut items: Vec<_> = contents.range(range).map(|(key, value)| (key.clone(), value.clone())).collect();
        if direction == Direction::Backward {
            items.reverse();
        }
        if let Some((first, value)) = items.first_mut() {
            let replaced = self.replaced.lock().unwrap().clone();
            let is_of_this_key = Stamped::read(&replaced).is_some_and(|old| old.key.to_be_bytes() == **first);
            if is_of_this_key && self.gives_in_to(Habit::ScansStale) {
                *value = replaced;
            }
        }
        if self.gives_in_to(Habit::ScansSkip) {
            items.pop();
        }
        if self.gives_in_to(Habit::ScansTwice) {
            items.extend(items.last().cloned());
        }
        let _ended: ControlFlow<()> = items.iter().try_for_each(|(key, value)| each(key, value));
        Ok(true)
    }

    fn clear(&self) -> Result<(), Failure> {
        let mut contents = self.contents.lock().unwrap();
        let kept = contents.pop_first().filter(|_| self.habit == Habit::ClearsNearlyAll);
        contents.clear();
        contents.extend(kept);
        Ok(())
    }

    fn len(&self) -> Result<u64, Failure> {
        Ok(self.contents.lock().unwrap().len() as u64)
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        self.contents.lock().unwrap().iter().for_each(|(key, value)| each(key, value));
        Ok(())
    }
}

const HEAVY: Contention = Contention {
    thread_count: 4,
    call_count: 10_000,
    key_count: 3,
    swaps: true,
    scans: true,
    clear_every: 500,
    seed: 1,
};

#[test]
fn an_honest_store_passes() {
    let event_count = contend(&Map::new(Habit::Honest), &HEAVY).unwrap_or_else(|disorder| panic!("{disorder}"));
    assert!(event_count > 40_000);
}

#[test]
fn every_broken_variant_is_caught() {
    for habit in [
        Habit::ReadsStale,
        Habit::LosesUpdates,
        Habit::KeepsDeleted,
        Habit::DeletesInTwoSteps,
        Habit::SwapsInTwoSteps,
        Habit::ClearsNearlyAll,
        Habit::ScansStale,
        Habit::ScansSkip,
    ] {
        let caught = contend(&Map::new(habit), &HEAVY);
        assert!(matches!(caught, Err(Disorder::Anomaly(_))), "{habit:?}: {caught:?}");
    }
    assert!(matches!(contend(&Map::new(Habit::Tears), &HEAVY), Err(Disorder::Torn { .. })));
    assert!(matches!(contend(&Map::new(Habit::ScansTwice), &HEAVY), Err(Disorder::Unordered { .. })));
    assert!(matches!(contend(&Map::new(Habit::MixesKeysUp), &HEAVY), Err(Disorder::Foreign { .. })));
}
