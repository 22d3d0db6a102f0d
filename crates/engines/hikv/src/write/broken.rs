//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use std::sync::atomic::Ordering;

use engine::Error;
use items::NewItem;
use pmem::Medium;

use super::{Prepared, WriteTarget, Writer};
use crate::canary;
use crate::memory::Memory;
use crate::order::Written;

/// Does the part of a put that a broken variant does wrong; returns the result if that is all of the put.
#[inline(always)]
pub(super) fn put<M: Medium, D: Memory>(
    writer: &Writer<M, D>,
    signature: u64,
    item: &NewItem<'_>,
) -> Option<Result<(), Error>> {
    if writer.reader.medium().breaks(canary::FREE_BEFORE_UNLINK)
        && let Err(error) = free_before_unlink(writer, signature, item.key)
    {
        return Some(Err(error));
    }
    let is_early = writer.reader.medium().breaks(canary::ENTRY_BEFORE_ITEM);
    is_early.then(|| publish_unwritten(writer, WriteTarget::any(signature, item.key), item))
}

/// Puts an item, and publishes its entry before the item is written: the entry names a slot to which the item is
/// copied afterwards.
#[cold]
fn publish_unwritten<M: Medium, D: Memory>(
    writer: &Writer<M, D>,
    target: WriteTarget<'_>,
    item: &NewItem<'_>,
) -> Result<(), Error> {
    let medium = writer.reader.medium();
    let written = writer.prepare(item)?;
    let slot = writer.space.reserve(medium, item.item_bytes())?;
    let (from, to) = (written.reservation.place().offset, slot.place().offset);
    writer.publish(target, Some(Prepared { reservation: slot, expiry: item.expiry, stamp: written.stamp }))?;
    for at in (0..item.item_bytes()).step_by(8) {
        medium.store(to.plus(at), medium.load(from.plus(at), Ordering::Relaxed), Ordering::Relaxed);
    }
    medium.flush(to.span(item.item_bytes()));
    medium.order();
    Ok(())
}

/// Frees the key's present item before the new entry is durable.
#[cold]
fn free_before_unlink<M: Medium, D: Memory>(writer: &Writer<M, D>, signature: u64, key: &[u8]) -> Result<(), Error> {
    if let Some((position, _)) = writer.reader.find(signature, key)? {
        let (offset, what) = (position.offset().0, "an entry names an item of no size class");
        writer.space.heap().free(writer.reader.medium(), position.place().ok_or(Error::Corrupt { offset, what })?);
    }
    Ok(())
}

/// Frees a deleted item immediately, although its deletion may not be durable. Returns false if `written` is not a
/// deletion.
#[inline(always)]
pub(super) fn free_deleted<M: Medium, D: Memory>(writer: &Writer<M, D>, written: &Written<'_>) -> bool {
    writer.reader.medium().breaks(canary::PLAIN_ZERO_DELETE) && free_old(writer, written)
}

#[cold]
fn free_old<M: Medium, D: Memory>(writer: &Writer<M, D>, written: &Written<'_>) -> bool {
    let Written { old: Some(old), new: None, .. } = *written else { return false };
    old.place().into_iter().for_each(|place| writer.space.heap().free(writer.reader.medium(), place));
    true
}
