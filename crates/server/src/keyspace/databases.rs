//! Sixteen databases in one store.
//!
//! A database is a slot, and a slot is a range of the store's keys:
//!
//! | key in the store | is |
//! |---|---|
//! | `FF`, 1 to 15, *k* | *k* in that slot |
//! | `FF`, 0, *k* | *k* in slot 0, where *k* itself begins with `FF` and a byte up to 16 |
//! | `FF`, 16 | the table below; such keys are the server's own |
//! | any other | the same key in slot 0 |
//!
//! So what a program put into the store without the server is in slot 0 under its own name, unless that name begins with
//! `FF` and a byte up to 16, and no two keys of databases share one in the store. Slot 0 keeps the order of its keys.
//!
//! The table says which slot each database is, and which slots but 0 were ever used: `SWAPDB` changes the table and no
//! key. It is written before a slot is used for the first time; where it is missing each database is the slot of its own
//! number.

use std::borrow::Cow;
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, Ordering};

use hikv::Store;
use parking_lot::Mutex;

use crate::errors::Refusal;
use crate::keyspace::items::Items;

pub(crate) const DATABASE_COUNT: usize = 16;

/// No UTF-8 text has this byte.
const MARK: u8 = 0xFF;
const TABLE_KEY: [u8; 2] = [MARK, DATABASE_COUNT as u8];
/// A byte for each database, and the bits of the slots that were used.
const TABLE_BYTES: usize = DATABASE_COUNT + 2;

/// The range of the store's keys that is one database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(u8);

/// A range of keys in the store.
pub(crate) type RawRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

impl Slot {
    /// The slot that is there without a table.
    pub(crate) const FIRST: Slot = Slot(0);

    pub(crate) fn all() -> impl Iterator<Item = Slot> {
        (0..DATABASE_COUNT as u8).map(Slot)
    }

    /// How the store calls the slot's `key`.
    #[inline]
    pub(crate) fn raw(self, key: &[u8]) -> Cow<'_, [u8]> {
        if self.0 == 0 && !is_marked(key) { Cow::Borrowed(key) } else { Cow::Owned([&[MARK, self.0], key].concat()) }
    }

    /// The slot's key that the store calls `raw`; none if it is another slot's, or nobody's.
    #[inline]
    pub(crate) fn key_of(self, raw: &[u8]) -> Option<&[u8]> {
        match raw {
            [MARK, slot, key @ ..] if is_marked(raw) => (*slot == self.0).then_some(key),
            key => (self.0 == 0).then_some(key),
        }
    }

    /// The store's keys from `low` to `high` that are the slot's, in order: ranges one after the other.
    pub(crate) fn ranges(self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Vec<RawRange> {
        let raw = |bound: Bound<&[u8]>| bound.map(|key| self.raw(key).into_owned());
        let bounds = (raw(low), raw(high));
        match self.0 {
            0 => vec![
                (bounds.0.clone(), lesser(bounds.1.clone(), Bound::Excluded(vec![MARK, 1]))),
                (greater(bounds.0, Bound::Included(vec![MARK, DATABASE_COUNT as u8 + 1])), bounds.1),
            ],
            slot => vec![(
                greater(bounds.0, Bound::Included(vec![MARK, slot])),
                lesser(bounds.1, Bound::Excluded(vec![MARK, slot + 1])),
            )],
        }
    }
}

/// Whether a key of the store is not its own name in slot 0.
fn is_marked(key: &[u8]) -> bool {
    matches!(key, [MARK, slot, ..] if *slot <= DATABASE_COUNT as u8)
}

/// The bound that leaves less below it. An own bound of the range, where there is one, lies on its side of the other.
fn lesser(own: Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (&own, &other) {
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) if a < b => own,
        _ => other,
    }
}

fn greater(own: Bound<Vec<u8>>, other: Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match (&own, &other) {
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) if a >= b => own,
        _ => other,
    }
}

/// What the store holds of them.
pub(crate) struct Table([u8; TABLE_BYTES]);

/// Which slot each database is. It changes only while nobody else executes.
pub(crate) struct Databases {
    slots: [AtomicU8; DATABASE_COUNT],
    /// A bit for each slot that may have keys; that of slot 0 is not used.
    used: AtomicU16,
    /// The store holds the table, which may say what would be so without it.
    stored: AtomicBool,
    noting: Mutex<()>,
}

impl Databases {
    /// As the store has them.
    pub(crate) fn load(store: &Store) -> io::Result<Databases> {
        let table = store.get(TABLE_KEY).map_err(io::Error::other)?;
        let databases = Databases::new();
        if let Some(table) = table {
            databases.take(&table).ok_or_else(|| io::Error::other("the table of databases is damaged"))?;
        }
        Ok(databases)
    }

    /// Which they are now.
    pub(crate) fn now(&self) -> Table {
        Table(self.table(self.used.load(Ordering::Acquire)))
    }

    /// Makes them what the store has, after a transaction that changed them did not happen: what they were before it, where the
    /// store cannot tell.
    pub(crate) fn reload(&self, store: &Store, before: &Table) {
        match store.get(TABLE_KEY) {
            Ok(Some(table)) => _ = self.take(&table),
            Ok(None) => self.forget(),
            Err(_) => _ = self.take(&before.0),
        }
    }

    fn forget(&self) {
        self.stored.store(false, Ordering::Relaxed);
        self.slots.iter().zip(0..).for_each(|(slot, db)| slot.store(db, Ordering::Relaxed));
        self.used.store(0, Ordering::Release);
    }

