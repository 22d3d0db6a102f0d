//! HiKV's ordered index (paper, section 3.2): a B+tree in DRAM that refers to items in persistent memory.

mod change;
mod page;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Bound;

use parking_lot::RwLock;
use pmem::Dram;

use crate::Position;

pub use change::{Change, ChangeError, Edit, KeyStart, Keys, LoadError, NoDram};
pub use page::{Direction, Page};

/// Items of a page at most.
const PAGE_COUNT_MAX: usize = 34;

/// Something that [`BPlusTree::check`] found wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeDamage {
    /// What is wrong.
    pub what: &'static str,
    /// The item that it was noticed at, if there is one.
    pub position: Option<Position>,
}

/// The tree. Callers of its methods are pinned (`epoch`), unless a method says otherwise.
#[derive(Debug)]
pub struct BPlusTree<D: Dram> {
    map: RwLock<BTreeMap<Vec<u8>, Position>>,
    dram: PhantomData<D>,
}

impl<D: Dram> BPlusTree<D> {
    /// A tree of nothing.
    ///
    /// # Errors
    /// If the host lends no memory.
    pub fn new(_dram: D) -> Result<BPlusTree<D>, NoDram> {
        Ok(BPlusTree { map: RwLock::default(), dram: PhantomData })
    }

    /// Applies `changes` in their order; `done` hears of each, by its number, when it is applied or has failed. One that
    /// failed does not keep the others from being applied. Any number; groups of 16 are quickest.
    pub fn apply<K: Keys>(
        &self,
        keys: &K,
        changes: &[Change<'_>],
        mut done: impl FnMut(usize, Result<(), ChangeError<K::Error>>),
    ) {
        for (number, change) in changes.iter().enumerate() {
            done(number, self.apply_one(keys, change));
        }
    }

    fn apply_one<K: Keys>(&self, keys: &K, change: &Change<'_>) -> Result<(), ChangeError<K::Error>> {
        let (Edit::Insert(at) | Edit::Replace { old: at, .. } | Edit::Remove(at)) = change.edit;
        let key = keys.key(at).map_err(ChangeError::Keys)?;
        let mut map = self.map.write();
        match (change.edit, map.get(key).copied()) {
            (Edit::Insert(_), Some(there)) => return Err(ChangeError::Exists(there)),
            (Edit::Insert(new), None) => drop(map.insert(key.to_vec(), new)),
            (Edit::Replace { old, new }, Some(there)) if there == old => drop(map.insert(key.to_vec(), new)),
            (Edit::Remove(old), Some(there)) if there == old => drop(map.remove(key)),
            _ => return Err(ChangeError::Missing(at)),
        }
        Ok(())
    }

    /// Reads one leaf's items from `from` on, in `direction`: [`Page::next`] says where to go on.
    ///
    /// A scan that reads page after page shows ascending (or descending) keys, none twice, and every key that is there
    /// from its beginning to its end.
    ///
    /// # Errors
    /// If an item's key cannot be read.
    pub fn read_page<K: Keys>(
        &self,
        _keys: &K,
        from: Bound<&[u8]>,
        direction: Direction,
        page: &mut Page,
    ) -> Result<(), K::Error> {
        let map = self.map.read();
        page.positions.clear();
        page.has_more = false;
        page.is_backward = direction == Direction::Backward;
        let range = match direction {
            Direction::Forward => (from, Bound::Unbounded),
            Direction::Backward => (Bound::Unbounded, from),
        };
        let mut items = map.range::<[u8], _>(range);
        for _ in 0..PAGE_COUNT_MAX {
            let Some((key, position)) = (if page.is_backward { items.next_back() } else { items.next() }) else {
                return Ok(());
            };
            page.positions.push(*position);
            page.fence.clone_from(key);
        }
        if !page.is_backward {
            page.fence.push(0);
        }
        page.has_more = true;
        Ok(())
    }

    /// The item of the least key.
    ///
    /// # Errors
    /// If an item's key cannot be read.
    pub fn first<K: Keys>(&self, _keys: &K) -> Result<Option<Position>, K::Error> {
        Ok(self.map.read().values().next().copied())
    }

    /// The item of the greatest key.
    ///
    /// # Errors
    /// If an item's key cannot be read.
    pub fn last<K: Keys>(&self, _keys: &K) -> Result<Option<Position>, K::Error> {
        Ok(self.map.read().values().next_back().copied())
    }

    /// Forgets every item. Nobody applies changes meanwhile; readers may read on.
    ///
    /// # Errors
    /// If the host lends no memory.
    pub fn clear(&self) -> Result<(), NoDram> {
        self.map.write().clear();
        Ok(())
    }

    /// How many items the tree refers to.
    pub fn len(&self) -> u64 {
        self.map.read().len() as u64
    }

    /// True if it refers to none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Volatile memory lent to the tree.
    pub fn dram_bytes(&self) -> u64 {
        0
    }

    /// Frees nodes that no reader can reach any more; true if there were any. For idle times: changes do it as they go.
    /// The caller need not be pinned, and nothing is freed that it could see if it is.
    pub fn collect(&self) -> bool {
        false
    }

    /// Shows everything that is wrong: order, structure, fences, heads that are not their keys'. Nobody applies changes
    /// meanwhile.
    ///
    /// # Errors
    /// If an item's key cannot be read.
    pub fn check<K: Keys>(&self, keys: &K, damaged: &mut dyn FnMut(TreeDamage)) -> Result<(), K::Error> {
        for (key, &position) in &*self.map.read() {
            if keys.key(position)? != key {
                damaged(TreeDamage { what: "an item has another key", position: Some(position) });
            }
        }
        Ok(())
    }
}

/// Loads a tree from sorted items, in parts that several threads may build at once.
#[derive(Debug)]
pub struct Loader<D: Dram> {
    dram: D,
}

/// The items of one range of keys, loaded.
#[derive(Debug)]
pub struct Part {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    items: Vec<(Vec<u8>, Position)>,
}

impl<D: Dram> Loader<D> {
    /// A loader that has loaded nothing.
    pub fn new(dram: D) -> Loader<D> {
        Loader { dram }
    }

