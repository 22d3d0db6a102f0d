//! Space that runs out, and huge pages, on file systems mounted for the tests.

use std::fs::{self, File};
use std::ops::Range;

use crate::common::{bytes, on_mount, put, skipped};
use pmem::{Bytes, Medium, MediumError, Offset, Residency, Space};
use pmem_os::{MapError, MapOptions, Mapped, probe};

const MIB: u64 = 1 << 20;

#[test]
fn full_tmpfs_is_an_error() {
    for huge_pages in [false, true] {
        on_mount("tmpfs", c"size=8m", |dir| {
            let options = MapOptions { huge_pages, ..MapOptions::default() };
            let path = dir.join("region");
            let medium = Mapped::create(&path, 3 * MIB, options).unwrap();
            put(&medium, 0, b"before");
            medium.grow(6 * MIB).unwrap();
            assert_eq!(medium.grow(12 * MIB), Err(MediumError::Full { wanted_bytes: 12 * MIB }));
            assert_eq!((medium.len_bytes(), fs::metadata(&path).unwrap().len()), (6 * MIB, 6 * MIB));
            medium.populate(Offset(0).span(12 * MIB));
            for at in (8..6 * MIB).step_by(4096) {
                put(&medium, at, b"after");
            }
            medium.grow(7 * MIB).unwrap();
            put(&medium, 7 * MIB - 5, b"after");
            assert_eq!(bytes(&medium, 0, 6), b"before");
        });
    }
}

#[test]
fn too_large_region_leaves_no_file() {
    on_mount("tmpfs", c"size=2m", |dir| {
        let path = dir.join("region");
        let refused = Mapped::create(&path, 4 * MIB, MapOptions::default()).unwrap_err();
        assert!(matches!(refused, MapError::Full { wanted_bytes, .. } if wanted_bytes == 4 * MIB), "{refused}");
        assert!(!path.exists());
        assert!(Mapped::create(&path, MIB, MapOptions::default()).is_ok());
    });
}

#[test]
fn unfillable_holes_are_errors_not_signals() {
    on_mount("tmpfs", c"size=2m", |dir| {
        let path = dir.join("region");
        File::create(&path).unwrap().set_len(4 * MIB).unwrap();
        let medium = Mapped::open(&path, MapOptions::default()).unwrap();
        assert_eq!(medium.allocated_bytes(), Some(0));
        assert_eq!(medium.allocate(Offset(0).span(4 * MIB)), Err(MediumError::Full { wanted_bytes: 4 * MIB }));
        medium.allocate(Offset(MIB).span(MIB)).unwrap();
        assert_eq!(medium.allocated_bytes(), Some(MIB));
        put(&medium, 2 * MIB - 4, b"last");
    });
}

#[test]
fn released_space_is_reusable_by_others() {
    on_mount("tmpfs", c"size=4m", |dir| {
        let medium = Mapped::create(&dir.join("region"), 3 * MIB, MapOptions::default()).unwrap();
        put(&medium, MIB, b"kept");
        // SAFETY: nothing refers into the span.
        let given_back = unsafe { medium.discard(Offset(MIB + 64).span(2 * MIB - 64)) };
        assert_eq!(given_back, 2 * MIB - 4096);
        assert_eq!((medium.len_bytes(), bytes(&medium, MIB, 4)), (3 * MIB, b"kept".to_vec()));
        let other = Mapped::create(&dir.join("other"), 2 * MIB, MapOptions::default()).unwrap();
        assert!(matches!(medium.allocate(Offset(MIB).span(2 * MIB)), Err(MediumError::Full { .. })));
        drop(other);
        fs::remove_file(dir.join("other")).unwrap();
        medium.allocate(Offset(MIB).span(2 * MIB)).unwrap();
        assert_eq!(medium.allocated_bytes(), Some(3 * MIB));
        put(&medium, 3 * MIB - 4, b"last");
    });
}

/// If the mount has huge pages, a file's last one may reach past its end: its space there does not mean that all of
/// the file has space.
#[test]
fn huge_page_past_end_hides_no_hole() {
    on_mount("tmpfs", c"size=64m,huge=always", |dir| {
        let path = dir.join("region");
        let medium = Mapped::create(&path, 3 * MIB, MapOptions::default()).unwrap();
        medium.populate(Offset(0).span(3 * MIB));
        drop(medium);
        let medium = Mapped::open(&path, MapOptions::default()).unwrap();
        let hole = Offset(MIB).span(MIB / 2);
        let whole_bytes = medium.allocated_bytes().unwrap();
        // SAFETY: nothing refers into the span.
        assert_eq!(unsafe { medium.discard(hole) }, MIB / 2);
        let holed_bytes = medium.allocated_bytes().unwrap();
        assert_eq!(holed_bytes, whole_bytes - MIB / 2);
        while medium.collapse_pages().is_some() {}
        assert_eq!(medium.allocated_bytes(), Some(holed_bytes));
        medium.allocate(hole).unwrap();
        assert_eq!(medium.allocated_bytes(), Some(whole_bytes));
    });
}

