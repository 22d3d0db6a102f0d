//! An ordered set of a loop's connection numbers.

use std::mem;

/// A set of small numbers, which are reused when a connection has ended.
#[derive(Default, Debug)]
pub(crate) struct Keys {
    keys: Vec<usize>,
    /// Indexed by number.
    is_there: Vec<bool>,
}

impl Keys {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn insert(&mut self, key: usize) {
        if key >= self.is_there.len() {
            self.is_there.resize(key + 1, false);
        }
        if !mem::replace(&mut self.is_there[key], true) {
            self.keys.push(key);
        }
    }

    pub(crate) fn remove(&mut self, key: usize) {
        self.retain(|other| other != key);
    }

    /// Keeps the numbers for which `is_kept` returns true.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        let is_there = &mut self.is_there;
        self.keys.retain(|key| {
            is_there[*key] = is_kept(*key);
            is_there[*key]
        });
    }

    /// Removes and returns all.
    pub(crate) fn drain(&mut self) -> Vec<usize> {
        self.keys.iter().for_each(|key| self.is_there[*key] = false);
        mem::take(&mut self.keys)
    }

    /// Returns a drained list for reuse of its capacity, if no number was added since.
    pub(crate) fn reuse(&mut self, mut drained: Vec<usize>) {
        if self.keys.is_empty() {
            drained.clear();
            self.keys = drained;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_until_drained() {
        let mut keys = Keys::default();
        [3, 1, 3, 7].into_iter().for_each(|key| keys.insert(key));
        keys.remove(1);
        keys.remove(1);
        keys.retain(|key| key != 7);
        assert_eq!(keys.drain(), [3]);
        assert!(keys.is_empty());
        [7, 3, 7, 1].into_iter().for_each(|key| keys.insert(key));
        let drained = keys.drain();
        assert_eq!(drained, [7, 3, 1]);
        keys.insert(2);
        keys.reuse(drained);
        assert_eq!(keys.drain(), [2]);
    }
}
