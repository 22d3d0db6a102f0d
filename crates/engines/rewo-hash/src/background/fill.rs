//! Fills the cached table of an opened store.

use engine::{Error, Progress};
use index::CachedTable;
use index::block_hash::Key;
use index::cached_table::is_durable;
use index::segmented::Cursor;
use pmem::Medium;

use crate::cached::lookup_key;
use crate::keys::Keys;
use crate::reader::Reader;

/// Offers the items of a segment to the cached table.
pub(super) fn step<M: Medium>(filling: &mut Option<Cursor>, reader: &Reader<M>) -> Result<Progress, Error> {
    let (Some(cache), Some(cursor)) = (reader.cache().table(), filling.take()) else { return Ok(Progress::Idle) };
    let keys = reader.keys();
    let _pin = epoch::pin();
    let (shown, next) = keys.table().visit(keys.medium(), cursor)?;
    let mut is_full = false;
    for (_, slot) in &shown.slots {
        // A caller that requests the key gets the error. In a damaged store, a miss is not an absence.
        let Ok(seen) = keys.intact_contents(slot) else { return Ok(Progress::Idle) };
        let key = keys.key(seen.key)?;
        is_full |= cache.is_full_for(lookup_key(key));
        if !is_full && !offer(cache, keys, key)? {
            cache.exclude(lookup_key(key));
        }
    }
    if next.is_done() && !is_full {
        cache.is_filled();
    }
    *filling = (!next.is_done() && !is_full).then_some(next);
    Ok(if filling.is_some() { Progress::More } else { Progress::Idle })
}

/// Offers a key's item. Returns false if the key may have an item that was not added.
fn offer<M: Medium>(cache: &CachedTable, keys: &Keys<M>, key: Key<'_>) -> Result<bool, Error> {
    let Some(permit) = cache.permit(lookup_key(key)) else { return Ok(false) };
    let Some(slot) = keys.find(key)? else { return Ok(true) };
    if !is_durable(keys.medium()) {
        return Ok(false);
    }
    cache.admit(permit, lookup_key(key), &keys.intact_contents(&slot)?.copy());
    Ok(true)
}