#[test]
fn probe_needs_little_space() {
    on_mount("tmpfs", c"size=10m", |dir| {
        assert_eq!(probe(&dir).unwrap().scratch_bytes, 8 * MIB);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    });
}

#[test]
fn tmpfs_with_huge_pages_gives_them() {
    on_mount("tmpfs", c"size=64m,huge=always", |dir| shows_huge_pages(&dir.join("region")));
}

/// The mount itself refuses huge pages; collapsing works regardless (Linux 6.1).
#[test]
fn tmpfs_collapses_huge_pages_on_request() {
    on_mount("tmpfs", c"size=64m,huge=never", |dir| {
        if !collapses() {
            return skipped("this kernel does not put pages of tmpfs together");
        }
        shows_huge_pages(&dir.join("region"));
        let small = MapOptions { huge_pages: false, ..MapOptions::default() };
        let medium = Mapped::create(&dir.join("small"), 4 * MIB, small).unwrap();
        put(&medium, 0, b"x");
        assert_eq!(medium.huge_page_bytes().unwrap(), 0);
    });
}

/// All of the file existed when the first pages were checked.
#[test]
fn holes_made_during_collapse_stay() {
    on_mount("tmpfs", c"size=64m,huge=never", |dir| {
        if !collapses() {
            return skipped("this kernel does not put pages of tmpfs together");
        }
        let path = dir.join("region");
        fs::write(&path, vec![7; 24 << 20]).unwrap();
        let medium = Mapped::open(&path, MapOptions::default()).unwrap();
        assert!(medium.collapse_pages().is_some());
        // SAFETY: nothing refers into the span.
        assert_eq!(unsafe { medium.discard(Offset(23 * MIB).span(4096)) }, 4096);
        let allocated_bytes = medium.allocated_bytes();
        while medium.collapse_pages().is_some() {}
        assert_eq!(medium.huge_page_bytes().unwrap(), 22 * MIB);
        assert_eq!(medium.allocated_bytes(), allocated_bytes);
    });
}

/// A file with small pages, such as a copy, gets huge ones when there is time. A page with a hole stays as it is.
#[test]
fn collapse_keeps_holes() {
    on_mount("tmpfs", c"size=64m,huge=never", |dir| {
        if !collapses() {
            return skipped("this kernel does not put pages of tmpfs together");
        }
        let path = dir.join("region");
        let written: Vec<u8> = (0..11 * MIB).map(|at| (at / 4096 % 251) as u8).collect();
        fs::write(&path, &written).unwrap();
        let medium = Mapped::open(&path, MapOptions::default()).unwrap();
        medium.grow(13 * MIB).unwrap();
        medium.populate(Offset(0).span(13 * MIB));
        // SAFETY: nothing refers into the span.
        assert_eq!(unsafe { medium.discard(Offset(5 * MIB).span(4096)) }, 4096);
        let allocated_bytes = medium.allocated_bytes();
        let before = medium.huge_page_bytes().unwrap();
        while medium.collapse_pages().is_some() {}
        assert_eq!((before, medium.huge_page_bytes().unwrap()), (0, 8 * MIB));
        assert_eq!(medium.allocated_bytes(), allocated_bytes);
        let kept = |range: Range<usize>| bytes(&medium, range.start as u64, range.len() as u64) == written[range];
        assert!(kept(0..5 << 20) && kept((5 << 20) + 4096..11 << 20));
        medium.allocate(Offset(5 * MIB).span(4096)).unwrap();
        put(&medium, 5 * MIB, b"again");
    });
}

#[test]
fn prepared_growth_has_huge_pages() {
    on_mount("tmpfs", c"size=64m,huge=never", |dir| {
        if !collapses() {
            return skipped("this kernel does not put pages of tmpfs together");
        }
        let path = dir.join("region");
        let medium = Mapped::create(&path, 4 * MIB, MapOptions::default()).unwrap();
        medium.prepare_growth(12 * MIB);
        assert_eq!(medium.len_bytes(), 4 * MIB);
        // A step of another thread may end within the prepared piece, or behind it.
        for to_bytes in [6 * MIB, 12 * MIB, 14 * MIB] {
            medium.grow(to_bytes).unwrap();
            assert_eq!((medium.len_bytes(), fs::metadata(&path).unwrap().len()), (to_bytes, to_bytes.max(12 * MIB)));
        }
        medium.populate(Offset(0).span(14 * MIB));
        // The last step may be left out, if the first took long.
        assert!(medium.huge_page_bytes().unwrap() >= 12 * MIB);
        medium.prepare_growth(128 * MIB);
        assert_eq!(medium.grow(128 * MIB), Err(MediumError::Full { wanted_bytes: 128 * MIB }));
        assert_eq!((medium.len_bytes(), fs::metadata(&path).unwrap().len()), (14 * MIB, 14 * MIB));
        medium.prepare_growth(16 * MIB);
        medium.grow(16 * MIB).unwrap();
        put(&medium, 16 * MIB - 4, b"last");
    });
}

