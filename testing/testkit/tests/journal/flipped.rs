//! A flipped bit in the log: opening refuses every damage that it can prove, and salvage recovers everything undamaged.

use std::sync::atomic::Ordering;

use journal::{File, JournalError, JournalOptions, Journaled};
use pmem::{Bytes, Canary, Level, Offset, Persist, Taken};
use pmem_sim::{Crashable, DiskImage, Model, SimDisk, SimFile};

const REGION_BYTES: u64 = 8192;
const SEGMENT_BYTES: u64 = 8192;
/// Each word is one frame; together they fill a segment and a part of the next.
const WORD_COUNT: u64 = 110;
/// One bit in this many is flipped, each in a separate opening.
const STRIDE_BITS: u64 = 61;

fn options() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        log_bytes_max: 4 * SEGMENT_BYTES,
        segment_bytes: SEGMENT_BYTES,
        background: false,
        salt: 7,
        ..JournalOptions::default()
    }
}

fn place(number: u64) -> Offset {
    Offset(number * 64 + 32)
}

/// Returns the disk of a journal that was waited for after each word.
fn left() -> DiskImage {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = Journaled::create(disk.files(), REGION_BYTES, [1; 16], options()).expect("a disk without faults");
    for number in 0..WORD_COUNT {
        assert_eq!(journal.publish(&[(place(number), number + 1)], number), Taken::Yes);
        journal.wait(journal.commit(Level::Strongest)).expect("a disk without faults");
    }
    let [image] = &disk.images(1, 0)[..] else { panic!("all was synced") };
    image.clone()
}

fn words(journal: &Journaled<SimFile>) -> Vec<u64> {
    (0..WORD_COUNT).map(|number| journal.load(place(number), Ordering::Relaxed)).collect()
}

/// Returns true if all words are present except number `lost`, which is zero.
fn lacks(found: &[u64], lost: u64) -> bool {
    found.iter().zip(1..).all(|(&word, number)| word == if number - 1 == lost { 0 } else { number })
}

fn flipped(image: &DiskImage, canary: Option<Canary>, bit: u64) -> SimDisk {
    let disk = SimDisk::from_image(image, Model::Disk);
    let disk = canary.into_iter().fold(disk, Crashable::with_canary);
    let (log, mut byte) = (disk.files().log, [0]);
    log.read_at(&mut byte, bit / 8).expect("a disk without faults");
    log.write_at(&[byte[0] ^ 1 << (bit % 8)], bit / 8).and_then(|()| log.sync()).expect("a disk without faults");
    disk
}

/// Counts the results of opening after each flip.
#[derive(Default, Debug)]
struct Ends {
    whole: u64,
    without_the_last: u64,
    refused: u64,
    wrong: u64,
}

fn flip_all(canary: Option<Canary>) -> Ends {
    let (image, mut ends) = (left(), Ends::default());
    let log_bytes = SimDisk::from_image(&image, Model::Disk).files().log.len().expect("a disk without faults");
    for bit in (0..log_bytes * 8).step_by(STRIDE_BITS as usize) {
        let disk = flipped(&image, canary, bit);
        match Journaled::open(disk.files(), options(), &|_| {}) {
            Ok(journal) => match words(&journal) {
                found if lacks(&found, u64::MAX) => ends.whole += 1,
                found if lacks(&found, WORD_COUNT - 1) => ends.without_the_last += 1,
                _ => ends.wrong += 1,
            },
            Err(JournalError::Gap { .. } | JournalError::Damaged { .. }) => {
                salvaged(&disk);
                ends.refused += 1;
            }
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    ends
}

/// Checks that salvage loses at most one word and keeps all others.
fn salvaged(disk: &SimDisk) {
    let (journal, damage) = Journaled::salvage(disk.files(), options()).expect("it can be read");
    let found = words(&journal);
    let lost: Vec<u64> = (0..WORD_COUNT).filter(|&number| found[number as usize] == 0).collect();
    let [error] = &damage[..] else { panic!("{damage:?}") };
    match (error, &lost[..]) {
        (JournalError::Gap { sequence, frames_behind, .. }, &[number]) => {
            assert_eq!((*sequence, *frames_behind), (number + 1, WORD_COUNT - number - 1));
            assert!(lacks(&found, number), "{found:?}");
        }
        // A segment's header is damaged; all of its frames are intact.
        (JournalError::Damaged { .. }, []) => assert!(lacks(&found, u64::MAX)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bit_flip_spares_frames_durable_before() {
    let ends = flip_all(None);
    assert!(ends.wrong == 0 && ends.refused > 500 && ends.whole > 500 && ends.without_the_last > 0, "{ends:?}");
}

#[test]
fn log_cut_taken_as_end_is_caught() {
    let ends = flip_all(Some(journal::canary::CUT_TAKEN_FOR_END));
    assert!(ends.wrong > 50, "{ends:?}");
}

#[test]
fn log_file_cut_in_segment_is_refused() {
    let image = left();
    let whole = SimDisk::from_image(&image, Model::Disk);
    let mut bytes = vec![0; whole.files().log.len().expect("a disk without faults") as usize];
    whole.files().log.read_at(&mut bytes, 0).expect("a disk without faults");
    let cut_to = 2 * SEGMENT_BYTES as usize - 512;
    let cut = SimDisk::from_image(&image, Model::Disk);
    cut.files()
        .log
        .truncate(0)
        .and_then(|()| cut.files().log.write_at(&bytes[..cut_to], 0))
        .expect("a disk without faults");
    let error = Journaled::open(cut.files(), options(), &|_| {}).expect_err("the newest segment is cut");
    assert!(matches!(error, JournalError::Damaged { at_bytes, .. } if at_bytes == cut_to as u64), "{error:?}");
}
