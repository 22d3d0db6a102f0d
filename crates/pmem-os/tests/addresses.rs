//! Many regions in one process. The regions use most of the addresses, so no other test runs in this process.

use std::{fs, ptr};

use pmem::{Bytes, MediumError, Space};
use pmem_os::{KEPT_BYTES, MapOptions, Mapped};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More regions than fit into a process that reserves 1 TiB for each.
const REGION_COUNT: usize = 2_000;
const LEN_BYTES: u64 = 1 << 16;

/// Allows one descriptor for each region, and some more.
fn allow_open_files(count: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(count), maximum }).expect("the hard limit is above that");
}

#[test]
fn process_holds_thousands_of_regions() {
    allow_open_files(REGION_COUNT as u64 + 64);
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let make = |number: usize| {
        Mapped::create(&place.path().join(number.to_string()), LEN_BYTES, MapOptions::default())
            .unwrap_or_else(|error| panic!("region {number}: {error}"))
    };
    let regions: Vec<_> = (0..REGION_COUNT).map(make).collect();
    assert!(regions.iter().all(|region| region.limit_bytes() >= KEPT_BYTES));
    // The first regions still have the addresses behind them, and the process has addresses for other things.
    assert!(regions[..8].iter().all(|region| region.limit_bytes() == 1 << 40));
    let other_bytes = 16 << 30;
    // SAFETY: a fresh mapping at an address of the kernel's choice disturbs no other memory.
    let other = unsafe { mmap_anonymous(ptr::null_mut(), other_bytes, ProtFlags::empty(), MapFlags::PRIVATE) }.unwrap();
    // SAFETY: nothing uses it.
    unsafe { munmap(other, other_bytes) }.unwrap();
    for region in [&regions[0], &regions[REGION_COUNT - 1]] {
        region.grow(4 * LEN_BYTES).unwrap();
        assert_eq!(region.len_bytes(), 4 * LEN_BYTES);
    }
    drop(regions);
    fs::remove_dir_all(place.path()).unwrap();
}

#[test]
fn region_grows_past_reserved_addresses() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("region");
    let options = MapOptions { reserve_bytes: 16 << 20, kept_bytes: 2 << 20, ..MapOptions::default() };
    let region = Mapped::create(&path, LEN_BYTES, options).unwrap();
    assert_eq!(region.limit_bytes(), 16 << 20);
    region.grow(8 << 20).unwrap();
    let limit = MediumError::Limit { wanted_bytes: (16 << 20) + 1, limit_bytes: 16 << 20 };
    assert_eq!(region.grow((16 << 20) + 1), Err(limit));
    region.grow(16 << 20).unwrap();
    drop(region);
    assert_eq!(Mapped::open(&path, options).unwrap().len_bytes(), 16 << 20);
}