    /// Loads the items of `low..high` (to the end for `None`), which come in ascending order of their keys. Parts may
    /// be loaded at the same time.
    ///
    /// # Errors
    /// Those of [`LoadError`]; the iterator's own are [`LoadError::Keys`].
    pub fn part<'k, E>(
        &self,
        low: &[u8],
        high: Option<&[u8]>,
        sorted: impl Iterator<Item = Result<(Position, &'k [u8]), E>>,
    ) -> Result<Part, LoadError<E>> {
        let mut items: Vec<(Vec<u8>, Position)> = Vec::new();
        for item in sorted {
            let (position, key) = item.map_err(LoadError::Keys)?;
            let follows = items.last().is_none_or(|(before, _)| before.as_slice() < key);
            if !follows || key < low || high.is_some_and(|high| key >= high) {
                return Err(LoadError::Unsorted(position));
            }
            items.push((key.to_vec(), position));
        }
        Ok(Part { low: low.to_vec(), high: high.map(<[u8]>::to_vec), items })
    }

    /// Joins parts, which come in the order of their ranges and leave no gap: the first from the empty key on, the last
    /// without an end.
    ///
    /// # Errors
    /// If the host lends no memory.
    ///
    /// # Panics
    /// If the ranges leave gaps.
    pub fn finish(self, parts: Vec<Part>) -> Result<BPlusTree<D>, NoDram> {
        let mut low = Some(Vec::new());
        let tree = BPlusTree::new(self.dram)?;
        for part in parts {
            assert_eq!(low, Some(part.low), "parts leave a gap");
            low = part.high;
            tree.map.write().extend(part.items);
        }
        assert_eq!(low, None, "parts leave a gap");
        Ok(tree)
    }
}
