//! Scans, with checks of their results.

use std::ops::ControlFlow;

use crate::records::{Records, last_in_order};
use crate::subject::{Error, Subject};

/// The maximum number of items of one scan, as in YCSB E.
pub(crate) const SCAN_ITEMS_MAX: u64 = 100;

/// Copies of scanned items, in memory that is reused.
pub(crate) struct Scans {
    records: Records,
    /// The greatest loaded key: a scan may reach its end only past it.
    last_key: Vec<u8>,
    /// Keys and values in turn.
    items: Vec<u8>,
}

impl Scans {
    /// Creates scans of these records, which are all loaded.
    pub(crate) fn new(records: Records) -> Scans {
        let mut last_key = vec![0; records.key_bytes];
        records.write_key(last_in_order(records.count), &mut last_key);
        Scans { records, last_key, items: Vec::new() }
    }

    /// Copies `count` items beginning at the key `from`, which exists; returns true if they are right.
    pub(crate) fn copy<S: Subject>(&mut self, subject: &S, from: &[u8], count: u64) -> Result<bool, Error> {
        self.items.clear();
        let mut missing = count;
        subject.scan(from, |key, value| {
            self.items.extend_from_slice(key);
            self.items.extend_from_slice(value);
            missing -= 1;
            if missing > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(self.items.starts_with(from) && self.are_right(count - missing, missing > 0))
    }

    /// Returns true if the copies are `count` items of records, in order; or the last ones of all if the scan
    /// `is_at_end`.
    fn are_right(&self, count: u64, is_at_end: bool) -> bool {
        let Records { key_bytes, value_bytes, .. } = self.records;
        let mut last_key: &[u8] = &[];
        let are_items = self.items.chunks(key_bytes + value_bytes).all(|item| {
            let Some((key, value)) = item.split_at_checked(key_bytes) else { return false };
            let is_next = std::mem::replace(&mut last_key, key) < key;
            is_next && self.records.is_item(key, value)
        });
        let len_bytes = count * (key_bytes + value_bytes) as u64;
        are_items && self.items.len() as u64 == len_bytes && (!is_at_end || last_key >= &self.last_key[..])
    }
}

/// Returns the number of items in a scan of everything that are right and in order.
pub(crate) fn count_right<S: Subject>(subject: &S, records: Records) -> Result<u64, Error> {
    let (mut last_key, mut right) = (Vec::new(), 0);
    subject.scan(&[], |key, value| {
        right += u64::from(*last_key < *key && records.is_item(key, value));
        key.clone_into(&mut last_key);
        ControlFlow::Continue(())
    })?;
    Ok(right)
}
