//! The parts of a file that have space, as listed by the file system (`FS_IOC_FIEMAP`, `linux/fiemap.h`).
//!
//! A full file system may refuse `fallocate` even if the range already has space: XFS reserves blocks before it
//! checks. Seeking holes does not help, because space that was never written to counts as a hole there.

use std::ops::Range;
use std::os::fd::AsFd;

use rustix::ioctl::{Opcode, Updater, ioctl};

/// `_IOWR('f', 11, struct fiemap)`: the size is that of the request without its extents.
const FIEMAP: Opcode = 0xC020_660B;
/// A flag: the last extent of the file.
const LAST: u32 = 0x1;
/// Flags: the extent's place is not decided yet, or is shared with another file. A write there may need more space.
const UNDECIDED_OR_SHARED: u32 = 0x2 | 0x4 | 0x2000;
/// Number of extents per call. Files that were made with `fallocate` have few.
const EXTENT_COUNT: usize = 32;

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    len_bytes: u64,
    zero: [u64; 2],
    flags: u32,
    zero_again: [u32; 3],
}

#[repr(C)]
struct Request {
    start: u64,
    len_bytes: u64,
    flags: u32,
    found_count: u32,
    wanted_count: u32,
    zero: u32,
    extents: [Extent; EXTENT_COUNT],
}

const _: () = assert!(size_of::<Extent>() == 56 && size_of::<Request>() == 32 + 56 * EXTENT_COUNT);

/// Returns true if all of `range` surely has space of the file's own; false if the file system does not report it.
pub fn has_space(file: impl AsFd, range: Range<u64>) -> bool {
    let mut at = range.start;
    while at < range.end {
        let Some(request) = list(&file, at..range.end) else { return false };
        let extents = &request.extents[..(request.found_count as usize).min(EXTENT_COUNT)];
        let before = at;
        for extent in extents {
            if extent.logical > at || extent.flags & UNDECIDED_OR_SHARED != 0 {
                return false;
            }
            at = at.max(extent.logical.saturating_add(extent.len_bytes));
        }
        let has_ended = extents.last().is_none_or(|last| last.flags & LAST != 0) || at == before;
        if at < range.end && has_ended {
            return false;
        }
    }
    true
}

fn list(file: &impl AsFd, range: Range<u64>) -> Option<Request> {
    let mut request = Request {
        start: range.start,
        len_bytes: range.end - range.start,
        flags: 0,
        found_count: 0,
        wanted_count: EXTENT_COUNT as u32,
        zero: 0,
        extents: [Extent::default(); EXTENT_COUNT],
    };
    // SAFETY: the call reads and fills a request of this form, with at most as many extents as the request states.
    unsafe { ioctl(file.as_fd(), Updater::<FIEMAP, Request>::new(&mut request)) }.ok()?;
    Some(request)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::{FallocateFlags, fallocate};

    use super::*;

    #[test]
    fn space_and_holes_are_distinguished() {
        let file = tempfile::tempfile().unwrap();
        fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
        file.sync_all().unwrap();
        if list(&file, 0..1 << 20).is_none() {
            // If the file system lists no extents, no range surely has space.
            return assert!(!has_space(&file, 0..1 << 20));
        }
        assert!(has_space(&file, 0..1 << 20) && has_space(&file, 4096..8192) && has_space(&file, 5..5));
        file.set_len(2 << 20).unwrap();
        assert!(!has_space(&file, 0..2 << 20) && !has_space(&file, 1 << 20..2 << 20));
        file.write_all_at(&[1; 4096], (2 << 20) - 4096).unwrap();
        file.sync_all().unwrap();
        assert!(has_space(&file, (2 << 20) - 4096..2 << 20) && !has_space(&file, (1 << 20) - 4096..2 << 20));
    }
}
