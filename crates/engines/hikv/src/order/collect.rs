//! Collects every key's first bytes and position, in parts by key, and sorts the parts.

use std::sync::atomic::{AtomicU64, Ordering};

use index::bplus_tree::{Keys, LoadError, Loader, Part};
use index::partitioned_hash::{Cursor, layout::SEGMENT_ENTRY_COUNT};
use index::{PartitionedHash, Position};
use pmem::{Dram, Medium};

use super::items::Items;
use engine::Error;
use items::prefetch_ahead;

/// The approximate number of keys per part: a part is sorted within the L2 cache, and there are enough parts for every
/// thread.
pub(super) const PART_COUNT: u64 = 1 << 16;
/// The most parts: their splitters stay in the L1 cache.
const PARTS_MAX: u64 = 256;
/// Sampled keys per part, from which the splitters are chosen: parts then have equal sizes within 25 %.
const SAMPLE_PER_PART: usize = 16;

/// Eight bytes of a key, after those that all keys of its part share, and the item.
pub(super) type Collected = (u64, Position);

/// A part's items, to be loaded.
#[derive(Debug)]
pub(super) enum Entries {
    /// As they were found.
    Collected(Vec<Collected>),
    /// In the order of their keys.
    Sorted(Vec<Position>),
}

/// The division of keys into parts.
#[derive(Debug)]
pub(super) struct Plan {
    /// Part i holds the keys from splitter i - 1 (or the least key) to before splitter i (or the end).
    splitters: Vec<Box<[u8]>>,
    /// The bytes that all splitters share.
    common: Box<[u8]>,
    /// The splitters' first bytes after the shared ones, which are usually sufficient.
    heads: Vec<u64>,
    /// The number of bytes that all keys of a part share.
    shared_bytes: Vec<usize>,
    /// The approximate number of keys.
    pub(super) estimated_count: u64,
}

impl Plan {
    /// Samples keys. Hashing distributes keys, so the keys of one segment are a random sample.
    pub(super) fn sample<M: Medium>(index: &PartitionedHash, medium: &M) -> Result<Plan, Error> {
        let estimated_count = index.segment_count() * SEGMENT_ENTRY_COUNT * 3 / 4;
        let part_count = (estimated_count / PART_COUNT).clamp(1, PARTS_MAX) as usize;
        let mut sample = Vec::new();
        for partition in 0..index.partition_count() {
            if sample.len() >= part_count * SAMPLE_PER_PART {
                break;
            }
            let _pin = epoch::pin();
            let items = Items(medium);
            index.visit(medium, Cursor::of_partition(partition), |_, position| {
                sample.push(Box::from(items.key(position)?));
                Ok::<_, Error>(())
            })?;
        }
        Ok(Plan::of(sample, part_count, estimated_count))
    }

    fn of(mut sample: Vec<Box<[u8]>>, part_count: usize, estimated_count: u64) -> Plan {
        sample.sort_unstable();
        sample.dedup();
        let part_count = part_count.min(sample.len().max(1));
        let splitters: Vec<_> = (1..part_count).map(|i| sample[i * sample.len() / part_count].clone()).collect();
        let inner = splitters.windows(2).map(|ends| common_bytes(&ends[0], &ends[1]));
        // The first part and the last one have an open end, so their keys need not share any bytes.
        let outer = |_| 0;
        let shared_bytes = match part_count {
            1 => vec![0],
            _ => (0..1).map(outer).chain(inner).chain((0..1).map(outer)).collect(),
        };
        Plan::between(splitters, shared_bytes, estimated_count)
    }

    fn between(splitters: Vec<Box<[u8]>>, shared_bytes: Vec<usize>, estimated_count: u64) -> Plan {
        // The splitters ascend: all of them share the bytes that the first and the last share.
        let common = splitters.first().zip(splitters.last()).map_or(&[][..], |(a, b)| &a[..common_bytes(a, b)]);
        let heads = splitters.iter().map(|splitter| head(&splitter[common.len()..])).collect();
        Plan { common: common.into(), splitters, heads, shared_bytes, estimated_count }
    }

    /// Returns the part of a key.
    fn part(&self, key: &[u8]) -> usize {
        let Some(rest) = key.strip_prefix(&*self.common) else {
            return self.splitters.partition_point(|splitter| **splitter <= *key);
        };
        let head = head(rest);
        let below = self.heads.partition_point(|&splitter| splitter < head);
        let tied = self.heads[below..].iter().take_while(|&&splitter| splitter == head).count();
        below + self.splitters[below..below + tied].partition_point(|splitter| **splitter <= *key)
    }

    /// Returns a plan with these splitters, for keys that need no sorting.
    pub(super) fn of_splitters(splitters: Vec<Box<[u8]>>, count: u64) -> Plan {
        let shared_bytes = vec![0; splitters.len() + 1];
        Plan::between(splitters, shared_bytes, count)
    }

    pub(super) fn part_count(&self) -> usize {
        self.shared_bytes.len()
    }

