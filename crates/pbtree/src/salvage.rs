//! Salvage: reads everything that is intact in a damaged tree without writers.
//!
//! The walk follows children and compares no key with a separator, so a damaged separator hides no child. A child
//! whose word or header is damaged is left out with everything below it. Intact separators bound the keys of a child,
//! so that a word which refers to another node shows no key out of its place, and none twice.

use pmem::{Dram, Medium};

use crate::Error;
use crate::key;
use crate::locks::{Mode, WaitPolicy};
use crate::nodes::Reached;
use crate::read::Reader;
use crate::value::Value;
use crate::walk::Fences;

/// Receives every intact key and value, in the order of keys.
type OnIntact<'a> = &'a mut dyn FnMut(&[u8], &Value<'_>);

/// Receives an error for each damaged place, and decides whether to continue.
type OnDamaged<'a> = &'a mut dyn FnMut(Error) -> Result<(), Error>;

struct Salvage<'s, M: Medium, D: Dram> {
    reader: &'s Reader<M, D>,
    each: OnIntact<'s>,
    left: OnDamaged<'s>,
}

/// Shows everything that is intact, and reports the rest to `left`.
pub(crate) fn each_intact<M: Medium, D: Dram>(
    reader: &Reader<M, D>,
    each: OnIntact<'_>,
    left: OnDamaged<'_>,
) -> Result<(), Error> {
    match reader.nodes().reach_root(Mode::Shared) {
        Ok(root) => Salvage { reader, each, left }.each_below(&root, Fences { lower: None, upper: None }),
        Err(error) => left(error),
    }
}

impl<M: Medium, D: Dram> Salvage<'_, M, D> {
    fn each_below(&mut self, node: &Reached<'_, M>, fences: Fences<'_>) -> Result<(), Error> {
        if node.meta.level == 0 {
            return self.each_of(node, fences);
        }
        let (nodes, below) = (self.reader.nodes(), node.meta.level - 1);
        let mut lower = fences.lower;
        for i in 0..=node.meta.count {
            let separator = (i < node.meta.count).then(|| node.node.key(i)).transpose();
            let upper = match separator {
                Ok(separator) => separator.or(fences.upper),
                Err(error) => {
                    (self.left)(error)?;
                    fences.upper
                }
            };
            let child = node.node.child(i).and_then(|place| nodes.reach(place, below, Mode::Shared, WaitPolicy::Wait));
            match child {
                Ok(child) => self.each_below(&child, Fences { lower, upper })?,
                Err(error) => (self.left)(error)?,
            }
            lower = if upper == fences.upper { lower } else { upper };
        }
        Ok(())
    }

    fn each_of(&mut self, leaf: &Reached<'_, M>, fences: Fences<'_>) -> Result<(), Error> {
        let mut last = None;
        for i in 0..leaf.meta.count {
            let (key, value) = match intact_pair(self.reader, leaf, i) {
                Ok(Some(pair)) => pair,
                Ok(None) => continue,
                Err(error) => {
                    (self.left)(error)?;
                    continue;
                }
            };
            let is_above = fences.lower.is_none_or(|lower| lower <= key) && last.is_none_or(|last| last < key);
            if is_above && fences.upper.is_none_or(|upper| key < upper) {
                (self.each)(key, &value);
                last = Some(key);
            } else {
                (self.left)(Error::damaged(leaf.node.at, "a key is out of order"))?;
            }
        }
        Ok(())
    }
}

/// Reads an intact pair; `None` for a deleted key.
fn intact_pair<'a, M: Medium, D: Dram>(
    reader: &Reader<M, D>,
    leaf: &Reached<'a, M>,
    i: usize,
) -> Result<Option<(&'a [u8], Value<'a>)>, Error> {
    if leaf.node.value_word(i) == 0 {
        return Ok(None);
    }
    let key = leaf.node.key(i)?;
    match reader.value_of(leaf, i, key::checksum(key))? {
        Some(value) if value.is_intact() => Ok(Some((key, value))),
        Some(value) => Err(Error::damaged(value.place.offset, "a value's checksum does not fit")),
        None => Ok(None),
    }
}
