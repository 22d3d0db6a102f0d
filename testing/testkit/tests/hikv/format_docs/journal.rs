//! Compares `docs/format/journal.md` with the log of a journal on the simulated disk, read only by the documented
//! offsets.

use journal::layout::{ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES, FRAMES_START_BYTES, HEADER_BYTES, MAGIC, VERSION};
use journal::{File, JournalOptions, Journaled};
use pmem::{Bytes, Level, Offset, Persist, Space, Taken, crc32c};
use pmem_sim::{Crashable, Model, SimDisk};

use crate::format_docs::fields::Fields;

const PAGE: &str = "journal";
const IDENTITY: [u8; 16] = [7; 16];
const REGION_BYTES: u64 = 8192;
const SALT: u32 = 0x5a17;

fn segment_header() -> Fields {
    Fields::bytes(PAGE, "Segment header", HEADER_BYTES as u64).named(&[
        "magic",
        "version",
        "segment bytes",
        "identity",
        "ordinal",
        "mark",
        "older segments",
        "older frames",
        "region bytes",
        "salt",
        "checksum",
    ])
}

fn frame_header() -> Fields {
    Fields::bytes(PAGE, "Frame header", FRAME_HEADER_BYTES as u64).named(&[
        "checksum",
        "entry bytes",
        "sequence",
        "tag",
        "mark",
    ])
}

fn entry() -> Fields {
    Fields::bits(PAGE, "Entry").named(&["offset", "length"])
}

fn options() -> JournalOptions {
    JournalOptions {
        reserve_bytes: 1 << 30,
        huge_pages: false,
        background: false,
        salt: SALT,
        ..JournalOptions::default()
    }
}

/// Returns a log in which the region was written to and grew.
fn log() -> Vec<u8> {
    let disk = SimDisk::new(0, Model::Disk);
    let journal = Journaled::create(disk.files(), REGION_BYTES, IDENTITY, options()).expect("a disk without faults");
    let commit = || journal.wait(journal.commit(Level::Strongest)).expect("a disk without faults");
    assert_eq!(journal.publish(&[(Offset(0), 0x1111), (Offset(32), 0x2222)], 0x2222), Taken::Yes);
    commit();
    // SAFETY: only one thread uses the region, and it holds no reference into it.
    unsafe { journal.stream(Offset(4096), &[b"twelve bytes"]) };
    journal.grow(2 * REGION_BYTES).expect("the disk has space");
    commit();
    let log = disk.files().log;
    let mut bytes = vec![0; options().segment_bytes as usize];
    log.read_at(&mut bytes, 0).expect("a segment");
    bytes
}

#[test]
fn segments_header() {
    let (log, fields) = (log(), segment_header());
    let header = &log[..HEADER_BYTES];
    assert_eq!(fields.slice(header, "magic"), MAGIC);
    assert_eq!(fields.slice(header, "identity"), IDENTITY);
    let numbers =
        ["version", "segment bytes", "ordinal", "mark", "older segments", "older frames", "region bytes", "salt"];
    assert_eq!(
        numbers.map(|name| fields.number(header, name)),
        [VERSION.into(), options().segment_bytes, 1, 1, 1 << 31, 0, REGION_BYTES, SALT.into()]
    );
    let checked = &header[..fields.start("checksum") as usize];
    assert_eq!(fields.number(header, "checksum"), u64::from(crc32c(0, checked)));
    assert_eq!((FRAMES_START_BYTES, options().segment_bytes), (4096, 4 << 20));
}

/// Returns the offset and bytes of each entry.
fn entries(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    while let Some((word, rest)) = bytes.split_first_chunk::<ENTRY_HEADER_BYTES>() {
        let word = u64::from_le_bytes(*word);
        let len = entry().of_word(word, "length") as usize;
        found.push((entry().of_word(word, "offset"), rest[..len].to_vec()));
        assert!(rest[len..len.next_multiple_of(8)].iter().all(|&byte| byte == 0));
        bytes = &rest[len.next_multiple_of(8)..];
    }
    found
}

#[test]
fn frames_and_their_entries() {
    let (log, fields) = (log(), frame_header());
    let mut rest = &log[FRAMES_START_BYTES as usize..];
    let mut found = Vec::new();
    for sequence in 1.. {
        let entry_bytes = fields.number(rest, "entry bytes") as usize;
        if entry_bytes == 0 {
            break;
        }
        let (frame, behind) = rest.split_at(FRAME_HEADER_BYTES + entry_bytes);
        assert_eq!(fields.number(frame, "checksum"), u64::from(crc32c(0, &frame[4..])));
        assert_eq!(
            (fields.number(frame, "sequence"), fields.number(frame, "tag")),
            (sequence, u64::from(SALT) << 32 | 1)
        );
        // Each frame was waited for before the next one was written.
        assert_eq!(fields.number(frame, "mark"), if sequence == 1 { 0 } else { sequence });
        found.extend(entries(&frame[FRAME_HEADER_BYTES..]));
        rest = behind;
    }
    let mut padded = b"twelve bytes".to_vec();
    padded.resize(16, 0);
    let word = |word: u64| word.to_le_bytes().to_vec();
    let expected = [(0, word(0x1111)), (32, word(0x2222)), (4096, padded), (2 * REGION_BYTES, vec![])];
    assert_eq!(found, expected);
}