/// A thread prepares long growths, and another one overtakes it: each byte of space is zero first, and keeps what is
/// written to it while its page becomes huge.
#[test]
fn growth_overtakes_its_preparation() {
    on_mount("tmpfs", c"size=256m,huge=never", |dir| {
        let medium = Mapped::create(&dir.join("region"), MIB, MapOptions::default()).unwrap();
        let written = |at: u64| (at / 4096 % 251 + 1) as u8;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while medium.len_bytes() < 128 * MIB {
                    let to_bytes = medium.len_bytes() + 16 * MIB;
                    medium.prepare_growth(to_bytes);
                    medium.grow(to_bytes).unwrap();
                }
            });
            scope.spawn(|| {
                let mut at = 0;
                while at < 128 * MIB {
                    if at + MIB > medium.len_bytes() {
                        medium.grow(at + MIB).unwrap();
                    }
                    for page in (at..at + MIB).step_by(4096) {
                        assert_eq!(bytes(&medium, page, 1), [0], "at {page:#x}");
                        put(&medium, page, &[written(page)]);
                    }
                    at += MIB;
                }
            });
        });
        assert!((0..128 * MIB).step_by(4096).all(|page| bytes(&medium, page, 1) == [written(page)]));
    });
}

/// The worker pauses between two calls for longer than such a page takes.
#[test]
fn unchanged_pages_are_skipped_together() {
    on_mount("tmpfs", c"size=64m,huge=never", |dir| {
        if !collapses() {
            return skipped("this kernel does not put pages of tmpfs together");
        }
        let path = dir.join("region");
        const PAGE_COUNT: u64 = 512;
        File::create(&path).unwrap().set_len(PAGE_COUNT * 2 * MIB).unwrap();
        let medium = Mapped::open(&path, MapOptions::default()).unwrap();
        let rest_count = std::iter::from_fn(|| medium.collapse_pages()).map(std::thread::sleep).count() as u64;
        assert!(rest_count < PAGE_COUNT / 2, "{rest_count} rests");
        assert_eq!(medium.allocated_bytes(), Some(0));
    });
}

#[test]
fn region_for_reading_keeps_its_pages() {
    on_mount("tmpfs", c"size=64m,huge=never", |dir| {
        let path = dir.join("region");
        fs::write(&path, vec![1; 4 << 20]).unwrap();
        for options in [
            MapOptions { writable: false, ..MapOptions::default() },
            MapOptions { huge_pages: false, ..MapOptions::default() },
        ] {
            assert_eq!(Mapped::open(&path, options).unwrap().collapse_pages(), None);
        }
    });
}

fn shows_huge_pages(path: &std::path::Path) {
    let medium = Mapped::create(path, 8 * MIB, MapOptions::default()).unwrap();
    medium.grow(16 * MIB).unwrap();
    medium.populate(Offset(0).span(16 * MIB));
    assert_eq!(medium.huge_page_bytes().unwrap(), 16 * MIB);
    drop(medium);
    let medium = Mapped::open(path, MapOptions::default()).unwrap();
    medium.populate(Offset(0).span(16 * MIB));
    assert_eq!(medium.huge_page_bytes().unwrap(), 16 * MIB);
}

/// Reads the kernel's version and settings, not the tested code.
fn collapses() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split('.').map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let allowed = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/shmem_enabled").unwrap_or_default();
    version >= (6, 1) && !allowed.contains("[deny]") && !allowed.is_empty()
}

#[test]
fn hugetlbfs_lengths_are_whole_huge_pages() {
    if free_huge_pages() < 4 {
        return skipped("fewer than 4 huge pages are free (vm.nr_hugepages)");
    }
    on_mount("hugetlbfs", c"pagesize=2M", |dir| {
        let path = dir.join("region");
        let medium = Mapped::create(&path, 1, MapOptions::default()).unwrap();
        assert_eq!((medium.name(), medium.len_bytes()), ("hugetlbfs", 2 * MIB));
        medium.grow(2 * MIB + 1).unwrap();
        put(&medium, 4 * MIB - 4, b"last");
        medium.populate(Offset(0).span(4 * MIB));
        assert_eq!(medium.huge_page_bytes().unwrap(), 4 * MIB);
        assert!(matches!(medium.grow(1 << 40), Err(MediumError::Full { .. })));
        put(&medium, 0, b"first");
        drop(medium);
        let medium = Mapped::open(&path, MapOptions::default()).unwrap();
        assert_eq!((bytes(&medium, 0, 5), bytes(&medium, 4 * MIB - 4, 4)), (b"first".to_vec(), b"last".to_vec()));
    });
}

fn free_huge_pages() -> u64 {
    let text = fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}
