//! The owner of each kept item, so that the end of a snapshot visits only the items that it kept and no other snapshot
//! sees.
//!
//! # Invariants
//! - Each kept item has one owner: the newest live snapshot that sees it.
//! - When a snapshot ends, the next older one sees exactly the items whose stamp is at most the older one's epoch, and
//!   becomes the owner of these items. No snapshot refers to the other items.
//!
//! # Cost
//! The younger stamps are split off in one step. When two sets are joined, the smaller one is moved into the larger
//! one, so an item moves at most once for each time that its set doubles: dropping all snapshots takes O(log n) moves
//! per item, in any order.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

/// A key in the order of signatures.
pub(super) type Signed = (u64, Arc<[u8]>);

/// The owners of all kept items.
#[derive(Debug, Default)]
pub(super) struct Owners {
    by_epoch: BTreeMap<u32, Owned>,
    /// Items that were moved from one set to another.
    #[cfg(test)]
    pub(super) moved_count: usize,
}

/// The items of one snapshot, by their stamps; the keys of each stamp in no order.
#[derive(Debug, Default)]
struct Owned {
    by_stamp: BTreeMap<u32, Vec<Signed>>,
    count: usize,
}

/// Items that no snapshot sees any more, and that are still in the side table.
#[derive(Debug, Default)]
pub(super) struct Unneeded(BTreeMap<u32, Vec<Signed>>);

impl Owners {
    /// Makes the snapshot of this epoch the owner of the key's item of this stamp.
    pub(super) fn insert(&mut self, epoch: u32, stamp: u32, signed: Signed) {
        let owned = self.by_epoch.entry(epoch).or_default();
        owned.by_stamp.entry(stamp).or_default().push(signed);
        owned.count += 1;
    }

    /// Ends the snapshot of this epoch; `older` is the next older live snapshot. Returns the items that no snapshot
    /// sees any more.
    pub(super) fn end(&mut self, epoch: u32, older: Option<u32>) -> Unneeded {
        let Some(mut owned) = self.by_epoch.remove(&epoch) else { return Unneeded::default() };
        let Some(older) = older else { return Unneeded(owned.by_stamp) };
        let needless = owned.by_stamp.split_off(&(older + 1));
        owned.count -= needless.values().map(Vec::len).sum::<usize>();
        if owned.count > 0 {
            let _moved_count = self.by_epoch.entry(older).or_default().join(owned);
            #[cfg(test)]
            (self.moved_count += _moved_count);
        }
        Unneeded(needless)
    }
}

impl Owned {
    /// Takes over all items of `other`; returns the number of moved items.
    fn join(&mut self, mut other: Owned) -> usize {
        if self.count < other.count {
            mem::swap(self, &mut other);
        }
        self.count += other.count;
        let mut moved_count = 0;
        for (stamp, mut keys) in other.by_stamp {
            let own = self.by_stamp.entry(stamp).or_default();
            if own.len() < keys.len() {
                mem::swap(own, &mut keys);
            }
            moved_count += keys.len();
            own.append(&mut keys);
        }
        moved_count
    }
}

impl Unneeded {
    /// Removes and returns the next items, at most `count`, as keys with stamps.
    pub(super) fn take(&mut self, count: usize) -> Vec<(Signed, u32)> {
        let mut taken = Vec::new();
        while taken.len() < count
            && let Some(mut stamp) = self.0.first_entry()
        {
            let (number, keys) = (*stamp.key(), stamp.get_mut());
            let rest = keys.len().saturating_sub(count - taken.len());
            taken.extend(keys.drain(rest..).map(|signed| (signed, number)));
            if keys.is_empty() {
                stamp.remove();
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAPSHOT_COUNT: u32 = 1 << 12;
    /// The most moves of an item: twice the logarithm of the number of items.
    const MOVED_MAX: usize = 2 * SNAPSHOT_COUNT.ilog2() as usize;

    fn signed(number: u32) -> Signed {
        (number.into(), Arc::from(number.to_le_bytes()))
    }

    /// Each snapshot owns an item that only it sees, and one that all older snapshots also see. The snapshots end in
    /// this order.
    fn moved_count(order: impl Iterator<Item = u32>) -> usize {
        let (mut owners, mut live) =
            (Owners::default(), (0..SNAPSHOT_COUNT).collect::<std::collections::BTreeSet<_>>());
        for epoch in 0..SNAPSHOT_COUNT {
            owners.insert(epoch, epoch, signed(epoch));
            owners.insert(epoch, 0, signed(epoch + SNAPSHOT_COUNT));
        }
        let mut freed_count = 0;
        for epoch in order {
            live.remove(&epoch);
            let mut needless = owners.end(epoch, live.range(..epoch).next_back().copied());
            while let taken = needless.take(7)
                && !taken.is_empty()
            {
                assert!(taken.len() <= 7 && taken.iter().all(|(_, stamp)| *stamp <= epoch));
                freed_count += taken.len();
            }
        }
        assert_eq!(freed_count, 2 * SNAPSHOT_COUNT as usize, "an item stayed behind, or went twice");
        owners.moved_count
    }

    #[test]
    fn items_move_few_times_in_any_order() {
        let oldest_first = moved_count(0..SNAPSHOT_COUNT);
        let newest_first = moved_count((0..SNAPSHOT_COUNT).rev());
        // An odd factor visits each number once.
        let mixed = moved_count((0..SNAPSHOT_COUNT).map(|number| number.wrapping_mul(2_654_435_761) % SNAPSHOT_COUNT));
        assert_eq!(oldest_first, 0);
        for moved in [newest_first, mixed] {
            assert!(moved <= MOVED_MAX * 2 * SNAPSHOT_COUNT as usize, "{moved} moves");
        }
    }

    #[test]
    fn items_invisible_to_older_snapshots_are_unneeded() {
        let mut owners = Owners::default();
        owners.insert(9, 4, signed(1));
        owners.insert(9, 5, signed(2));
        owners.insert(9, 6, signed(3));
        let stamps = |mut needless: Unneeded| needless.take(9).into_iter().map(|(_, stamp)| stamp).collect::<Vec<_>>();
        assert_eq!(stamps(owners.end(9, Some(5))), [6]);
        assert_eq!(stamps(owners.end(5, None)), [4, 5]);
    }
}
