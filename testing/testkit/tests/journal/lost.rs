//! A disk that fails to read a part of the base, long after the journal was opened.

use std::sync::atomic::Ordering;

use journal::{JournalOptions, Journaled};
use pmem::{Bytes, Level, MediumError, Offset, Persist, Residency, Taken};
use pmem_sim::{Crashable, Fault, Model, SimDisk, SimFile};

/// The simulated disk's error.
const EIO: i32 = 5;

const PAGE_BYTES: u64 = 4096;
const PAGE_COUNT: u64 = 5;
const LOST_PAGE: u64 = 3;

fn options() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        log_bytes_max: 4 * PAGE_BYTES,
        segment_bytes: 2 * PAGE_BYTES,
        block_bytes: PAGE_BYTES,
        background: false,
        ..JournalOptions::default()
    }
}

fn open(disk: &SimDisk) -> Journaled<SimFile> {
    Journaled::open(disk.files(), options(), &|_| {}).expect("opening reads nothing of the base")
}

/// Returns a disk on which each page begins with its own number.
fn disk() -> SimDisk {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = Journaled::create(disk.files(), PAGE_COUNT * PAGE_BYTES, [1; 16], options()).unwrap();
    for page in 0..PAGE_COUNT {
        assert_eq!(journal.publish(&[(place(page), page + 100)], 0), Taken::Yes);
    }
    journal.wait(journal.commit(Level::Strongest)).unwrap();
    drop(journal);
    disk
}

fn place(page: u64) -> Offset {
    Offset(page * PAGE_BYTES)
}

fn first_word(journal: &Journaled<SimFile>, page: u64) -> u64 {
    journal.load(place(page), Ordering::Acquire)
}

#[test]
fn unreadable_block_ends_writing() {
    let disk = disk();
    let journal = open(&disk);
    assert_eq!((first_word(&journal, 0), journal.check_lost_ranges()), (100, Ok(())));
    disk.fail(Some(Fault::Error(disk.operation_count() + 1)));
    let lost = Err(MediumError::Unreadable { offset: LOST_PAGE * PAGE_BYTES, errno: EIO });
    assert_eq!((first_word(&journal, LOST_PAGE), journal.check_lost_ranges()), (0, lost));
    // SAFETY: only one thread uses the region.
    let item = |span| unsafe { journal.bytes(span) }.map(<[u8]>::len);
    assert_eq!(item(place(LOST_PAGE).span(8)).map(drop), lost);
    assert_eq!(item(Offset(0).span(PAGE_COUNT * PAGE_BYTES)).map(drop), lost, "a span with a lost part");
    assert_eq!(item(place(1).span(8)), Ok(8));
    assert_eq!(first_word(&journal, 4), 104, "what can be read is read");

    assert_eq!(journal.health(), Err(MediumError::Poisoned { errno: EIO }));
    assert_eq!(journal.publish(&[(place(LOST_PAGE), 7)], 0), Taken::No);
    assert_eq!(journal.publish(&[(place(2), 7)], 0), Taken::No);
    assert_eq!(journal.wait(journal.commit(Level::Strongest)), Err(MediumError::Poisoned { errno: EIO }));
    assert!(journal.checkpoint().is_err());
    drop(journal);

    let journal = open(&disk);
    let found: Vec<u64> = (0..PAGE_COUNT).map(|page| first_word(&journal, page)).collect();
    assert_eq!((found, journal.check_lost_ranges()), ((100..100 + PAGE_COUNT).collect(), Ok(())));
}

#[test]
fn peek_that_fails_has_block_read() {
    let disk = disk();
    let journal = open(&disk);
    assert_eq!(journal.peek(place(LOST_PAGE)), 100 + LOST_PAGE);
    let next = disk.operation_count() + 1;
    disk.fail(Some(Fault::Error(next)));
    assert_eq!(
        (journal.peek(place(LOST_PAGE)), journal.check_lost_ranges()),
        (100 + LOST_PAGE, Ok(())),
        "the read is retried"
    );
    assert!(disk.operation_count() > next);
}
