//! PFHT (Debnath, Haghdoost, Kadav, Khatib, Ungureanu: 'Revisiting Hash Table Design for Phase Change Memory'):
//! bucketised cuckoo hashing that moves at most one item per insert, and a stash for items that still find no space: an
//! array that is searched from begin to end. The stash has 3 % of the slots.

use std::sync::atomic::{AtomicU64, Ordering};

use pmem::Medium;

use crate::bucket::{BUCKET_BYTES, Buckets, SLOT_COUNT};
use crate::item::{Item, places};
use crate::region::Region;
use crate::{Error, Result, Table};

const KIND: u64 = u64::from_le_bytes(*b"PFHT\0\0\0\x01");
const STASH_PERCENT: u64 = 3;

/// A PFHT.
pub struct Pfht<M> {
    buckets: Buckets<M>,
    /// Buckets that keys hash to; those of the stash follow.
    main_count: u64,
    bucket_count: u64,
    /// The end of the last bucket of the stash that was ever used: searches end there.
    stash_end: AtomicU64,
}

impl<M: Medium> Pfht<M> {
    fn of(region: Region<M>) -> Pfht<M> {
        let bucket_count = region.slot_count / SLOT_COUNT as u64;
        let main_count = bucket_count - stash_count(bucket_count);
        Pfht { buckets: Buckets(region), main_count, bucket_count, stash_end: AtomicU64::new(main_count) }
    }

    /// Returns the two different buckets of a key.
    #[inline(always)]
    fn choices(&self, key: &[u8]) -> [u64; 2] {
        let [first, distance] = places(&self.buckets.0.hasher, key, [self.main_count, self.main_count - 1]);
        let second = first + 1 + distance;
        [first, if second < self.main_count { second } else { second - self.main_count }]
    }

    fn stash(&self) -> impl Iterator<Item = u64> + use<M> {
        self.main_count..self.stash_end.load(Ordering::Relaxed)
    }

    /// Returns all buckets in which a key may be. The first two are prefetched.
    fn candidates(&self, key: &[u8]) -> impl Iterator<Item = u64> + use<M> {
        self.buckets.asked(self.choices(key)).into_iter().chain(self.stash())
    }
}

fn stash_count(bucket_count: u64) -> u64 {
    (bucket_count * STASH_PERCENT).div_ceil(100)
}

impl<M: Medium> Table<M> for Pfht<M> {
    const NAME: &'static str = "pfht";
    const SLOT_COUNT_MIN: u64 = 3 * SLOT_COUNT as u64;

    fn format(medium: M, slot_count: u64) -> Result<Pfht<M>> {
        // At least two buckets, for the two choices, and one for the stash.
        let bucket_count = if slot_count < Self::SLOT_COUNT_MIN { 0 } else { slot_count / SLOT_COUNT as u64 };
        let slot_count = bucket_count * SLOT_COUNT as u64;
        Ok(Pfht::of(Region::format(medium, KIND, slot_count, bucket_count * BUCKET_BYTES)?))
    }

    fn open(medium: M) -> Result<Pfht<M>> {
        let table = Pfht::of(Region::open(medium, KIND)?);
        let used = (table.main_count..table.bucket_count).rev().find(|bucket| table.buckets.filled(*bucket) > 0);
        table.stash_end.store(used.map_or(table.main_count, |last| last + 1), Ordering::Relaxed);
        table.buckets.recover(table.bucket_count, |key| table.candidates(key))?;
        Ok(table)
    }

    fn region(&self) -> &Region<M> {
        &self.buckets.0
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let (item, choices) = (Item::new(key, value)?, self.buckets.asked(self.choices(key)));
        let emptier = choices.into_iter().min_by_key(|bucket| self.buckets.filled(*bucket));
        if let Some(slot) = emptier.and_then(|bucket| self.buckets.free(bucket)) {
            return self.buckets.fill(slot, &item, None);
        }
        let other = |item: &Item, bucket| self.choices(item.key()).into_iter().find(|other| *other != bucket);
        let made =
            self.buckets.make_space(choices.into_iter(), |item, bucket| other(item, bucket).unwrap_or(bucket))?;
        let in_stash = || (self.main_count..self.bucket_count).find_map(|bucket| self.buckets.free(bucket));
        let slot = made.or_else(in_stash).ok_or(Error::Full)?;
        self.stash_end.fetch_max(if slot.bucket >= self.main_count { slot.bucket + 1 } else { 0 }, Ordering::Relaxed);
        self.buckets.fill(slot, &item, None)
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let item = Item::new(key, value)?;
        let Some((slot, _)) = self.buckets.find(key, self.candidates(key)) else { return Ok(false) };
        self.buckets.change(slot, &item).map(|()| true)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.buckets.delete(key, self.candidates(key))
    }

    #[inline(always)]
    fn get(&self, key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.buckets.find(key, self.candidates(key)).map(|(_, item)| found(item.value())).is_some()
    }

    fn for_each(&self, each: &mut dyn FnMut(&[u8], &[u8])) {
        (0..self.main_count)
            .chain(self.stash())
            .for_each(|bucket| self.buckets.items(bucket).for_each(|(_, item)| each(item.key(), item.value())));
    }
}
