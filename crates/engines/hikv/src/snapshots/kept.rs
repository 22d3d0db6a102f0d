//! The side table: replaced items that live snapshots see.
//!
//! Two sides hold such an item: the snapshots, and the ordered index, which lets go of it when the replacing change is
//! applied. The later of the two retires it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use index::Position;
use parking_lot::Mutex;

use super::owners::{Needless, Owners};
use engine::{Moment, SnapshotStats};

/// Items that are removed under the lock at a time: some tens of microseconds, for which writers may wait.
const STEP_COUNT: usize = 256;

/// A replaced item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    pub(super) position: Position,
    pub(super) item_bytes: u64,
    /// Its stamp.
    pub(super) from: u32,
    /// The stamp of what replaced it, or the epoch of its removal.
    pub(super) until: u32,
}

/// Versions of one key, oldest first: snapshots that end from either end remove them from there.
type Versions = VecDeque<Version>;

/// A key in the order of signatures.
pub(super) type Signed = (u64, Arc<[u8]>);

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
    /// Of each item, by its position, whether the ordered index has let go of it.
    let_go: HashMap<u64, bool>,
    item_bytes: u64,
    key_bytes: u64,
}

impl Kept {
    /// Enters the item that is about to be replaced. The newest live snapshot that sees it is `seer`.
    pub(super) fn insert(&self, seer: u32, signature: u64, key: &[u8], version: Version) {
        let mut table = self.table.lock();
        self.count.fetch_add(1, Ordering::Relaxed);
        table.let_go.insert(version.position.item().word(), false);
        table.item_bytes += version.item_bytes;
        let key = table.enter(signature, key, version);
        table.owners.insert(seer, version.from, (signature, key));
    }

    /// The ordered index has let go of the item. True if snapshots still hold it: they retire it. Otherwise it is the
    /// caller's to retire.
    #[inline(always)]
    pub(super) fn let_go(&self, position: Position) -> bool {
        // Whoever lets go of an item comes after its entering, which counted it.
        self.count.load(Ordering::Relaxed) != 0 && self.note_let_go(position)
    }

    #[cold]
    fn note_let_go(&self, position: Position) -> bool {
        self.table.lock().let_go.get_mut(&position.item().word()).map(|let_go| *let_go = true).is_some()
    }

    /// The key's item that the snapshot sees, if it was replaced.
    pub(super) fn at(&self, at: Moment, key: &[u8]) -> Option<Position> {
        // The caller's search of the index comes first, its comparisons of signatures included, which acquire nothing.
        fence(Ordering::Acquire);
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.table.lock().by_key.get(key).and_then(|versions| version_at(versions, at))
    }

    /// The items that the snapshot sees, of keys of these signatures.
    pub(super) fn of_signatures(&self, at: Moment, signatures: RangeInclusive<u64>) -> Vec<Position> {
        let table = self.table.lock();
        let from = (*signatures.start(), Arc::from([]));
        let signed = table.by_signature.range(from..).take_while(|(signature, _)| signatures.contains(signature));
        signed.filter_map(|(_, key)| version_at(&table.by_key[key], at)).collect()
    }

    /// The items that the snapshot sees, of keys within `bounds`, from one end: at most `count` keys are looked at, and
    /// if those are not all, the last one is told.
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

    /// The snapshot of this epoch has ended, and the next older live one is `older`. Returns what is to be removed.
    pub(super) fn end_snapshot(&self, epoch: u32, older: Option<u32>) -> Needless {
        self.table.lock().owners.end(epoch, older)
    }

    /// Removes some of the items; those that the ordered index has let go of are the caller's to retire. `None` once all are removed.
    pub(super) fn remove_some(&self, needless: &mut Needless) -> Option<Vec<Position>> {
        let items = needless.take(STEP_COUNT);
        if items.is_empty() {
            return None;
        }
        let mut table = self.table.lock();
        let removed = items.iter().filter_map(|(signed, stamp)| table.remove(signed, *stamp));
        let removed: Vec<_> = removed.collect();
        self.count.fetch_sub(removed.len() as u64, Ordering::Relaxed);
        // What the order still holds, it will retire.
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
    /// Adds a version to those of its key, whose bytes the table shares.
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

    /// Removes the key's version of this stamp, and says whether the ordered index has let go of it.
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

    /// What the entries occupy, but for what trees and tables hold in reserve.
    fn dram_bytes(&self) -> u64 {
        let key_entry = size_of::<Arc<[u8]>>() + size_of::<Versions>() + size_of::<Signed>();
        let version_entry = size_of::<Version>() + size_of::<(u64, bool)>() + size_of::<Signed>();
        let entries = self.by_key.len() * key_entry + self.let_go.len() * version_entry;
        self.key_bytes + entries as u64
    }
}

/// The version that the snapshot sees: the last one whose stamp it sees, unless it sees the next stamp as well.
fn version_at(versions: &Versions, at: Moment) -> Option<Position> {
    let number = versions.partition_point(|version| at.sees(version.from)).checked_sub(1)?;
    Some(versions[number]).filter(|version| !at.sees(version.until)).map(|version| version.position)
}
