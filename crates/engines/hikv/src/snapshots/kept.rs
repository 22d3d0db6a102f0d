//! The side table: replaced items that live snapshots see.
//!
//! Two sides hold such an item: the snapshots, and the ordered index, which lets go of it when the replacing change is
//! applied. The later of the two retires it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Bound, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use index::Position;
use parking_lot::Mutex;

use engine::{Moment, SnapshotStats};

/// Keys that are looked at under the lock at a time: some tens of microseconds, for which writers may wait.
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
    by_key: BTreeMap<Arc<[u8]>, Vec<Version>>,
    by_signature: BTreeSet<Signed>,
    /// Of each item, by its position, whether the ordered index has let go of it.
    let_go: HashMap<u64, bool>,
    item_bytes: u64,
    key_bytes: u64,
}

impl Version {
    fn is_seen_by(&self, at: Moment) -> bool {
        at.sees(self.from) && !at.sees(self.until)
    }
}

impl Kept {
    /// Enters the item that is about to be replaced.
    pub(super) fn insert(&self, signature: u64, key: &[u8], version: Version) {
        let mut table = self.table.lock();
        self.count.fetch_add(1, Ordering::Relaxed);
        table.let_go.insert(version.position.item().word(), false);
        table.item_bytes += version.item_bytes;
        if let Some(versions) = table.by_key.get_mut(key) {
            return versions.push(version);
        }
        let key: Arc<[u8]> = key.into();
        table.key_bytes += key.len() as u64;
        table.by_signature.insert((signature, Arc::clone(&key)));
        table.by_key.insert(key, vec![version]);
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
        self.table.lock().by_key.get(key).and_then(|versions| seen(versions, at))
    }

    /// The items that the snapshot sees, of keys of these signatures.
    pub(super) fn of_signatures(&self, at: Moment, signatures: RangeInclusive<u64>) -> Vec<Position> {
        let table = self.table.lock();
        let from = (*signatures.start(), Arc::from([]));
        let signed = table.by_signature.range(from..).take_while(|(signature, _)| signatures.contains(signature));
        signed.filter_map(|(_, key)| seen(&table.by_key[key], at)).collect()
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
        let mut see = |(key, versions): (&Arc<[u8]>, &Vec<Version>)| {
            last = Some(Arc::clone(key));
            seen(versions, at)
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

    /// Where a release begins, if there is anything.
    pub(super) fn first(&self) -> Option<Signed> {
        self.table.lock().by_signature.first().cloned()
    }

    /// Removes the versions of the next keys that are not needed; those that the ordered index has let go of are the caller's
    /// to retire. Returns where to go on.
    pub(super) fn release(
        &self,
        next: &Signed,
        mut is_needless: impl FnMut(u32, u32) -> bool,
    ) -> (Vec<Position>, Option<Signed>) {
        let mut table = self.table.lock();
        let mut keys: Vec<_> = table.by_signature.range(next.clone()..).take(STEP_COUNT + 1).cloned().collect();
        let next = if keys.len() > STEP_COUNT { keys.pop() } else { None };
        let mut free = Vec::new();
        for signed in keys {
            let removed = table.remove(&signed, &mut is_needless);
            self.count.fetch_sub(removed.len() as u64, Ordering::Relaxed);
            // What the order still holds, it will retire.
            free.extend(removed.into_iter().filter(|(_, let_go)| *let_go).map(|(position, _)| position));
        }
        (free, next)
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
    /// Removes a key's needless versions, and says of each whether the ordered index has let go of it.
    fn remove(&mut self, signed: &Signed, is_needless: &mut impl FnMut(u32, u32) -> bool) -> Vec<(Position, bool)> {
        let Table { by_key, let_go, item_bytes, .. } = self;
        let Some(versions) = by_key.get_mut(&signed.1) else { return Vec::new() };
        let removed = versions.extract_if(.., |version| is_needless(version.from, version.until));
        let removed = removed
            .map(|version| {
                *item_bytes -= version.item_bytes;
                (version.position, let_go.remove(&version.position.item().word()) == Some(true))
            })
            .collect();
        if versions.is_empty() {
            by_key.remove(&signed.1);
            self.by_signature.remove(signed);
            self.key_bytes -= signed.1.len() as u64;
        }
        removed
    }

    /// What the entries occupy, but for what trees and tables hold in reserve.
    fn dram_bytes(&self) -> u64 {
        let key_entry = size_of::<Arc<[u8]>>() + size_of::<Vec<Version>>() + size_of::<Signed>();
        let version_entry = size_of::<Version>() + size_of::<(u64, bool)>();
        let entries = self.by_key.len() * key_entry + self.let_go.len() * version_entry;
        self.key_bytes + entries as u64
    }
}

fn seen(versions: &[Version], at: Moment) -> Option<Position> {
    versions.iter().find(|version| version.is_seen_by(at)).map(|version| version.position)
}
