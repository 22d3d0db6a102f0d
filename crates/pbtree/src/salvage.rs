//! Salvage: reads everything that is intact in a damaged tree without writers.
//!
//! The walk follows children and compares no key with a separator, so a damaged separator hides no child. A child
//! whose word or header is damaged is left out with everything below it. Intact separators bound the keys of a child,
//! so that a word which refers to another node shows no key out of its place, and none twice.

use pmem::{Dram, Medium};

use crate::Error;
use crate::descent::Reached;
use crate::key;
use crate::locks::{Mode, Patience};
use crate::retire::Retire;
use crate::tree::Tree;
use crate::value::Value;
use crate::walk::Fences;

/// Receives every intact key and value, in the order of keys.
type OnIntact<'a> = &'a mut dyn FnMut(&[u8], &Value<'_>);

/// Receives an error for each damaged place, and decides whether to continue.
type OnDamaged<'a> = &'a mut dyn FnMut(Error) -> Result<(), Error>;

impl<M: Medium, D: Dram, R: Retire<M, D>> Tree<M, D, R> {
    /// Calls `each` with every key whose value is intact. Skips damaged places and reports each to `left`. The store
    /// is only read.
    ///
    /// # Errors
    /// Those of `left`.
    pub fn each_intact(&self, each: OnIntact<'_>, left: OnDamaged<'_>) -> Result<(), Error> {
        let root = self.root().and_then(|place| {
            let level = self.checked(place)?.meta()?.level;
            self.reach(place, level, Mode::Shared, Patience::Wait)
        });
        match root {
            Ok(root) => self.each_intact_below(&root, Fences { lower: None, upper: None }, each, left),
            Err(error) => left(error),
        }
    }

    fn each_intact_below(
        &self,
        node: &Reached<'_, M>,
        fences: Fences<'_>,
        each: OnIntact<'_>,
        left: OnDamaged<'_>,
    ) -> Result<(), Error> {
        if node.meta.level == 0 {
            return self.each_whole_of(node, fences, each, left);
        }
        let mut lower = fences.lower;
        for i in 0..=node.meta.count {
            let separator = (i < node.meta.count).then(|| node.node.key(i)).transpose();
            let upper = match separator {
                Ok(separator) => separator.or(fences.upper),
                Err(error) => {
                    left(error)?;
                    fences.upper
                }
            };
            let below = node.meta.level - 1;
            let child = node.node.child(i).and_then(|place| self.reach(place, below, Mode::Shared, Patience::Wait));
            match child {
                Ok(child) => self.each_intact_below(&child, Fences { lower, upper }, each, left)?,
                Err(error) => left(error)?,
            }
            lower = if upper == fences.upper { lower } else { upper };
        }
        Ok(())
    }

    /// Reads an intact pair; `None` for a deleted key.
    fn whole_pair<'a>(&self, leaf: &Reached<'a, M>, i: usize) -> Result<Option<(&'a [u8], Value<'a>)>, Error> {
        if leaf.node.value_word(i) == 0 {
            return Ok(None);
        }
        let key = leaf.node.key(i)?;
        match self.value_of(leaf, i, key::checksum(key))? {
            Some(value) if value.is_intact() => Ok(Some((key, value))),
            Some(value) => Err(Error::damaged(value.place.offset, "a value's checksum does not fit")),
            None => Ok(None),
        }
    }

    fn each_whole_of(
        &self,
        leaf: &Reached<'_, M>,
        fences: Fences<'_>,
        each: OnIntact<'_>,
        left: OnDamaged<'_>,
    ) -> Result<(), Error> {
        let mut last = None;
        for i in 0..leaf.meta.count {
            let (key, value) = match self.whole_pair(leaf, i) {
                Ok(Some(pair)) => pair,
                Ok(None) => continue,
                Err(error) => {
                    left(error)?;
                    continue;
                }
            };
            let is_above = fences.lower.is_none_or(|lower| lower <= key) && last.is_none_or(|last| last < key);
            if is_above && fences.upper.is_none_or(|upper| key < upper) {
                each(key, &value);
                last = Some(key);
            } else {
                left(Error::damaged(leaf.node.at, "a key is out of order"))?;
            }
        }
        Ok(())
    }
}
