//! The side table: replaced items that live snapshots see.
//!
//! Such an item is held by the snapshots and by the ordered index. The ordered index releases the item when the
//! replacing change is applied. The later of the two retires the item.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use index::Position;
use parking_lot::Mutex;

use super::owners::{Owners, Signed, Unneeded};
use engine::{Moment, SnapshotStats};

/// The most items that are removed while the lock is held: some tens of microseconds, for which writers may wait.
const STEP_COUNT: usize = 256;

/// A replaced item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    pub(super) position: Position,
    pub(super) item_bytes: u64,
    /// Its stamp.
    pub(super) from: u32,
    /// The stamp of its replacement, or the epoch of its removal.
    pub(super) until: u32,
}

/// Versions of one key, oldest first: snapshots that end from either end remove them from there.
type Versions = VecDeque<Version>;

/// The side table.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    table: Mutex<Table>,
    /// Items in the table, readable without its lock.
    count: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    /// Each key's versions, oldest first.
    by_key: BTreeMap<Arc<[u8]>, Versions>,
    by_signature: BTreeSet<Signed>,
    owners: Owners,
    /// For each item, by its position, true once the ordered index has released it.
    let_go: HashMap<u64, bool>,
    item_bytes: u64,
    key_bytes: u64,
}

impl Kept {
    /// Enters an item that is about to be replaced. `newest_viewer` is the newest live snapshot that sees it.
    pub(super) fn insert(&self, newest_viewer: u32, signature: u64, key: &[u8], version: Version) {
        let mut table = self.table.lock();
        self.count.fetch_add(1, Ordering::Relaxed);
        table.let_go.insert(version.position.item().word(), false);
        table.item_bytes += version.item_bytes;
        let key = table.enter(signature, key, version);
        table.owners.insert(newest_viewer, version.from, (signature, key));
    }

    /// Records that the ordered index has released the item. Returns true if snapshots still hold it and will retire
    /// it; otherwise the caller retires it.
    #[inline(always)]
    pub(super) fn let_go(&self, position: Position) -> bool {
        // The entering of an item comes before its release, and has counted it.
        self.count.load(Ordering::Relaxed) != 0 && self.note_let_go(position)
    }

    #[cold]
    fn note_let_go(&self, position: Position) -> bool {
        self.table.lock().let_go.get_mut(&position.item().word()).map(|let_go| *let_go = true).is_some()
    }

    /// Returns the key's replaced item that the snapshot sees, if there is one.
    pub(super) fn at(&self, at: Moment, key: &[u8]) -> Option<Position> {
        // The caller's search of the index comes first, including its comparisons of signatures, which acquire nothing.
        fence(Ordering::Acquire);
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.table.lock().by_key.get(key).and_then(|versions| version_at(versions, at))
    }

    /// Returns the items of keys with these signatures that the snapshot sees.
    pub(super) fn of_signatures(&self, at: Moment, signatures: RangeInclusive<u64>) -> Vec<Position> {
        let table = self.table.lock();
        let from = (*signatures.start(), Arc::from([]));
        let signed = table.by_signature.range(from..).take_while(|(signature, _)| signatures.contains(signature));
        signed.filter_map(|(_, key)| version_at(&table.by_key[key], at)).collect()
    }

    /// Returns the items of keys within `bounds` that the snapshot sees, from one end. Visits at most `count` keys; if
    /// more are left, also returns the last visited key.
    pub(crate) fn within(
        &self,
        at: Moment,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        is_backward: bool,
        count: usize,
    ) -> (Vec<Position>, Option<Arc<[u8]>>) {
        let table = self.table.lock();
        let range = table.by_key.range::<[u8], _>(bounds);
        let mut last = None;
        let mut see = |(key, versions): (&Arc<[u8]>, &Versions)| {
            last = Some(Arc::clone(key));
            version_at(versions, at)
        };
        let (positions, is_cut): (Vec<_>, _) = if is_backward {
            let mut keys = range.rev();
            (keys.by_ref().take(count).filter_map(&mut see).collect(), keys.next().is_some())
        } else {
            let mut keys = range;
            (keys.by_ref().take(count).filter_map(&mut see).collect(), keys.next().is_some())
        };
        (positions, last.filter(|_| is_cut))
    }

