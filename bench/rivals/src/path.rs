//! Path hashing (Zuo, Hua: 'A Write-friendly Hashing Scheme for Non-volatile Memory Systems'): cells that form an
//! inverted binary tree; each of two hash functions addresses one half of the leaves. A key is in one of two leaves or,
//! if both are in use, in a cell on the path from one of these leaves to the root, of which eight levels are kept.
//! Items never move.
//!
//! ```text
//! cell, 32 bytes   +0 key 16   +16 value 15   +31 token
//! ```

use std::sync::atomic::Ordering;

use pmem::{Medium, Offset};

use crate::item::{ITEM_BYTES, Item, places};
use crate::region::{Region, TABLE};
use crate::{Error, Result, Table};

const KIND: u64 = u64::from_le_bytes(*b"Path\0\0\0\x01");
/// The number of levels that are kept.
const LEVEL_COUNT: u32 = 8;
const CELL_BYTES: u64 = 32;
/// Cells that are prefetched: those of the first four levels, on which nearly all items are.
const ASKED_COUNT: usize = 8;
const TOKEN_SHIFT: u32 = 56;

/// A Path hash table.
pub struct PathHash<M> {
    region: Region<M>,
    /// Cells of the first level, a multiple of those of the smallest tree.
    leaf_count: u64,
}

impl<M: Medium> PathHash<M> {
    fn of(region: Region<M>) -> PathHash<M> {
        let leaf_count = (region.slot_count / cells_of_unit()) << (LEVEL_COUNT - 1);
        PathHash { region, leaf_count }
    }

    /// Returns the cells in which a key may be, level by level.
    #[inline(always)]
    fn cells(&self, key: &[u8]) -> impl Iterator<Item = Offset> + use<M> {
        let (leaf_count, half) = (self.leaf_count, self.leaf_count / 2);
        let [first, second] = places(&self.region.hasher, key, [half, half]);
        let before = move |level| 2 * leaf_count - ((2 * leaf_count) >> level);
        let of_level = move |level| [first, half + second].map(|leaf| before(level) + (leaf >> level));
        (0..LEVEL_COUNT).flat_map(of_level).map(|cell| TABLE.plus(cell * CELL_BYTES))
    }

    /// Returns the cells in which a key may be; the first [`ASKED_COUNT`] are prefetched together.
    #[inline(always)]
    fn asked(&self, key: &[u8]) -> impl Iterator<Item = Offset> + use<M> {
        self.cells(key).take(ASKED_COUNT).for_each(|cell| self.region.medium.prefetch_line(cell));
        self.cells(key)
    }

    fn last_word(&self, cell: Offset) -> u64 {
        self.region.word(cell.plus(24))
    }

    fn is_free(&self, cell: Offset) -> bool {
        self.last_word(cell) >> TOKEN_SHIFT == 0
    }

    #[inline(always)]
    fn item(&self, cell: Offset) -> Option<Item> {
        let last = self.last_word(cell);
        let token = (last >> TOKEN_SHIFT) as u8;
        (token != 0).then(|| {
            let mut bytes = [0; CELL_BYTES as usize];
            for (i, part) in bytes.chunks_exact_mut(8).enumerate() {
                let word = if i == 3 { last } else { self.region.word(cell.plus(8 * i as u64)) };
                part.copy_from_slice(&word.to_le_bytes());
            }
            Item { bytes: *bytes.first_chunk().expect("a cell is longer"), token }
        })
    }

    #[inline(always)]
    fn find(&self, key: &[u8]) -> Option<(Offset, Item)> {
        let item = |cell| self.item(cell).filter(|item| item.key() == key).map(|item| (cell, item));
        self.asked(key).find_map(item)
    }

    fn all(&self) -> impl Iterator<Item = Item> + '_ {
        (0..self.region.slot_count).filter_map(|cell| self.item(TABLE.plus(cell * CELL_BYTES)))
    }
}

/// Returns the cells of the smallest tree: one on the last level.
const fn cells_of_unit() -> u64 {
    (1 << LEVEL_COUNT) - 1
}

/// Returns the words of a cell that holds this item.
fn words(cell: Offset, item: &Item) -> [(Offset, u64); 4] {
    let mut bytes = [0; CELL_BYTES as usize];
    bytes[..ITEM_BYTES].copy_from_slice(&item.bytes);
    bytes[ITEM_BYTES] = item.token;
    std::array::from_fn(|i| (cell.plus(8 * i as u64), u64::from_le_bytes(bytes.as_chunks().0[i])))
}

impl<M: Medium> Table<M> for PathHash<M> {
    const NAME: &'static str = "path";
    const SLOT_COUNT_MIN: u64 = 2 * cells_of_unit();

    fn format(medium: M, slot_count: u64) -> Result<PathHash<M>> {
        // An even number of roots, so that the halves of the two functions share none.
        let slot_count = slot_count / cells_of_unit() / 2 * 2 * cells_of_unit();
        Ok(PathHash::of(Region::format(medium, KIND, slot_count, slot_count * CELL_BYTES)?))
    }

    fn open(medium: M) -> Result<PathHash<M>> {
        let table = PathHash::of(Region::open(medium, KIND)?);
        table.region.count(table.all().count() as i64);
        Ok(table)
    }

    fn region(&self) -> &Region<M> {
        &self.region
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let item = Item::new(key, value)?;
        let cell = self.asked(key).find(|cell| self.is_free(*cell)).ok_or(Error::Full)?;
        self.region.count(1);
        let mut words = words(cell, &item);
        let with_token = words[3];
        words[3].1 &= (1 << TOKEN_SHIFT) - 1;
        self.region.write(&words, with_token)
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let item = Item::new(key, value)?;
        let Some((cell, _)) = self.find(key) else { return Ok(false) };
        self.region.change(&words(cell, &item)[2..]).map(|()| true)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        let Some((cell, _)) = self.find(key) else { return Ok(false) };
        self.region.count(-1);
        let word = self.region.medium.load(cell.plus(24), Ordering::Acquire);
        self.region.put(cell.plus(24), word & ((1 << TOKEN_SHIFT) - 1)).map(|()| true)
    }

    #[inline(always)]
    fn get(&self, key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.find(key).map(|(_, item)| found(item.value())).is_some()
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        self.all().for_each(|item| each(item.key(), item.value()));
    }
}
