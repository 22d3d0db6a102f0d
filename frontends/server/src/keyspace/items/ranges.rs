//! Iteration over items, without order and in key order.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::{ControlFlow, RangeBounds};

use hikv::{Error, Item, Ordered};

use super::Items;
use crate::errors::Refusal;
use crate::keyspace::namespace::RawRange;

/// Items of a range, in the requested order.
pub(super) type RangeItems<'a> = Box<dyn Iterator<Item = Result<Item, Error>> + 'a>;

/// A changed key, with its value if it has one.
type Changed = (Vec<u8>, Option<Vec<u8>>);

impl<'a> Items<'a> {
    /// Like [`hikv::Cursors::random`].
    pub(crate) fn random_cursor(self, seed: u64) -> Result<u64, Refusal> {
        Ok(self.store.cursors().random(seed)?)
    }

    /// Like [`hikv::Cursors::walk`]. Keys that the transaction has added come at the end.
    pub(crate) fn walk(self, from: u64, mut each: impl FnMut(&[u8])) -> Result<u64, Refusal> {
        let Some(pending) = self.pending else { return Ok(self.store.cursors().walk(from, |key, _| each(key))?) };
        let next = match pending.shows_store() {
            false => 0,
            true => self.store.cursors().walk(from, |key, _| {
                if !pending.contains(key) || pending.held(key, |held| held.is_some()) {
                    each(key);
                }
            })?,
        };
        if next == 0 {
            let mut failure = None;
            pending.for_each(|key, value| match self.is_stored(key) {
                Ok(false) if value.is_some() => each(key),
                Ok(_) => {}
                Err(error) => failure = Some(error),
            });
            failure.map_or(Ok(()), Err)?;
        }
        Ok(next)
    }

    /// Returns whether the store's walk already shows the key.
    fn is_stored(self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.pending.is_none_or(|pending| pending.shows_store()) && self.store.contains(key)?)
    }

    /// Returns the items of a range.
    pub(crate) fn range(
        self,
        ordered: &'a Ordered,
        range: RawRange,
        is_reverse: bool,
    ) -> Result<RangeItems<'a>, Refusal> {
        let stored = self.stored_range(ordered, range.clone(), is_reverse)?;
        let Some(pending) = self.pending else { return Ok(stored) };
        let mut changed: Vec<Changed> = Vec::new();
        pending.for_each(|key, value| {
            if RangeBounds::<[u8]>::contains(&borrowed(&range), key) {
                changed.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            }
        });
        if is_reverse {
            changed.reverse();
        }
        Ok(Box::new(Merged { stored: stored.peekable(), changed: changed.into_iter().peekable(), is_reverse }))
    }

    /// Calls `each` with the items of a range until it breaks. Outside of transactions it copies no item.
    pub(crate) fn each_of_range(
        self,
        ordered: &'a Ordered,
        range: RawRange,
        is_reverse: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Refusal>,
    ) -> Result<(), Refusal> {
        if self.pending.is_some() {
            for item in self.range(ordered, range, is_reverse)? {
                let (key, value) = item?;
                if each(&key, &value)?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let mut items = ordered.range::<Vec<u8>>(range)?;
        while let Some((key, value)) = if is_reverse { items.next_back_ref() } else { items.next_ref() }? {
            if each(key, value)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn stored_range(self, ordered: &'a Ordered, range: RawRange, is_reverse: bool) -> Result<RangeItems<'a>, Refusal> {
        if self.pending.is_some_and(|pending| !pending.shows_store()) {
            return Ok(Box::new(std::iter::empty()));
        }
        let items = ordered.range::<Vec<u8>>(range)?;
        Ok(if is_reverse { Box::new(items.rev()) } else { Box::new(items) })
    }

    /// Counts the keys of a range.
    pub(crate) fn count(self, ordered: &Ordered, range: RawRange) -> Result<u64, Refusal> {
        let is_shown = self.pending.is_none_or(|pending| pending.shows_store());
        let stored_count = if is_shown { ordered.count::<Vec<u8>>(range.clone())? } else { 0 };
        Ok(stored_count
            .saturating_add_signed(self.added_count(|key| RangeBounds::<[u8]>::contains(&borrowed(&range), key))?))
    }

    /// Counts the keys of the store and those added by the transaction.
    pub(crate) fn len(self) -> Result<u64, Refusal> {
        let is_shown = self.pending.is_none_or(|pending| pending.shows_store());
        let stored_count = if is_shown { self.store.len()? } else { 0 };
        Ok(stored_count.saturating_add_signed(self.added_count(|_| true)?))
    }

    /// Returns how many keys for which `counts` returns true the transaction has added, minus those it has deleted.
    fn added_count(self, counts: impl Fn(&[u8]) -> bool) -> Result<i64, Refusal> {
        let (mut count, mut failure) = (0, None);
        let Some(pending) = self.pending else { return Ok(0) };
        pending.for_each(|key, value| {
            if counts(key) {
                let is_stored = self.is_stored(key).unwrap_or_else(|error| {
                    failure = Some(error);
                    false
                });
                count += i64::from(value.is_some()) - i64::from(is_stored);
            }
        });
        failure.map_or(Ok(count), |error| Err(error.into()))
    }
}

fn borrowed(range: &RawRange) -> (std::ops::Bound<&[u8]>, std::ops::Bound<&[u8]>) {
    (range.0.as_ref().map(|key| &key[..]), range.1.as_ref().map(|key| &key[..]))
}

/// The store's items of a range, merged in order with the transaction's changes.
struct Merged<'a, C: Iterator<Item = Changed>> {
    stored: Peekable<RangeItems<'a>>,
    changed: Peekable<C>,
    is_reverse: bool,
}

impl<C: Iterator<Item = Changed>> Iterator for Merged<'_, C> {
    type Item = Result<Item, Error>;

    fn next(&mut self) -> Option<Result<Item, Error>> {
        loop {
            let order = match (self.stored.peek(), self.changed.peek()) {
                (Some(Ok((stored, _))), Some((changed, _))) if self.is_reverse => changed.cmp(stored),
                (Some(Ok((stored, _))), Some((changed, _))) => stored.cmp(changed),
                (None, Some(_)) => Ordering::Greater,
                _ => return self.stored.next(),
            };
            if order == Ordering::Less {
                return self.stored.next();
            }
            if order == Ordering::Equal {
                self.stored.next();
            }
            if let Some((key, Some(value))) = self.changed.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}
