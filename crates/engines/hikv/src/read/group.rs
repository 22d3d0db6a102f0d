//! Lookups of many keys whose memory accesses overlap.

use arrayvec::ArrayVec;
use index::partitioned_hash::{Lookup, Route};
use pmem::{Medium, Offset, Span};

use super::{GROUP_COUNT, Reader, is_short};
use crate::item;
use engine::{Error, Limits};
use items::Plain;

/// The slot of an absent key.
const NOWHERE: Span = Span { start: Offset::NULL, len_bytes: 0 };

impl<M: Medium> Reader<M> {
    /// Passes the values of up to [`GROUP_COUNT`] keys to `found`, in order.
    pub(crate) fn get_group(&self, keys: &[&[u8]], mut found: impl FnMut(usize, Option<&[u8]>)) -> Result<(), Error> {
        let _pin = epoch::pin();
        let mut values = [None; GROUP_COUNT];
        let found_count = self.lookup_group(keys, &mut values);
        values[..found_count].iter().enumerate().for_each(|(i, &value)| found(i, value));
        for (i, key) in keys.iter().enumerate().skip(found_count) {
            if !self.find_and_read(key, u64::MAX, &mut |_, _, value| found(i, Some(value)))? {
                found(i, None);
            }
        }
        Ok(())
    }

    /// Prefetches the entries, the locks and the items of up to [`GROUP_COUNT`] keys. The caller is pinned.
    pub(crate) fn prefetch_group(&self, keys: &[&[u8]]) {
        let target = |key: &&[u8]| self.index().prefetch(self.medium(), self.signature(key));
        let targets: ArrayVec<_, GROUP_COUNT> = keys.iter().map(target).collect();
        targets.iter().for_each(|target| _ = self.prefetch_old(target));
    }

    /// Looks up the values of up to [`GROUP_COUNT`] keys; returns the number of `values` up to the first unsure lookup.
    /// The caller is pinned.
    ///
    /// The result ends there because a later key must not be read before an earlier one. If another thread writes a
    /// batch at the same time, a caller that has read one key as the batch left it must not read another key as it was
    /// before. So lines are read in the order of the keys, and no lookup counts if the route of readers changed in
    /// between ([`index::partitioned_hash::Route`]). The caller is pinned, so an item that an entry named is read
    /// unchanged.
    #[inline(always)]
    pub(crate) fn lookup_group<'a>(&'a self, keys: &[&[u8]], values: &mut [Option<&'a [u8]>]) -> usize {
        let route = self.index.route();
        let mut targets = [(0, Offset(0)); GROUP_COUNT];
        for (key, target) in keys.iter().zip(&mut targets) {
            if !is_short(key) {
                return self.lookup_group_any_length(keys, values);
            }
            let signature = self.signature(key);
            *target = (signature, self.index.home_line(&self.medium, &route, signature));
        }
        self.lookup_lines(keys, &route, &targets, values, |slot, key| {
            // SAFETY: the keys are those of the loop above.
            unsafe { self.plain_in_of_short(slot, key) }
        })
    }

    /// As [`Reader::lookup_group`], for keys of any length; returns 0 if a key is too long.
    #[inline(never)]
    fn lookup_group_any_length<'a>(&'a self, keys: &[&[u8]], values: &mut [Option<&'a [u8]>]) -> usize {
        if keys.iter().any(|key| Limits::check_key(key).is_err()) {
            return 0;
        }
        let route = self.index.route();
        let mut targets = [(0, Offset(0)); GROUP_COUNT];
        for (key, target) in keys.iter().zip(&mut targets) {
            let signature = self.signature(key);
            *target = (signature, self.index.home_line(&self.medium, &route, signature));
        }
        self.lookup_lines(keys, &route, &targets, values, |slot, key| self.plain_in(slot, key))
    }

    /// Does the part of [`Reader::lookup_group`] after the prefetch of the keys' lines. `item_in` returns the key's
    /// item if it is in a slot.
    #[inline(always)]
    fn lookup_lines<'a>(
        &'a self,
        keys: &[&[u8]],
        route: &Route<'_>,
        targets: &[(u64, Offset); GROUP_COUNT],
        values: &mut [Option<&'a [u8]>],
        item_in: impl Fn(Span, &[u8]) -> Option<Plain<'a>>,
    ) -> usize {
        let mut found_count = keys.len().min(GROUP_COUNT);
        let mut slots = [NOWHERE; GROUP_COUNT];
        for (i, (&(signature, line), slot)) in targets[..found_count].iter().zip(&mut slots).enumerate() {
            match self.index.lookup_line(&self.medium, line, signature) {
                Lookup::Entry(position) => {
                    item::request(&self.medium, position);
                    match item::slot(position) {
                        Some(found) => *slot = found,
                        None => found_count = found_count.min(i),
                    }
                }
                Lookup::Nothing if self.trusts_absence() => {}
                // The later lines are still read, because that prefetches their items.
                _ => found_count = found_count.min(i),
            }
        }
        if !self.index.is_current_route(&self.medium, route) {
            return 0;
        }
        for (i, ((key, value), slot)) in keys.iter().zip(values).zip(&slots[..found_count]).enumerate() {
            *value = match item_in(*slot, key) {
                Some(item) if self.is_verified(&item, u64::MAX) => Some(item.value()),
                None if *slot == NOWHERE => None,
                _ => return i,
            };
        }
        found_count
    }
}
