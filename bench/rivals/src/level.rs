//! Level hashing (Zuo, Hua, Wu: 'Write-Optimized and High-Performance Hashing Index Scheme for Persistent Memory'): an
//! upper level of buckets that two hash functions address, and a lower level of half as many, each shared by two upper
//! ones. An insert uses the emptier of the key's two upper buckets, or else of the two lower ones; if all are full, one
//! item moves to its other bucket of the same level. An update writes a free slot of the item's bucket if there is one,
//! and both tokens change in one word; otherwise the update is logged.

use pmem::Medium;

use crate::bucket::{BUCKET_BYTES, Buckets, SLOT_COUNT, Slot};
use crate::item::{Item, places};
use crate::region::Region;
use crate::{Error, Result, Table};

const KIND: u64 = u64::from_le_bytes(*b"Level\0\0\x01");

/// A Level hash table.
pub struct LevelHash<M> {
    buckets: Buckets<M>,
    /// Buckets of the upper level, an even number; the lower level's follow.
    top_count: u64,
}

impl<M: Medium> LevelHash<M> {
    fn of(region: Region<M>) -> LevelHash<M> {
        let top_count = region.slot_count / SLOT_COUNT as u64 / 3 * 2;
        LevelHash { buckets: Buckets(region), top_count }
    }

    fn bucket_count(&self) -> u64 {
        self.top_count / 2 * 3
    }

    /// Returns a key's buckets: two on the upper level, two on the lower.
    fn choices(&self, key: &[u8]) -> [[u64; 2]; 2] {
        let half = self.top_count / 2;
        let [first, second] = places(&self.buckets.0.hasher, key, [half, half]);
        let top = [first, half + second];
        [top, top.map(|bucket| self.top_count + bucket / 2)]
    }

    fn candidates(&self, key: &[u8]) -> impl Iterator<Item = u64> + use<M> {
        self.choices(key).map(|level| self.buckets.asked(level)).into_iter().flatten()
    }

    fn free(&self, level: [u64; 2]) -> Option<Slot> {
        let emptier = level.into_iter().min_by_key(|bucket| self.buckets.filled(*bucket));
        emptier.and_then(|bucket| self.buckets.free(bucket))
    }

    fn make_space(&self, number: usize, level: [u64; 2]) -> Result<Option<Slot>> {
        let other = |item: &Item, bucket| {
            let own = self.choices(item.key())[number];
            own.into_iter().find(|other| *other != bucket).unwrap_or(bucket)
        };
        self.buckets.make_space(level.into_iter(), other)
    }
}

impl<M: Medium> Table<M> for LevelHash<M> {
    const NAME: &'static str = "level";
    const SLOT_COUNT_MIN: u64 = 6 * SLOT_COUNT as u64;

    fn format(medium: M, slot_count: u64) -> Result<LevelHash<M>> {
        // Each function addresses its own half of the upper level; two buckets of a half share one of the lower level.
        let quarter = slot_count / SLOT_COUNT as u64 / 6;
        let bucket_count = quarter * 6;
        Ok(LevelHash::of(Region::format(medium, KIND, bucket_count * SLOT_COUNT as u64, bucket_count * BUCKET_BYTES)?))
    }

    fn open(medium: M) -> Result<LevelHash<M>> {
        let table = LevelHash::of(Region::open(medium, KIND)?);
        table.buckets.recover(table.bucket_count(), |key| table.candidates(key))?;
        Ok(table)
    }

    fn region(&self) -> &Region<M> {
        &self.buckets.0
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (item, [top, bottom]) = (Item::new(key, value)?, self.choices(key));
        self.buckets.asked(top);
        if let Some(slot) = self.free(top).or_else(|| self.free(bottom)) {
            return self.buckets.fill(slot, &item, None);
        }
        let made = match self.make_space(0, top)? {
            None => self.make_space(1, bottom)?,
            made => made,
        };
        self.buckets.fill(made.ok_or(Error::Full)?, &item, None)
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let item = Item::new(key, value)?;
        let Some((slot, _)) = self.buckets.find(key, self.candidates(key)) else { return Ok(false) };
        match self.buckets.free(slot.bucket) {
            Some(free) => self.buckets.fill(free, &item, Some(slot))?,
            None => self.buckets.change(slot, &item)?,
        }
        Ok(true)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.buckets.delete(key, self.candidates(key))
    }

    #[inline(always)]
    fn get(&self, key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.buckets.find(key, self.candidates(key)).map(|(_, item)| found(item.value())).is_some()
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        let all = (0..self.bucket_count()).flat_map(|bucket| self.buckets.items(bucket));
        all.for_each(|(_, item)| each(item.key(), item.value()));
    }
}