    /// Ends the snapshot of this epoch; `older` is the next older live snapshot. Returns the items to remove.
    pub(super) fn end_snapshot(&self, epoch: u32, older: Option<u32>) -> Unneeded {
        self.table.lock().owners.end(epoch, older)
    }

    /// Removes some of the items. Returns those that the ordered index has released, for the caller to retire; `None`
    /// once all are removed.
    pub(super) fn remove_some(&self, needless: &mut Unneeded) -> Option<Vec<Position>> {
        let items = needless.take(STEP_COUNT);
        if items.is_empty() {
            return None;
        }
        let mut table = self.table.lock();
        let removed = items.iter().filter_map(|(signed, stamp)| table.remove(signed, *stamp));
        let removed: Vec<_> = removed.collect();
        self.count.fetch_sub(removed.len() as u64, Ordering::Relaxed);
        // The ordered index will retire the items that it still holds.
        Some(removed.into_iter().filter(|(_, let_go)| *let_go).map(|(position, _)| position).collect())
    }

    pub(super) fn stats(&self) -> SnapshotStats {
        let table = self.table.lock();
        SnapshotStats {
            kept_count: table.let_go.len() as u64,
            kept_bytes: table.item_bytes,
            dram_bytes: table.dram_bytes(),
            ..SnapshotStats::default()
        }
    }
}

impl Table {
    /// Adds a version to those of its key. The table shares the bytes of the key.
    fn enter(&mut self, signature: u64, key: &[u8], version: Version) -> Arc<[u8]> {
        if let Some((shared, _)) = self.by_key.get_key_value(key) {
            let shared = Arc::clone(shared);
            self.by_key.get_mut(key).expect("the key was found").push_back(version);
            return shared;
        }
        let key: Arc<[u8]> = key.into();
        self.key_bytes += key.len() as u64;
        self.by_signature.insert((signature, Arc::clone(&key)));
        self.by_key.insert(Arc::clone(&key), Versions::from([version]));
        key
    }

    /// Removes the key's version of this stamp; also returns true if the ordered index has released it.
    fn remove(&mut self, signed: &Signed, stamp: u32) -> Option<(Position, bool)> {
        let versions = self.by_key.get_mut(&signed.1)?;
        let number = versions.binary_search_by_key(&stamp, |version| version.from).ok()?;
        let Version { position, item_bytes, .. } = versions.remove(number)?;
        self.item_bytes -= item_bytes;
        if versions.is_empty() {
            self.by_key.remove(&signed.1);
            self.by_signature.remove(signed);
            self.key_bytes -= signed.1.len() as u64;
        }
        Some((position, self.let_go.remove(&position.item().word()) == Some(true)))
    }

    /// Returns the bytes of the entries, without spare capacity of trees and tables.
    fn dram_bytes(&self) -> u64 {
        let key_entry = size_of::<Arc<[u8]>>() + size_of::<Versions>() + size_of::<Signed>();
        let version_entry = size_of::<Version>() + size_of::<(u64, bool)>() + size_of::<Signed>();
        let entries = self.by_key.len() * key_entry + self.let_go.len() * version_entry;
        self.key_bytes + entries as u64
    }
}

/// Returns the version that the snapshot sees: the last one whose stamp it sees, unless it also sees the next stamp.
fn version_at(versions: &Versions, at: Moment) -> Option<Position> {
    let number = versions.partition_point(|version| at.sees(version.from)).checked_sub(1)?;
    Some(versions[number]).filter(|version| !at.sees(version.until)).map(|version| version.position)
}