    /// Collects the keys of a partition of the hash index.
    pub(super) fn collect<M: Medium>(
        &self,
        index: &PartitionedHash,
        medium: &M,
        partition: usize,
        done: &AtomicU64,
    ) -> Result<Vec<Vec<Collected>>, Error> {
        let items = Items(medium);
        let mut parts = vec![Vec::new(); self.part_count()];
        let (mut cursor, mut positions) = (Cursor::of_partition(partition), Vec::new());
        while cursor.is_in(partition) {
            let _pin = epoch::pin();
            positions.clear();
            cursor = index.visit(medium, cursor, |_, position| {
                positions.push(position.item());
                Ok::<_, Error>(())
            })?;
            let mut each = |position, key: &[u8]| {
                let part = self.part(key);
                parts[part].push((head(&key[self.shared_bytes[part]..]), position));
                Ok(())
            };
            medium.once(|| each_key(&items, &positions, &mut each))?;
            done.fetch_add(positions.len() as u64, Ordering::Relaxed);
        }
        Ok(parts)
    }

    /// Sorts a part, if needed, and loads it.
    pub(super) fn load<M: Medium, D: Dram>(
        &self,
        medium: &M,
        loader: &Loader<D>,
        part: usize,
        entries: Entries,
        done: &AtomicU64,
    ) -> Result<Part, Error> {
        let items = Items(medium);
        let entries = entries.sorted(&items)?;
        let low = part.checked_sub(1).map_or(&[][..], |i| &self.splitters[i]);
        let high = self.splitters.get(part).map(|splitter| &**splitter);
        let keys = prefetch_ahead(&entries, |&position| items.prefetch(position))
            .map(|&position| items.key(position).map(|key| (position, key)));
        let loaded = loader.part(low, high, keys).map_err(|error| match error {
            LoadError::Keys(error) => error,
            LoadError::NoDram { wanted_bytes } => Error::NoMemory { wanted_bytes },
            LoadError::Unsorted(position) => {
                Error::Corrupt { offset: position.offset().0, what: "an item's key changed while it was sorted" }
            }
        })?;
        done.fetch_add(entries.len() as u64, Ordering::Relaxed);
        Ok(loaded)
    }
}

impl Entries {
    fn sorted<M: Medium>(self, items: &Items<'_, M>) -> Result<Vec<Position>, Error> {
        match self {
            Entries::Collected(mut entries) => {
                sort(items, &mut entries)?;
                Ok(entries.into_iter().map(|(_, position)| position).collect())
            }
            Entries::Sorted(positions) => Ok(positions),
        }
    }
}

/// Sorts by key. If a key was collected twice, because it was deleted and put again during the build, one entry stays:
/// the delta sets the correct item.
fn sort<M: Medium>(items: &Items<'_, M>, entries: &mut Vec<Collected>) -> Result<(), Error> {
    entries.sort_unstable_by_key(|&(head, _)| head);
    let mut is_repeated = vec![];
    for tied in entries.chunk_by_mut(|a, b| a.0 == b.0).filter(|tied| tied.len() > 1) {
        let mut keyed =
            tied.iter().map(|&entry| Ok((items.key(entry.1)?, entry))).collect::<Result<Vec<_>, Error>>()?;
        keyed.sort_unstable_by_key(|&(key, _)| key);
        is_repeated.extend(keyed.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[1].1.1));
        tied.iter_mut().zip(keyed).for_each(|(entry, (_, sorted))| *entry = sorted);
    }
    if !is_repeated.is_empty() {
        entries.retain(|(_, position)| !is_repeated.contains(position));
    }
    Ok(())
}

/// Calls `each` with the key of each item, prefetched.
fn each_key<M: Medium>(
    items: &Items<'_, M>,
    positions: &[Position],
    mut each: impl FnMut(Position, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut positions = prefetch_ahead(positions, |&position| items.prefetch(position));
    positions.try_for_each(|&position| each(position, items.key(position)?))
}

/// Returns the first eight bytes, padded with zeros, as a number with the same order.
fn head(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = key.len().min(8);
    bytes[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(bytes)
}

fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key of `keys` is in the part that is given by splitters sampled from `sample`.
    fn assert_divided(sample: &[Box<[u8]>], keys: &[Box<[u8]>]) {
        let plan = Plan::of(sample.to_vec(), 64, 4_000);
        assert_eq!(plan.part_count(), 64);
        for key in keys {
            assert_eq!(plan.part(key), plan.splitters.iter().filter(|splitter| *splitter <= key).count());
        }
        for key in sample {
            let part = plan.part(key);
            let shared = plan.shared_bytes[part];
            assert!(part == 0 || key[..shared] == plan.splitters[part - 1][..shared]);
        }
    }

    #[test]
    fn keys_part_is_where_its_splitters_say() {
        let keys: Vec<Box<[u8]>> = (0..4_000u32)
            .map(|i| match i % 3 {
                0 => format!("user{i:08}").into_bytes().into(),
                1 => i.to_be_bytes().into(),
                _ => vec![b'u'; i as usize % 40].into(),
            })
            .collect();
        assert_divided(&keys, &keys);
        let alike: Vec<_> = keys.iter().step_by(3).cloned().collect();
        assert_divided(&alike, &keys);
    }
}
