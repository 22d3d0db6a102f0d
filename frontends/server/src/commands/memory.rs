//! MEMORY.

use super::info::memory::rss_bytes;
use crate::errors::Refusal;
use crate::execution::call::{Call, Function};

/// Functions of these commands, by the names of their table rows.
pub(super) const FUNCTIONS: &[(&str, Function)] = functions!["memory|": [
    doctor, "malloc-stats" => malloc_stats, purge, stats, usage,
]];

/// Overhead of an item in addition to its key and value: its header, and its entry in the index.
const ITEM_BYTES: usize = 48;
/// Elements of a collection whose sizes are taken for those of all.
pub(super) const SAMPLE_COUNT: usize = 16;

/// Returns approximately the key's size in the region.
fn usage(call: &mut Call<'_>) -> Result<(), Refusal> {
    match call.request.len() {
        3 => {}
        5 if call.argument(3).eq_ignore_ascii_case(b"samples") => {
            if call.integer(4)? < 0 {
                return Err(Refusal::Syntax);
            }
        }
        _ => return Err(Refusal::Syntax),
    }
    let key = call.key(2);
    match call.store().get_with(&key, <[u8]>::len)? {
        Some(value_bytes) => call.reply.integer((ITEM_BYTES + key.len() + value_bytes) as i64),
        None => match call.found(2)? {
            Some(found) => {
                let element_bytes = found.sample_bytes(SAMPLE_COUNT)? + ITEM_BYTES;
                call.reply.integer((ITEM_BYTES + key.len() + found.len() as usize * element_bytes) as i64);
            }
            None => call.reply.null_bulk(),
        },
    }
    Ok(())
}

/// No allocator caches memory that could be purged.
fn purge(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.ok();
    Ok(())
}

fn doctor(call: &mut Call<'_>) -> Result<(), Refusal> {
    let stats = call.shared.keyspace.store.stats();
    let text = format!(
        "The region has {} bytes, of which items and index use {}; indexes use {} bytes of DRAM.\n",
        stats.region_bytes, stats.live_bytes, stats.dram_bytes
    );
    call.reply.text(&text);
    Ok(())
}

/// Writes the available figures of Redis, as in `INFO memory`, followed by the store's own.
fn stats(call: &mut Call<'_>) -> Result<(), Refusal> {
    let (stats, rss_bytes) = (call.shared.keyspace.store.stats(), rss_bytes());
    let live_bytes = stats.live_bytes;
    let figures = [
        ("total.allocated", live_bytes as i64),
        ("keys.count", stats.items as i64),
        ("keys.bytes-per-key", live_bytes.checked_div(stats.items).unwrap_or(0) as i64),
        ("allocator.allocated", live_bytes as i64),
        ("allocator.resident", stats.allocated_bytes as i64),
        ("fragmentation.bytes", rss_bytes as i64 - live_bytes as i64),
        ("rss.bytes", rss_bytes as i64),
        ("region.bytes", stats.region_bytes as i64),
        ("dram.bytes", stats.dram_bytes as i64),
        ("order.dram.bytes", stats.order_dram_bytes as i64),
        ("snapshots.kept.bytes", stats.kept_bytes as i64),
    ];
    call.reply.map(figures.len() + 1);
    for (name, figure) in figures {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(figure);
    }
    call.reply.bulk(b"fragmentation");
    call.reply.double(if live_bytes == 0 { 0.0 } else { rss_bytes as f64 / live_bytes as f64 });
    Ok(())
}

/// The system's allocator has no statistics to query; the text is Redis'.
fn malloc_stats(call: &mut Call<'_>) -> Result<(), Refusal> {
    call.reply.bulk(b"Stats not supported for the current allocator");
    Ok(())
}