    fn new() -> Databases {
        Databases {
            slots: std::array::from_fn(|db| AtomicU8::new(db as u8)),
            used: AtomicU16::new(0),
            stored: AtomicBool::new(false),
            noting: Mutex::new(()),
        }
    }

    fn take(&self, table: &[u8]) -> Option<()> {
        let (slots, used) = table.split_at_checked(DATABASE_COUNT)?;
        let is_permutation = (0..DATABASE_COUNT as u8).all(|slot| slots.contains(&slot));
        let used = u16::from_le_bytes(used.try_into().ok()?);
        self.slots.iter().zip(slots).for_each(|(own, slot)| own.store(*slot, Ordering::Relaxed));
        self.used.store(used, Ordering::Relaxed);
        self.stored.store(true, Ordering::Relaxed);
        is_permutation.then_some(())
    }

    /// The slot of database `db`.
    pub(crate) fn slot(&self, db: u8) -> Slot {
        Slot(self.slots[db as usize].load(Ordering::Relaxed))
    }

    /// Whether the slot may have keys.
    pub(crate) fn is_used(&self, slot: Slot) -> bool {
        slot == Slot::FIRST || self.used.load(Ordering::Acquire) & (1 << slot.0) != 0
    }

    /// Whether the store holds the table itself.
    pub(crate) fn is_stored(&self) -> bool {
        self.stored.load(Ordering::Acquire)
    }

    /// Makes it known that `slot` has keys, before it has.
    pub(crate) fn note_use(&self, items: Items<'_>, slot: Slot) -> Result<(), Refusal> {
        if self.is_used(slot) {
            return Ok(());
        }
        let _one_at_a_time = self.noting.lock();
        let used = self.used.load(Ordering::Acquire) | 1 << slot.0;
        items.put(TABLE_KEY, self.table(used))?;
        self.stored.store(true, Ordering::Release);
        self.used.store(used, Ordering::Release);
        Ok(())
    }

    /// Makes one database what the other was.
    pub(crate) fn swap(&self, items: Items<'_>, a: u8, b: u8) -> Result<(), Refusal> {
        let (first, second) = (self.slot(a), self.slot(b));
        let mut table = self.table(self.used.load(Ordering::Acquire));
        table.swap(a as usize, b as usize);
        items.put(TABLE_KEY, table)?;
        self.stored.store(true, Ordering::Release);
        self.slots[a as usize].store(second.0, Ordering::Relaxed);
        self.slots[b as usize].store(first.0, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes everything, the table among it, as one step.
    pub(crate) fn clear(&self, items: Items<'_>) -> Result<(), Refusal> {
        items.clear()?;
        self.forget();
        Ok(())
    }

    fn table(&self, used: u16) -> [u8; TABLE_BYTES] {
        let mut table = [0; TABLE_BYTES];
        table.iter_mut().zip(&self.slots).for_each(|(byte, slot)| *byte = slot.load(Ordering::Relaxed));
        table[DATABASE_COUNT..].copy_from_slice(&used.to_le_bytes());
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys that could be taken for others.
    fn keys() -> Vec<Vec<u8>> {
        let mut keys = vec![vec![], b"a".to_vec(), vec![0xFE], vec![0xFF], vec![0xFF, 0xFF]];
        for byte in 0..=18 {
            keys.push(vec![byte]);
            keys.push(vec![0xFF, byte]);
            keys.push(vec![0xFF, byte, 0xFF, byte]);
        }
        keys.sort();
        keys.dedup();
        keys
    }

    #[test]
    fn no_two_keys_share_one_of_the_store() {
        let mut seen = std::collections::HashSet::new();
        for slot in Slot::all() {
            for key in keys() {
                let raw = slot.raw(&key).into_owned();
                assert_ne!(raw, TABLE_KEY);
                for other in Slot::all() {
                    assert_eq!(other.key_of(&raw), (other == slot).then_some(&key[..]));
                }
                assert!(seen.insert(raw));
            }
        }
        assert!(Slot::all().all(|slot| slot.key_of(&TABLE_KEY).is_none()) || DATABASE_COUNT > 16);
    }

    #[test]
    fn ranges_hold_the_slots_keys_in_order() {
        for slot in Slot::all() {
            let mut raws: Vec<Vec<u8>> =
                Slot::all().flat_map(|slot| keys().into_iter().map(move |key| slot.raw(&key).into_owned())).collect();
            raws.push(TABLE_KEY.to_vec());
            raws.sort();
            for low in [Bound::Unbounded, Bound::Included(&b"a"[..]), Bound::Excluded(&[0xFF, 3][..])] {
                for high in
                    [Bound::Unbounded, Bound::Included(&[0xFF, 4][..]), Bound::Excluded(&[0xFF, 0x11, 0xFF][..])]
                {
                    let within = |key: &[u8]| std::ops::RangeBounds::<[u8]>::contains(&(low, high), key);
                    let wanted: Vec<Vec<u8>> = keys().into_iter().filter(|key| within(key)).collect();
                    let found: Vec<Vec<u8>> = slot
                        .ranges(low, high)
                        .iter()
                        .flat_map(|range| {
                            raws.iter().filter(|raw| std::ops::RangeBounds::<Vec<u8>>::contains(range, raw))
                        })
                        .map(|raw| slot.key_of(raw).expect("a key of the slot").to_vec())
                        .collect();
                    assert_eq!(found, wanted, "{slot:?} {low:?} {high:?}");
                }
            }
        }
    }
}
