//! A share of the cache: copies of values by key, in the exact order of their last use.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};

use crate::key::Key;

/// No slot.
const NONE: u32 = u32::MAX;

/// A key with its hash, which decides the shard also.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HashedKey {
    pub(super) signature: u64,
    pub(super) key: Key,
}

impl Hash for HashedKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.signature);
    }
}

/// Uses the signature as it is.
#[derive(Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a hashed key writes one word");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

#[derive(Default)]
struct MakeReady;

impl BuildHasher for MakeReady {
    type Hasher = Ready;

    fn build_hasher(&self) -> Ready {
        Ready::default()
    }
}

struct Slot {
    key: HashedKey,
    value: Box<[u8]>,
    /// The slot used next after this one, and the one used before.
    newer: u32,
    older: u32,
}

/// The bytes of a copy: the slot, its entry in the map with a control byte, and the value.
fn copy_bytes(value: &[u8]) -> u64 {
    (size_of::<Slot>() + size_of::<(HashedKey, u32)>() + 1 + value.len()) as u64
}

/// A share of the cache.
pub(super) struct Shard {
    numbers: HashMap<HashedKey, u32, MakeReady>,
    slots: Vec<Slot>,
    newest: u32,
    oldest: u32,
    bytes: u64,
    bytes_max: u64,
}

impl Shard {
    pub(super) fn new(bytes_max: u64) -> Shard {
        let numbers = HashMap::with_hasher(MakeReady);
        Shard { numbers, slots: Vec::new(), newest: NONE, oldest: NONE, bytes: 0, bytes_max }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the copy, which becomes the newest.
    pub(super) fn get(&mut self, key: &HashedKey) -> Option<&[u8]> {
        let number = *self.numbers.get(key)?;
        if number != self.newest {
            self.unlink(number);
            self.link_newest(number);
        }
        Some(&self.slots[number as usize].value)
    }

    /// Copies a value, unless there is a copy. Removes the oldest copies if there is no space.
    pub(super) fn fill(&mut self, key: HashedKey, value: &[u8]) {
        if self.numbers.contains_key(&key) || copy_bytes(value) > self.bytes_max {
            return;
        }
        while self.bytes + copy_bytes(value) > self.bytes_max {
            self.remove_number(self.oldest);
        }
        let number = self.slots.len() as u32;
        self.slots.push(Slot { key, value: value.into(), newer: NONE, older: NONE });
        self.numbers.insert(key, number);
        self.bytes += copy_bytes(value);
        self.link_newest(number);
    }

    /// Changes the copy, if there is one.
    pub(super) fn change(&mut self, key: &HashedKey, value: &[u8]) {
        let Some(&number) = self.numbers.get(key) else { return };
        let slot = &mut self.slots[number as usize];
        if slot.value.len() == value.len() {
            return slot.value.copy_from_slice(value);
        }
        self.remove_number(number);
        self.fill(*key, value);
    }

    /// Removes the copy, if there is one.
    pub(super) fn remove(&mut self, key: &HashedKey) {
        if let Some(&number) = self.numbers.get(key) {
            self.remove_number(number);
        }
    }

    /// Removes a slot; the last slot takes its place.
    fn remove_number(&mut self, number: u32) {
        self.unlink(number);
        let slot = self.slots.swap_remove(number as usize);
        self.numbers.remove(&slot.key);
        self.bytes -= copy_bytes(&slot.value);
        let moved = self.slots.len() as u32;
        if number == moved {
            return;
        }
        let Slot { key, newer, older, .. } = self.slots[number as usize];
        self.numbers.insert(key, number);
        self.set_older(newer, number);
        self.set_newer(older, number);
    }

    fn unlink(&mut self, number: u32) {
        let Slot { newer, older, .. } = self.slots[number as usize];
        self.set_older(newer, older);
        self.set_newer(older, newer);
    }

    fn link_newest(&mut self, number: u32) {
        let before = self.newest;
        let slot = &mut self.slots[number as usize];
        (slot.newer, slot.older) = (NONE, before);
        self.set_newer(before, number);
        self.newest = number;
    }

    /// Sets the slot behind `number` towards older ones; the newest is behind none.
    fn set_older(&mut self, number: u32, older: u32) {
        match self.slots.get_mut(number as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
    }

    fn set_newer(&mut self, number: u32, newer: u32) {
        match self.slots.get_mut(number as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(i: u64) -> HashedKey {
        HashedKey { signature: i % 7, key: Key::of_words([0, i]) }
    }

    /// Compares with a list in the order of last use.
    #[test]
    fn copies_leave_in_lru_order() {
        const COPY_COUNT: u64 = 5;
        let value = |i: u64, tag: u8| [tag.wrapping_add(i as u8); 10];
        let mut shard = Shard::new(COPY_COUNT * copy_bytes(&value(0, 0)));
        let mut model: Vec<(u64, [u8; 10])> = Vec::new();
        let mut state = 1u64;
        for round in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (i, tag) = ((state >> 33) % 9, round as u8);
            let at = model.iter().position(|(held, _)| *held == i);
            match (state >> 60) % 4 {
                0 => {
                    shard.change(&key(i), &value(i, tag));
                    at.into_iter().for_each(|at| model[at].1 = value(i, tag));
                }
                1 => {
                    shard.remove(&key(i));
                    if let Some(at) = at {
                        model.remove(at);
                    }
                }
                _ => {
                    assert_eq!(shard.get(&key(i)), at.map(|at| &model[at].1[..]), "round {round}");
                    match at {
                        Some(at) => {
                            let used = model.remove(at);
                            model.push(used);
                        }
                        None => {
                            shard.fill(key(i), &value(i, tag));
                            model.push((i, value(i, tag)));
                            if model.len() as u64 > COPY_COUNT {
                                model.remove(0);
                            }
                        }
                    }
                }
            }
            assert_eq!(shard.bytes(), model.len() as u64 * copy_bytes(&value(0, 0)));
        }
    }

    #[test]
    fn too_long_copy_is_not_made() {
        let mut shard = Shard::new(200);
        shard.fill(key(1), &[1; 10]);
        shard.change(&key(1), &[1; 500]);
        assert!(shard.get(&key(1)).is_none() && shard.bytes() == 0);
    }
}
