//! Broken variants: the faulty code of the canaries whose fault is more than an expression. Only tests reach it
//! (`docs/decisions/0005-prove-the-crash-explorer-with-broken-variants.md`).

use std::sync::atomic::Ordering;

use engine::Error;
use items::NewItem;
use pmem::Medium;

use crate::order::Written;
use crate::write::publish::{Prepared, WriteTarget};
use crate::{HiKv, Memory};

/// Puts an item, and publishes its entry before the item is written: the entry names a slot to which the item is
/// copied afterwards.
#[cold]
pub(crate) fn publish_unwritten<M: Medium, D: Memory>(
    store: &HiKv<M, D>,
    target: WriteTarget<'_>,
    item: &NewItem<'_>,
) -> Result<(), Error> {
    let written = store.prepare(item)?;
    let slot = store.reserve(item.item_bytes())?;
    let (from, to, medium) = (written.reservation.place().offset, slot.place().offset, store.reader.medium());
    store.publish(target, Some(Prepared { reservation: slot, expiry: item.expiry, stamp: written.stamp }))?;
    for at in (0..item.item_bytes()).step_by(8) {
        medium.store(to.plus(at), medium.load(from.plus(at), Ordering::Relaxed), Ordering::Relaxed);
    }
    medium.flush(to.span(item.item_bytes()));
    medium.order();
    Ok(())
}

/// Frees the key's present item before the new entry is durable.
#[cold]
pub(crate) fn free_before_unlink<M: Medium, D: Memory>(
    store: &HiKv<M, D>,
    signature: u64,
    key: &[u8],
) -> Result<(), Error> {
    if let Some((position, _)) = store.reader.find(signature, key)? {
        let offset = position.offset().0;
        let what = "an entry names an item of no size class";
        store.heap.free(store.reader.medium(), position.place().ok_or(Error::Corrupt { offset, what })?);
    }
    Ok(())
}

/// Frees a deleted item immediately, although its deletion may not be durable. Returns false if `written` is not a
/// deletion.
#[cold]
pub(crate) fn free_deleted<M: Medium, D: Memory>(store: &HiKv<M, D>, written: &Written<'_>) -> bool {
    let Written { old: Some(old), new: None, .. } = *written else { return false };
    old.place().into_iter().for_each(|place| store.heap.free(store.reader.medium(), place));
    true
}
