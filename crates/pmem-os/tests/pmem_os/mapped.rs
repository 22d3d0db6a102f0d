//! A mapped region on tmpfs and on an ordinary file system.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::common::{bytes, places, put};
use pmem::{Bytes, Durability, Level, Medium, MediumError, Offset, Persist, Residency, Space};
use pmem_os::{MapError, MapOptions, Mapped, names::sync_dir};

const PAGE: u64 = 4096;

fn options() -> MapOptions {
    MapOptions::default()
}

fn read_only() -> MapOptions {
    MapOptions { writable: false, ..MapOptions::default() }
}

#[test]
fn stored_bytes_are_there_after_reopening() {
    for place in places() {
        let path = place.path().join("region");
        let medium = Mapped::create(&path, 1 << 20, options()).unwrap();
        put(&medium, 100, b"written");
        // SAFETY: nothing refers into the span.
        unsafe { medium.stream(Offset(PAGE), &[b"stre", b"amed"]) };
        medium.store(Offset(8), 7, Ordering::Release);
        assert_eq!(medium.compare_exchange(Offset(8), 7, 9), Ok(7));
        assert_eq!(medium.compare_exchange(Offset(8), 7, 1), Err(9));
        medium.flush(Offset(8).span(8));
        assert_eq!(medium.wait(medium.commit(Level::Strongest)), Ok(()));
        drop(medium);

        let medium = Mapped::open(&path, options()).unwrap();
        assert_eq!(medium.len_bytes(), 1 << 20);
        assert_eq!(bytes(&medium, 100, 7), b"written");
        assert_eq!(bytes(&medium, PAGE, 16), b"streamed\0\0\0\0\0\0\0\0");
        assert_eq!(medium.load(Offset(8), Ordering::Acquire), 9);
    }
}

#[test]
fn non_temporal_stores_are_used_on_request() {
    for place in places() {
        let options = MapOptions { non_temporal: true, ..options() };
        let medium = Mapped::create(&place.path().join("region"), PAGE, options).unwrap();
        assert_eq!(medium.write_path(), "non-temporal");
    }
}

#[test]
fn growth_adds_zeros_and_moves_nothing() {
    for place in places() {
        let path = place.path().join("region");
        let medium = Mapped::create(&path, PAGE, options()).unwrap();
        put(&medium, 0, b"first");
        let base = medium.base();
        // SAFETY: no code stores to the span while the slice lives.
        let kept = unsafe { medium.bytes(Offset(0).span(5)) }.unwrap();
        for to_bytes in [PAGE + 1, 3 << 20, (3 << 20) - 1, (7 << 20) + PAGE, 32 << 20] {
            let before = medium.len_bytes();
            medium.grow(to_bytes).unwrap();
            let after = medium.len_bytes();
            assert!(after >= to_bytes.max(before) && after.is_multiple_of(PAGE));
            assert!(bytes(&medium, before, after - before).iter().all(|&byte| byte == 0));
            if after > before {
                put(&medium, after - 4, b"last");
            }
        }
        assert_eq!((medium.base(), kept), (base, &b"first"[..]));
        assert_eq!(fs::metadata(&path).unwrap().len(), medium.len_bytes());
        drop(medium);
        let medium = Mapped::open(&path, options()).unwrap();
        assert_eq!(bytes(&medium, (32 << 20) - 4, 4), b"last");
        assert_eq!(bytes(&medium, (3 << 20) - 4, 4), b"last");
    }
}

