//! MEMORY.

use crate::call::Call;
use crate::errors::Refusal;

/// What an item takes beside its key and its value: its header, and its entry in the index.
const ITEM_BYTES: usize = 48;

/// About what the key takes in the region.
pub(crate) fn usage(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.request.len() {
        3 => {}
        5 if call.argument(3).eq_ignore_ascii_case(b"samples") => {
            call.integer(4)?;
        }
        _ => return Err(Refusal::Syntax),
    }
    let key = call.key(2);
    match call.store().get_with(&key, <[u8]>::len)? {
        Some(value_bytes) => call.reply.integer((ITEM_BYTES + key.len() + value_bytes) as i64),
        None => call.reply.null_bulk(),
    }
    Ok(())
}

/// There is no allocator that keeps memory to itself.
pub(crate) fn purge(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.ok();
    Ok(())
}

pub(crate) fn doctor(call: &mut Call<'_>) -> Result<(), Refusal> {
    let stats = call.shared.store.stats();
    let text = format!(
        "The region has {} bytes, of which items and index occupy {}; indexes take {} bytes of volatile memory.\n",
        stats.region_bytes, stats.live_bytes, stats.dram_bytes
    );
    call.reply.text(&text);
    Ok(())
}
