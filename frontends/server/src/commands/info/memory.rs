//! Memory. Programs compare `used_memory` with `maxmemory`, so it is the size of items and index in the region, which
//! `maxmemory` limits. The fields `used_memory_rss` and `dram_bytes` show the process' use of DRAM.

use std::fs;

use super::{Lines, lines};
use crate::errors::Refusal;
use crate::shared::Shared;

pub(super) fn memory(shared: &Shared) -> Result<Lines, Refusal> {
    let stats = shared.keyspace.store.stats();
    let (script_count, script_bytes) = shared.scripts.cache.size();
    let (rss_bytes, total_bytes) = (rss_bytes(), machine_bytes());
    let bytes_max = shared.administration.settings.memory_bytes_max();
    let peak_bytes = shared.telemetry.figures.peak_with(stats.live_bytes);
    // Items and the index are not counted separately.
    let percent = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    let ratio = if stats.live_bytes == 0 { 0.0 } else { rss_bytes as f64 / stats.live_bytes as f64 };
    Ok(lines([
        ("used_memory", stats.live_bytes.to_string()),
        ("used_memory_human", human(stats.live_bytes)),
        ("used_memory_rss", rss_bytes.to_string()),
        ("used_memory_rss_human", human(rss_bytes)),
        ("used_memory_peak", peak_bytes.to_string()),
        ("used_memory_peak_human", human(peak_bytes)),
        ("used_memory_peak_perc", format!("{:.2}%", percent(stats.live_bytes, peak_bytes))),
        ("used_memory_overhead", "0".into()),
        ("used_memory_startup", "0".into()),
        ("used_memory_dataset", stats.live_bytes.to_string()),
        ("used_memory_dataset_perc", format!("{:.2}%", percent(stats.live_bytes, stats.live_bytes))),
        ("used_memory_vm_eval", shared.scripts.interpreter_bytes().to_string()),
        ("used_memory_lua", shared.scripts.interpreter_bytes().to_string()),
        ("used_memory_lua_human", human(shared.scripts.interpreter_bytes() as u64)),
        ("used_memory_scripts_eval", script_bytes.to_string()),
        ("used_memory_scripts", script_bytes.to_string()),
        ("used_memory_scripts_human", human(script_bytes as u64)),
        ("number_of_cached_scripts", script_count.to_string()),
        ("number_of_functions", "0".into()),
        ("number_of_libraries", "0".into()),
        ("total_system_memory", total_bytes.to_string()),
        ("total_system_memory_human", human(total_bytes)),
        ("maxmemory", bytes_max.to_string()),
        ("maxmemory_human", human(bytes_max)),
        ("maxmemory_policy", "noeviction".into()),
        ("allocator_allocated", stats.live_bytes.to_string()),
        ("allocator_resident", stats.allocated_bytes.to_string()),
        ("mem_fragmentation_ratio", format!("{ratio:.2}")),
        ("mem_fragmentation_bytes", (rss_bytes as i64 - stats.live_bytes as i64).to_string()),
        ("mem_allocator", "hikv".into()),
        ("active_defrag_running", "0".into()),
        ("lazyfree_pending_objects", "0".into()),
        ("dram_bytes", stats.dram_bytes.to_string()),
        ("messages_waiting_bytes", shared.mailboxes.waiting_bytes().to_string()),
        ("unread_replies_bytes", shared.backlogs.len_bytes().to_string()),
        ("region_bytes", stats.region_bytes.to_string()),
        ("live_bytes", stats.live_bytes.to_string()),
        (
            "disk_free_bytes",
            shared.keyspace.store.disk_free_bytes().map_or("unknown".into(), |bytes| bytes.to_string()),
        ),
    ]))
}

/// Formats bytes like Redis: `1.50K`.
fn human(bytes: u64) -> String {
    const UNITS: [char; 5] = ['K', 'M', 'G', 'T', 'P'];
    if bytes < 1 << 10 {
        return format!("{bytes}B");
    }
    let unit = (bytes.ilog2() / 10).min(UNITS.len() as u32);
    format!("{:.2}{}", bytes as f64 / (1_u64 << (10 * unit)) as f64, UNITS[unit as usize - 1])
}

/// Returns the process' resident memory.
pub(in crate::commands) fn rss_bytes() -> u64 {
    kib_of("/proc/self/status", "VmRSS:") << 10
}

fn machine_bytes() -> u64 {
    kib_of("/proc/meminfo", "MemTotal:") << 10
}

/// Returns the number in the file's line that begins with `name`; 0 if the kernel does not provide it.
fn kib_of(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_in_redis() {
        let shown = [0, 1023, 1536, 100 << 20, 3 << 40].map(human);
        assert_eq!(shown, ["0B", "1023B", "1.50K", "100.00M", "3.00T"]);
    }

    #[test]
    fn resident_memory_is_read() {
        assert!(0 < rss_bytes() && rss_bytes() < machine_bytes());
    }
}
