//! The size of the processor's cache.

use std::fs;

/// Returns the size of this machine's last-level cache; `None` if the system does not report it.
#[must_use]
pub fn last_level_cache_bytes() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let size = |cache: fs::DirEntry| parse(fs::read_to_string(cache.path().join("size")).ok()?.trim());
    caches.filter_map(|cache| size(cache.ok()?)).max()
}

/// Parses a size as sysfs prints it: `32768K`.
fn parse(size: &str) -> Option<u64> {
    let (number, unit) = size.split_at_checked(size.len().checked_sub(1)?)?;
    let unit_bytes = match unit {
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit_bytes)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_of_sysfs_are_parsed() {
        assert_eq!(["32768K", "2M", "1G"].map(parse), [Some(32 << 20), Some(2 << 20), Some(1 << 30)]);
        assert_eq!(["", "K", "32", "-1K", "ßK", "18446744073709551615K"].map(parse), [None; 6]);
    }
}