#[test]
fn concurrent_growth_serves_all_threads() {
    let place = tempfile::tempdir().unwrap();
    let medium = Mapped::create(&place.path().join("region"), PAGE, options()).unwrap();
    std::thread::scope(|scope| {
        for thread in 1..=4 {
            let medium = &medium;
            scope.spawn(move || {
                for step in 1..=20 {
                    let end = (step * 4 + thread) * PAGE;
                    medium.grow(end).unwrap();
                    medium.store(Offset(end - 8 * thread), thread, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(medium.len_bytes(), 84 * PAGE);
}

#[test]
fn growth_ends_at_the_requested_limit() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("region");
    let medium = Mapped::create(&path, PAGE, MapOptions { reserve_bytes: 1, ..options() }).unwrap();
    let limit_bytes = medium.limit_bytes();
    assert_eq!(limit_bytes, PAGE);
    for wanted_bytes in [limit_bytes + 1, u64::MAX] {
        assert_eq!(medium.grow(wanted_bytes), Err(MediumError::Limit { wanted_bytes, limit_bytes }));
    }
    assert_eq!((medium.len_bytes(), fs::metadata(&path).unwrap().len()), (PAGE, PAGE));
}

#[test]
fn region_opened_for_reading_refuses_every_store() {
    for place in places() {
        let path = place.path().join("region");
        put(&Mapped::create(&path, PAGE, options()).unwrap(), 64, b"kept");
        let medium = Mapped::open(&path, read_only()).unwrap();
        assert!(!medium.is_writable());
        assert_eq!(medium.grow(1 << 20), Err(MediumError::ReadOnly));
        medium.populate(Offset(0).span(PAGE));
        let stores: [&dyn Fn(); 4] = [
            &|| medium.store(Offset(64), 1, Ordering::Relaxed),
            &|| _ = medium.compare_exchange(Offset(64), 0, 1),
            // SAFETY: nothing refers into the span.
            &|| unsafe { medium.write(Offset(64), b"lost") },
            // SAFETY: nothing refers into the span.
            &|| unsafe { medium.stream(Offset(64), &[b"lost"]) },
        ];
        for store in stores {
            assert!(catch_unwind(AssertUnwindSafe(store)).is_err());
        }
        assert_eq!(bytes(&medium, 64, 4), b"kept");
    }
}

#[test]
fn accesses_are_checked_at_the_very_end() {
    for place in places() {
        let medium = Mapped::create(&place.path().join("region"), 2 * PAGE, options()).unwrap();
        let end = medium.len_bytes();
        put(&medium, end - 1, b"x");
        // SAFETY: nothing refers into the span; it ends with the region once it is rounded up.
        unsafe { medium.stream(Offset(end - 16), &[b"y"]) };
        medium.store(Offset(end - 8), 1, Ordering::Relaxed);
        medium.flush(Offset(end).span(0));
        let outside: [&dyn Fn(); 5] = [
            &|| medium.store(Offset(end), 1, Ordering::Relaxed),
            // SAFETY: nothing refers into the span.
            &|| unsafe { medium.write(Offset(end - 1), b"xy") },
            // SAFETY: nothing refers into the span.
            &|| unsafe { medium.stream(Offset(end - 16), &[&[1; 17]]) },
            &|| medium.flush(Offset(end - 1).span(2)),
            &|| medium.flush(Offset(u64::MAX).span(8)),
        ];
        for access in outside {
            assert!(catch_unwind(AssertUnwindSafe(access)).is_err());
        }
    }
}

#[test]
fn populating_any_span_is_harmless() {
    for place in places() {
        let medium = Mapped::create(&place.path().join("region"), 4 * PAGE, options()).unwrap();
        put(&medium, PAGE - 2, b"edge");
        for start in [0, 1, PAGE - 1, PAGE, 4 * PAGE - 1, 4 * PAGE, 1 << 50] {
            for len_bytes in [0, 1, PAGE, 1 << 50, u64::MAX] {
                medium.populate(Offset(start).span(len_bytes));
            }
        }
        assert_eq!(bytes(&medium, PAGE - 2, 4), b"edge");
    }
}

#[test]
fn region_survives_being_renamed() {
    for place in places() {
        let (early, late) = (place.path().join("region.new"), place.path().join("region"));
        let medium = Mapped::create(&early, PAGE, options()).unwrap();
        put(&medium, 0, b"formatted");
        medium.sync_file().unwrap();
        fs::rename(&early, &late).unwrap();
        sync_dir(place.path()).unwrap();
        medium.grow(1 << 20).unwrap();
        put(&medium, 1 << 19, b"grown");
        let again = Mapped::open(&late, read_only()).unwrap();
        assert_eq!((bytes(&again, 0, 9), bytes(&again, 1 << 19, 5)), (b"formatted".to_vec(), b"grown".to_vec()));
    }
}

#[test]
fn durability_is_detected_and_explained() {
    if Path::new("/dev/shm").is_dir() {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let medium = Mapped::create(&place.path().join("region"), PAGE, options()).unwrap();
        assert_eq!((medium.name(), medium.durability()), ("tmpfs", Durability::Process));
        assert!(medium.explain().contains("outlives the process but not the machine"));
    }
    let place = tempfile::tempdir().unwrap();
    let medium = Mapped::create(&place.path().join("region"), PAGE, options()).unwrap();
    let survives = medium.durability() == Durability::Power;
    assert_eq!(survives, medium.explain().contains("survives a power failure"));
    assert_eq!(survives, medium.name() == "dax" && medium.explain().contains("MAP_SYNC granted"));
}

#[test]
fn unmappable_file_is_reported() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::write(path("short"), b"no page").unwrap();
    File::create(path("empty")).unwrap();
    for writable in [true, false] {
        let options = MapOptions { writable, ..options() };
        let open = |name: &str| Mapped::open(&path(name), options).map(|_| ()).unwrap_err();
        assert!(matches!(open("absent"), MapError::Io { doing: "open", .. }));
        assert!(matches!(open("."), MapError::NotAFile { .. }));
        assert!(matches!(open("short"), MapError::TooSmall { len_bytes: 7, page_bytes: PAGE, .. }));
        assert!(matches!(open("empty"), MapError::TooSmall { len_bytes: 0, .. }));
        let device = Path::new("/dev/null");
        assert!(matches!(Mapped::open(device, options), Err(MapError::NotAFile { .. })));
        assert!(matches!(Mapped::open_device(device, options), Err(MapError::NotADevice { .. })));
        assert!(matches!(Mapped::open_device(&path("short"), options), Err(MapError::NotADevice { .. })));
    }
    assert!(matches!(Mapped::create(&path("short"), PAGE, options()), Err(MapError::Io { doing: "create", .. })));
    assert_eq!(fs::read(path("short")).unwrap(), b"no page");
}
