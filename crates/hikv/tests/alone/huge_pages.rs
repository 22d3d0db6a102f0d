//! The background of an open store in tmpfs merges small pages into huge pages, for example all pages of a copy.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hikv::{Durability, EngineKind, Options, Store};

use crate::alone;

const MEMORY: &str = "/dev/shm";
const HUGE_BYTES: u64 = 2 << 20;
/// At this size some huge pages of the region have no hole.
const STORED_BYTES: u64 = 8 * HUGE_BYTES;
const DEADLINE: Duration = Duration::from_secs(60);

/// Reads the kernel's settings, independently of the tested code.
fn is_possible() -> bool {
    let settings = Path::new("/sys/kernel/mm/transparent_hugepage");
    let read = |name: &str| fs::read_to_string(settings.join(name)).unwrap_or_default();
    let is_memory = fs::read_to_string("/proc/mounts").unwrap().contains(" /dev/shm tmpfs ");
    is_memory && read("hpage_pmd_size").trim() == HUGE_BYTES.to_string() && !read("shmem_enabled").contains("[deny]")
}

/// Returns the bytes of files below `dir` that this process has mapped by huge pages.
fn huge_bytes(dir: &Path) -> u64 {
    let (mut is_inside, mut huge_kib) = (false, 0);
    for line in fs::read_to_string("/proc/self/smaps").unwrap().lines() {
        let first = line.split_whitespace().next().unwrap();
        if !first.ends_with(':') {
            is_inside = line.contains(dir.to_str().unwrap());
        } else if is_inside && first == "ShmemPmdMapped:" {
            huge_kib += line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        }
    }
    huge_kib << 10
}

fn region_bytes(dir: &Path) -> u64 {
    fs::metadata(dir.join("store.hikv")).unwrap().len()
}

#[test]
fn opened_stores_small_pages_are_collapsed() {
    if !is_possible() {
        return print_skipped();
    }
    let _turn = alone();
    let home = tempfile::tempdir_in(MEMORY).unwrap();
    for &engine in EngineKind::ALL {
        let dir = home.path().join(engine.name());
        let options =
            Options::new().engine(engine).durability(Durability::Process).tuning(|tuning| tuning.huge_pages(false));
        let store = options.open(&dir).unwrap();
        let mut count = 0_u64;
        while region_bytes(&dir) < STORED_BYTES {
            store.put(count.to_be_bytes(), [7; 1_000]).unwrap();
            count += 1;
        }
        assert_eq!(huge_bytes(&dir), 0, "{engine}");
        store.close().unwrap();
        let store = Store::open(&dir).unwrap();
        let start = Instant::now();
        while huge_bytes(&dir) == 0 {
            assert!(start.elapsed() < DEADLINE, "{engine}: none of {} bytes", region_bytes(&dir));
            thread::yield_now();
        }
        assert_eq!(store.get((count - 1).to_be_bytes()).unwrap().as_deref(), Some(&[7; 1_000][..]), "{engine}");
    }
}

#[expect(clippy::print_stderr, reason = "a test that does not run says so")]
fn print_skipped() {
    eprintln!("skipped: {MEMORY} is no tmpfs whose pages the kernel puts together");
}
