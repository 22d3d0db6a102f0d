//! Tests of the journal without an engine, on the simulated disk: lives of a region, each of them ended by a crash, a
//! kill or a close, and each continuing where the last one ended. Recovery must find a prefix of everything flushed
//! that contains everything waited for.

mod content;
mod deferred;
mod discards;
mod flipped;
mod history;
mod life;
mod lost;
mod refused;
mod wrong;

use history::History;
use life::Life;
use pmem::{Canary, Durability};
use testkit::Extent;
use wrong::Wrong;

/// Consecutive lives of one region.
const LIFE_COUNT: usize = 5;

/// The maximum segment length of a log: the initial length, or longer by one or two steps.
const SEGMENT_BYTES: [u64; 5] = [8 << 10, 8 << 10, 8 << 10, 16 << 10, 40 << 10];

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
struct Course {
    level: Durability,
    canary: Option<Canary>,
    /// Injects failures of disk operations.
    faults: bool,
    /// Limits the memory for pages.
    memory_bytes_max: Option<u64>,
    /// Also overwrites parts of pages whose contents are not needed.
    overwrites: bool,
}

/// A life without faults and without a limit of memory.
const PLAIN: Course =
    Course { level: Durability::Power, canary: None, faults: false, memory_bytes_max: None, overwrites: false };

/// The memory of a region that has more pages.
const ONE_PAGE: Option<u64> = Some(4096);

/// Runs all lives of a region, drawn from `seed`; returns the number of crash images examined.
fn run(seed: u64, course: Course) -> Result<u64, Wrong> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut image_count = 0;
    let segment_bytes = SEGMENT_BYTES[rng.usize(0..SEGMENT_BYTES.len())];
    let mut left = Life::first(course, segment_bytes);
    let mut history = History::new(left.region_bytes());
    for _ in 0..LIFE_COUNT {
        let (next, count) = left.live(&mut history, &mut rng, course.faults)?;
        image_count += count;
        left = next;
    }
    Ok(image_count)
}

/// A sample tries a quarter of the seeds.
fn passes(course: Course, seed_count: u64) {
    let seed_count = seed_count / Extent::pick(4, 1);
    let mut image_count = 0;
    for seed in 0..seed_count {
        image_count += run(seed, course).unwrap_or_else(|wrong| panic!("seed {seed} of {course:?}: {wrong}"));
    }
    assert!(image_count > 10 * seed_count, "{image_count} images");
}

/// The number of seeds tried on a broken variant: many times the number needed.
const HUNT_SEED_COUNT: u64 = 3000;

#[track_caller]
fn caught(canary: Canary, course: Course) {
    let course = Course { canary: Some(canary), ..course };
    assert!((0..HUNT_SEED_COUNT).any(|seed| run(seed, course).is_err()), "{canary:?} was not caught");
}

#[test]
fn acknowledged_frames_survive_as_prefix() {
    passes(PLAIN, 100);
}

#[test]
fn written_frames_survive_kill_and_power_loss() {
    passes(Course { level: Durability::Buffered, ..PLAIN }, 70);
}

#[test]
fn failing_disk_loses_no_acknowledged_write() {
    passes(Course { faults: true, ..PLAIN }, 100);
    passes(Course { level: Durability::Buffered, faults: true, ..PLAIN }, 70);
}

/// The region has more pages than memory: they are evicted, written and read again between the operations.
#[test]
fn evicted_pages_survive_as_all_others() {
    let paged = Course { memory_bytes_max: ONE_PAGE, ..PLAIN };
    passes(paged, 100);
    passes(Course { level: Durability::Buffered, ..paged }, 70);
    passes(Course { overwrites: true, ..paged }, 50);
    passes(Course { level: Durability::Buffered, overwrites: true, ..paged }, 35);
    passes(Course { faults: true, ..paged }, 100);
}

#[test]
fn overwritten_pages_survive_whatever_the_disk_refuses() {
    passes(Course { faults: true, overwrites: true, memory_bytes_max: ONE_PAGE, ..PLAIN }, 100);
}

/// The base's sync fails, and the process dies; the next one reads a page past the cache, and the power fails.
#[test]
fn pages_read_after_failed_sync_stay() {
    run(387, Course { faults: true, memory_bytes_max: ONE_PAGE, ..PLAIN }).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn broken_evictions_are_caught() {
    let paged = Course { memory_bytes_max: ONE_PAGE, ..PLAIN };
    caught(journal::canary::EVICTED_WHILE_STORED, paged);
    caught(journal::canary::CLEAN_BEFORE_SYNC, Course { faults: true, ..paged });
    caught(journal::canary::LOADED_WITHOUT_REDO, paged);
    caught(journal::canary::OVERWRITTEN_IN_PART, Course { overwrites: true, ..paged });
}

#[test]
fn broken_journals_are_caught() {
    for canary in [
        journal::canary::LOG_ORDER_UNLIKE_STORES,
        journal::canary::LIVE_PAGE_IN_BASE,
        journal::canary::BASE_BEFORE_LOG,
        journal::canary::RECYCLED_BEFORE_BASE,
        journal::canary::OLD_RECORDS_REPLAYED,
        journal::canary::TORN_RECORD_ACCEPTED,
        journal::canary::FRAMES_BEFORE_HEADER,
        journal::canary::SEALED_CALLED_DURABLE,
        journal::canary::WAIT_BEFORE_SYNC,
        journal::canary::LOADED_WITHOUT_REDO,
        journal::canary::REPLAYED_PAGES_UNMARKED,
        journal::canary::CUT_TAKEN_FOR_END,
    ] {
        caught(canary, PLAIN);
    }
}

#[test]
fn journals_ignoring_failed_sync_are_caught() {
    caught(journal::canary::SYNC_RETRIED, Course { faults: true, ..PLAIN });
    caught(journal::canary::TAIL_NOT_REWRITTEN, Course { faults: true, ..PLAIN });
    caught(journal::canary::REPLAYED_PAGES_TRUSTED, Course { faults: true, ..PLAIN });
}
