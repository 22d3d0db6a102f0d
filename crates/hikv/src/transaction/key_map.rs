//! A map by key whose memory can be used again.

use std::collections::BTreeMap;
use std::mem;

use smallvec::SmallVec;

use crate::ordered::Bounds;

/// A key. Up to 24 bytes are stored in place.
type Key = SmallVec<[u8; 24]>;

/// Entries up to which a sorted vector is as fast as a tree.
const FEW_COUNT_MAX: usize = 16;

/// A map by key.
#[derive(Clone, Debug)]
pub(super) enum KeyMap<T> {
    /// In the order of keys.
    Few(Vec<(Key, T)>),
    Many(BTreeMap<Key, T>),
}

impl<T> Default for KeyMap<T> {
    fn default() -> KeyMap<T> {
        KeyMap::Few(Vec::new())
    }
}

impl<T> KeyMap<T> {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            KeyMap::Few(entries) => entries.is_empty(),
            KeyMap::Many(entries) => entries.is_empty(),
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&T> {
        match self {
            KeyMap::Few(entries) => entries.iter().find(|(other, _)| other[..] == *key).map(|(_, value)| value),
            KeyMap::Many(entries) => entries.get(key),
        }
    }

    /// Sets the value of a key.
    pub(super) fn insert(&mut self, key: &[u8], value: T) {
        match self {
            KeyMap::Few(entries) => {
                let place = entries.iter().position(|(other, _)| other[..] >= *key).unwrap_or(entries.len());
                if entries.get(place).is_some_and(|(other, _)| other[..] == *key) {
                    entries[place].1 = value;
                } else if entries.len() < FEW_COUNT_MAX {
                    entries.insert(place, (Key::from_slice(key), value));
                } else {
                    let mut many: BTreeMap<_, _> = mem::take(entries).into_iter().collect();
                    many.insert(Key::from_slice(key), value);
                    *self = KeyMap::Many(many);
                }
            }
            KeyMap::Many(entries) => _ = entries.insert(Key::from_slice(key), value),
        }
    }

    /// Calls `each` with the entries in the order of their keys.
    #[inline]
    pub(super) fn for_each<'m>(&'m self, mut each: impl FnMut(&'m [u8], &'m T)) {
        match self {
            KeyMap::Few(entries) => entries.iter().for_each(|(key, value)| each(key, value)),
            KeyMap::Many(entries) => entries.iter().for_each(|(key, value)| each(key, value)),
        }
    }

    /// Removes all entries, and keeps the memory of a few.
    pub(super) fn clear(&mut self) {
        match self {
            KeyMap::Few(entries) => entries.clear(),
            KeyMap::Many(_) => *self = KeyMap::default(),
        }
    }

    /// Returns the first entry within the bounds, or the last one.
    pub(super) fn within(&self, bounds: &Bounds, is_last: bool) -> Option<(&[u8], &T)> {
        if bounds.is_empty() {
            return None;
        }
        let (key, value) = match self {
            KeyMap::Few(entries) if is_last => entries.iter().rfind(|(key, _)| bounds.contains(key)).map(pair),
            KeyMap::Few(entries) => entries.iter().find(|(key, _)| bounds.contains(key)).map(pair),
            KeyMap::Many(entries) => {
                let mut within = entries.range::<[u8], _>((bounds.low(), bounds.high()));
                if is_last { within.next_back() } else { within.next() }
            }
        }?;
        Some((key, value))
    }
}

fn pair<T>((key, value): &(Key, T)) -> (&Key, &T) {
    (key, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_sorted_however_many_there_are() {
        let (mut map, mut model) = (KeyMap::default(), BTreeMap::new());
        for number in 0..100_u32 {
            // Each key twice, of lengths on both sides of the space in place.
            let key = vec![(number * 37 % 50) as u8; 1 + number as usize % 50 * 37 % 50];
            map.insert(&key, number);
            model.insert(key.clone(), number);
            assert_eq!(map.get(&key), Some(&number));
            let mut entries = Vec::new();
            map.for_each(|key, number| entries.push((key, number)));
            assert!(entries.into_iter().eq(model.iter().map(|(key, number)| (&key[..], number))), "after {number}");
            for bounds in [Bounds::ALL, Bounds::of_prefix(&[7]), Bounds::of(&([3_u8]..[9]))] {
                let mut within = model.iter().filter(|(key, _)| bounds.contains(key));
                let of_pair = |found: Option<(&[u8], &u32)>| found.map(|(key, number)| (key.to_vec(), *number));
                let owned = |found: Option<(&Vec<u8>, &u32)>| found.map(|(key, number)| (key.clone(), *number));
                assert_eq!(of_pair(map.within(&bounds, false)), owned(within.clone().next()));
                assert_eq!(of_pair(map.within(&bounds, true)), owned(within.next_back()));
            }
        }
        assert!(matches!(map, KeyMap::Many(_)));
        assert!(!map.is_empty() && map.get(b"absent").is_none());
        map.clear();
        assert!(map.is_empty() && map.get(&[7; 7]).is_none());
    }
}
