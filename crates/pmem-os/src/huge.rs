//! Huge pages: making them for a region on tmpfs, and counting those that exist.
//!
//! An advice may succeed and map none; its effect depends on the mount. Collapsing is more reliable: a range that
//! has one page is made a huge page immediately, on every mount, unless `shmem_enabled` is `deny`. It costs no
//! space, because the entire range is allocated anyway. The result is read back from the kernel.

use std::ops::Range;
use std::time::Duration;
use std::{fs, io};

/// Returns the size of the huge pages that the kernel makes from small ones, or `None` if it never does.
pub(crate) fn page_bytes() -> Option<u64> {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").ok()?;
    text.trim().parse().ok().filter(|&bytes: &u64| bytes.is_power_of_two())
}

/// Returns the largest range of complete pages of `page_bytes` inside `range`; may be empty.
pub(crate) fn whole_pages(range: Range<u64>, page_bytes: u64) -> Range<u64> {
    let start = range.start.next_multiple_of(page_bytes);
    start..(range.end - range.end % page_bytes).max(start)
}

/// Returns the number of complete pages inside `range`, at least 1.
pub(crate) fn page_count(range: Range<u64>, page_bytes: u64) -> u32 {
    let pages = whole_pages(range, page_bytes);
    ((pages.end - pages.start) / page_bytes).max(1) as u32
}

/// Returns the number of bytes of `addresses` that this process has mapped by huge pages.
pub(crate) fn mapped_bytes(addresses: Range<u64>) -> io::Result<u64> {
    Ok(mapped_bytes_in(&fs::read_to_string("/proc/self/smaps")?, addresses))
}

fn mapped_bytes_in(smaps: &str, addresses: Range<u64>) -> u64 {
    let mut inside = false;
    let mut total_bytes = 0;
    for line in smaps.lines() {
        if let Some(area) = area_of(line) {
            inside = addresses.start <= area.start && area.end <= addresses.end;
        } else if inside {
            total_bytes += huge_bytes_of(line).unwrap_or(0);
        }
    }
    total_bytes
}

/// Parses the addresses on the first line of an area: `7f0000000000-7f0000200000 rw-s ...`.
fn area_of(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

/// Parses the size on a line that counts huge pages: `ShmemPmdMapped:     2048 kB`.
fn huge_bytes_of(line: &str) -> Option<u64> {
    let (key, value) = line.split_once(':')?;
    if !matches!(key, "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" | "Shared_Hugetlb" | "Private_Hugetlb") {
        return None;
    }
    let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// The time for making one huge page if the kernel has one at hand. If memory is fragmented, the kernel first moves
/// other pages away: tens of milliseconds were measured, during which writers wait for the growth.
const AT_HAND_MAX: Duration = Duration::from_millis(2);
/// Up to this multiple of the time of small pages does not indicate that: memory that a virtual machine uses for
/// the first time is slow with pages of any size.
const SMALL_PAGES_FACTOR: u32 = 4;
/// The limit, for any time of small pages: that time may have been measured while other threads had the processor.
const SLOW_MAX: Duration = Duration::from_millis(16);
/// The most growths with small pages between two attempts.
const LEFT_OUT_COUNT_MAX: u32 = 64;

/// Decides which growths request huge pages: all, while those are at hand. After a slow one the next growth does
/// not, then the next two, and so on.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    left_out: u32,
    left_out_next: u32,
    /// The time of a growth without huge pages, for as many bytes as one huge page has.
    small_pages: Duration,
}

impl Attempts {
    /// Returns true if this growth requests huge pages.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.left_out == 0;
        self.left_out = self.left_out.saturating_sub(1);
        is_due
    }

    /// Notes the time that it took to make `page_count` huge pages.
    pub(crate) fn took(&mut self, time: Duration, page_count: u32) {
        let quick_max = (self.small_pages * SMALL_PAGES_FACTOR).clamp(AT_HAND_MAX, SLOW_MAX);
        self.left_out = if time > quick_max * page_count { self.left_out_next.max(1) } else { 0 };
        self.left_out_next = (2 * self.left_out).min(LEFT_OUT_COUNT_MAX);
    }

    /// Notes the time of a growth without huge pages, for as many bytes as `page_count` of them have.
    pub(crate) fn took_without(&mut self, time: Duration, page_count: u32) {
        self.small_pages = time / page_count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_collapse_is_tried_less_often() {
        let (mut attempts, slow, quick) = (Attempts::default(), AT_HAND_MAX * 3, AT_HAND_MAX * 2);
        let mut left_out = |time: Duration| {
            attempts.took(time, 2);
            (0..1000).take_while(|_| !attempts.is_due()).count()
        };
        assert_eq!([slow; 9].map(&mut left_out), [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!([quick, quick, slow, slow].map(&mut left_out), [0, 0, 1, 2]);
    }

    /// In a virtual machine whose memory is used for the first time, huge pages take no longer than small pages of
    /// as many bytes.
    #[test]
    fn equally_slow_small_pages_are_not_skipped() {
        let mut attempts = Attempts::default();
        let mut left_out = |time: Duration, without: Duration| {
            attempts.took(time * 2, 2);
            (0..1000)
                .take_while(|_| {
                    !attempts.is_due() && {
                        attempts.took_without(without * 2, 2);
                        true
                    }
                })
                .count()
        };
        let (fresh, in_pieces) = (Duration::from_millis(5), Duration::from_millis(50));
        assert_eq!([fresh; 3].map(|time| left_out(time, fresh)), [1, 0, 0]);
        assert_eq!([in_pieces; 3].map(|time| left_out(time, fresh / 10)), [1, 2, 4]);
        assert_eq!([fresh; 2].map(|time| left_out(time, fresh / 10)), [8, 16]);
        assert_eq!([in_pieces; 2].map(|time| left_out(time, in_pieces)), [32, 64]);
    }

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-s 00000000 00:1a 2  /dev/shm/store.hikv
Size:               4096 kB
ShmemPmdMapped:     2048 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
VmFlags: rd wr sh
7f0000400000-7f0000600000 rw-s 00400000 00:1a 2  /dev/shm/store.hikv
Shared_Hugetlb:     2048 kB
7f0100000000-7f0100400000 rw-s 00000000 00:1a 3  /dev/shm/other
ShmemPmdMapped:     4096 kB
";

    #[test]
    fn areas_inside_the_region_are_added_up() {
        assert_eq!(mapped_bytes_in(SMAPS, 0x7f00_0000_0000..0x7f00_4000_0000), 4 << 20);
        assert_eq!(mapped_bytes_in(SMAPS, 0x7f01_0000_0000..0x7f01_0040_0000), 4 << 20);
        assert_eq!(mapped_bytes_in(SMAPS, 0..0x1000), 0);
    }

    #[test]
    fn whole_pages_lie_inside() {
        assert_eq!(whole_pages(0..10, 4), 0..8);
        assert_eq!(whole_pages(1..12, 4), 4..12);
        assert_eq!(whole_pages(5..7, 4), 8..8);
    }
}
