//! The replacement of a full leaf, and the rebuild of the inner nodes.

use std::sync::atomic::Ordering;

use arrayvec::ArrayVec;
use pmem::{Dram, Medium, Offset};

use super::leaf::{ENTRY_COUNT_MAX, Entry, leaf_bytes};
use super::pln::{LEAF_COUNT_MAX, Pln};
use super::upper::Upper;
use super::{HEAD, Locked, NvTree};
use crate::canary;
use crate::key::Key;
use crate::tree::TreeResult;
use crate::version::Version;

type Entries = ArrayVec<Entry, { ENTRY_COUNT_MAX as usize }>;

/// The entries of a leaf: those that a new leaf takes over, in ascending order, and the others.
#[derive(Default)]
struct Sorted {
    live: Entries,
    dead: Entries,
}

impl Sorted {
    fn of(entries: impl DoubleEndedIterator<Item = Entry>) -> Sorted {
        let mut all: Entries = entries.rev().collect();
        // Stable: the newest entry of a key comes first.
        all.sort_by_key(|(key, _)| *key);
        let (mut sorted, mut last) = (Sorted::default(), None);
        for (key, position) in all {
            let is_live = last != Some(key) && !position.is_deleted();
            if is_live {
                sorted.live.push((key, position))
            } else {
                sorted.dead.push((key, position))
            };
            last = Some(key);
        }
        sorted
    }
}

impl<M: Medium, D: Dram> NvTree<M, D> {
    /// Replaces a full leaf; returns the new leaf for `key`.
    #[cold]
    pub(super) fn replace<'a>(&'a self, old: Locked<'a, M>, key: Key) -> TreeResult<Locked<'a, M>> {
        let sorted = Sorted::of(old.0.entries());
        let is_split = sorted.live.len() as u64 * 2 > self.entry_count;
        loop {
            let structure = self.structure.read();
            let upper = self.upper();
            let number = upper.pln_of(key);
            let pln = &upper.plns[number];
            // The leaf before may belong to the node before, whose lock comes first.
            let lock_before = (number > 0 && pln.locate(key) == pln.leaf(0)).then(|| upper.plns[number - 1].lock());
            let lock = pln.lock();
            let index = pln.index_of(key);
            if index == 0 && number > 0 && lock_before.is_none() {
                continue;
            }
            if is_split && pln.count() == LEAF_COUNT_MAX {
                drop((lock, lock_before, structure));
                self.rebuild(key);
                continue;
            }
            let before = match (index, number) {
                (0, 0) => None,
                (0, _) => Some(upper.plns[number - 1].leaf(upper.plns[number - 1].count() - 1)),
                _ => Some(pln.leaf(index - 1)),
            };
            return if is_split {
                self.split(old, &sorted, key, (pln, index, before))
            } else {
                self.compact(old, &sorted, (pln, index, before))
            };
        }
    }

    /// Step 1 without its fence: reserves and fills a leaf, locked.
    fn new_leaf(&self, entries: &[Entry], next: Offset) -> TreeResult<Locked<'_, M>> {
        let leaf = self.leaf(self.records.reserve(leaf_bytes(self.entry_count))?.publish().offset);
        leaf.initialise(entries, next, Version::FIRST_LOCKED);
        Ok(Locked(leaf))
    }

    /// The fence of step 1, and step 2: puts the new leaves behind `before`, or first.
    fn link(&self, before: Option<Offset>, first: Offset) {
        let medium = &self.records.medium;
        medium.order_unless(canary::NV_TREE_NEXT_BEFORE_LEAF);
        match before {
            Some(before) => self.leaf(before).set_next(first),
            None => {
                medium.store(HEAD, first.0, Ordering::Release);
                medium.flush(HEAD.span(8));
            }
        }
        medium.order();
    }

    fn split<'a>(
        &'a self,
        old: Locked<'a, M>,
        sorted: &Sorted,
        key: Key,
        (pln, index, before): (&Pln, usize, Option<Offset>),
    ) -> TreeResult<Locked<'a, M>> {
        let (lower, upper) = sorted.live.split_at(sorted.live.len() / 2);
        let split_key = lower[lower.len() - 1].0;
        let right = self.new_leaf(upper, old.0.next())?;
        let left = match self.new_leaf(lower, right.0.at) {
            Ok(left) => left,
            Err(error) => {
                self.records.heap.cancel(self.leaf_place(right.0.at));
                return Err(error);
            }
        };
        self.link(before, left.0.at);
        pln.change(|pln| {
            pln.replace(index, left.0.at);
            pln.insert(index, split_key, right.0.at);
        });
        self.retire(old, sorted);
        self.reshapes.count_split();
        Ok(if key <= split_key { left } else { right })
    }

    /// Replaces a leaf by one, and the next one also if its entries fit.
    fn compact<'a>(
        &'a self,
        old: Locked<'a, M>,
        sorted: &Sorted,
        (pln, index, before): (&Pln, usize, Option<Offset>),
    ) -> TreeResult<Locked<'a, M>> {
        let sibling = (index + 1 < pln.count()).then(|| self.leaf(pln.leaf(index + 1)));
        let sibling = sibling.filter(|sibling| sibling.try_lock_now()).map(Locked);
        let with_its_entries = sibling.map(|sibling| (Sorted::of(sibling.0.entries()), sibling));
        let merged = with_its_entries
            .filter(|(of_sibling, _)| (of_sibling.live.len() + sorted.live.len()) as u64 * 2 <= self.entry_count);
        let Some((of_sibling, sibling)) = merged else {
            let new = self.new_leaf(&sorted.live, old.0.next())?;
            self.link(before, new.0.at);
            pln.change(|pln| pln.replace(index, new.0.at));
            self.retire(old, sorted);
            return Ok(new);
        };
        let mut live = sorted.live.clone();
        live.extend(of_sibling.live.iter().copied());
        let new = self.new_leaf(&live, sibling.0.next())?;
        self.link(before, new.0.at);
        pln.change(|pln| {
            pln.replace(index, new.0.at);
            pln.remove_after(index);
        });
        self.retire(old, sorted);
        self.retire(sibling, &of_sibling);
        self.reshapes.count_removed_leaf();
        Ok(new)
    }

    /// Retires a leaf, and the records that no new leaf has taken over.
    fn retire(&self, old: Locked<'_, M>, sorted: &Sorted) {
        let at = old.0.at;
        old.abandon();
        self.records.retire_place(self.leaf_place(at), leaf_bytes(self.entry_count));
        let records = sorted.dead.iter().filter(|(_, position)| !position.is_empty());
        records.for_each(|(_, position)| self.records.retire(*position));
    }

    /// Builds the inner nodes again, unless another thread has just done so.
    #[cold]
    fn rebuild(&self, key: Key) {
        let _structure = self.structure.write();
        let upper = self.upper();
        if upper.plns[upper.pln_of(key)].count() < LEAF_COUNT_MAX {
            return;
        }
        let bytes = upper.dram_bytes();
        let new = Box::into_raw(Box::new(Upper::build(&upper.leaves())));
        let old = self.upper.swap(new, Ordering::AcqRel);
        // SAFETY: the pointer came from a box, and this thread alone has taken it.
        self.old_uppers.retire(unsafe { Box::from_raw(old) }, bytes, drop);
        self.reshapes.count_rebuild();
    }
}
