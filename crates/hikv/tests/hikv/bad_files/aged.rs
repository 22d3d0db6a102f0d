//! A store with a history, to be damaged: values were replaced and keys deleted, so old items and old segments remain.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use heap::layout::{CHUNK_HEADER_BYTES, SEGMENT_BYTES, SEGMENTS_CHUNK_UNITS, UNIT_BYTES};
use hikv::repair::{Finding, RepairError, RepairEvent, RepairReport, Weight, repair};
use hikv::{Durability, Options, Store};
use pmem::unseal;
use tempfile::TempDir;

pub(crate) type Items = BTreeMap<Vec<u8>, Vec<u8>>;

/// The prefix of all keys.
const KEY: &[u8] = b"key of item ";
const KEY_BYTES: usize = KEY.len() + 5;
pub(crate) const ITEM_HEADER_BYTES: usize = 16;
pub(crate) const SEGMENT: usize = SEGMENT_BYTES as usize;
pub(crate) const UNIT: usize = UNIT_BYTES as usize;
/// The word in the head that names the clean image.
pub(crate) const IMAGE_WORD: usize = 8_384;

/// The bytes of a region, and its items.
pub(crate) struct Aged {
    pub(crate) bytes: Vec<u8>,
    pub(crate) items: Items,
}

pub(crate) fn key(i: usize) -> Vec<u8> {
    [KEY, format!("{i:05}").as_bytes()].concat()
}

fn value(i: usize, version: usize) -> Vec<u8> {
    let len = match i % 500 {
        499 => 300_000,
        251 => 50_000,
        _ => 20 + i % 90,
    };
    format!("version {version} of {i}, ").bytes().cycle().take(len).collect()
}

/// Returns a directory without a disk to wait for, if there is one. Repairs that write to a journal are tested in
/// `journaled::damage` and in the program's tests.
pub(crate) fn home() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Under load a close may wait too long for readers, but not this often.
const ATTEMPT_COUNT_MAX: usize = 50;

/// The end of the last process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// A clean close, which leaves an image.
    Closed,
    /// A kill.
    Killed,
}

impl Aged {
    /// Returns a store that had `key_count` keys; 20 % were deleted, 33 % replaced, some of them twice.
    pub(crate) fn new(key_count: usize, end: End) -> Aged {
        // A close that waits too long for readers of other tests leaves no image, and neither does a later close.
        let made = std::iter::repeat_with(|| Aged::made(key_count, end)).take(ATTEMPT_COUNT_MAX);
        let is_as_wanted = |aged: &Aged| end == End::Killed || unseal(aged.word(IMAGE_WORD)).is_some();
        made.into_iter().find(is_as_wanted).expect("a close leaves an image")
    }

    fn made(key_count: usize, end: End) -> Aged {
        let home = home();
        let store = Options::new()
            .tuning(|tuning| tuning.partition_count(1))
            .background(false)
            .durability(Durability::Process)
            .open(home.path())
            .unwrap();
        let mut items = Items::new();
        let mut put = |i: usize, version| {
            store.put(key(i), value(i, version)).unwrap();
            items.insert(key(i), value(i, version));
        };
        (0..key_count).for_each(|i| put(i, 0));
        (0..key_count).step_by(3).for_each(|i| put(i, 1));
        (0..key_count).step_by(9).for_each(|i| put(i, 2));
        for i in (0..key_count).step_by(5) {
            assert!(store.delete(key(i)).unwrap());
            items.remove(&key(i));
        }
        let killed = fs::read(home.path().join("store.hikv")).unwrap();
        store.close().unwrap();
        let bytes = if end == End::Killed { killed } else { fs::read(home.path().join("store.hikv")).unwrap() };
        Aged { bytes, items }
    }

    /// Returns the region with a part of it changed.
    pub(crate) fn altered(&self, alter: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        alter(&mut bytes);
        bytes
    }

    /// Returns the region with one bit flipped.
    pub(crate) fn flipped(&self, at: usize, bit: usize) -> Vec<u8> {
        self.altered(|bytes| bytes[at + bit / 8] ^= 1 << (bit % 8))
    }

    pub(crate) fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Returns the offsets of chunks, and their sealed words.
    pub(crate) fn chunks(&self) -> Vec<(usize, u64)> {
        let mark = unseal(self.word(8_256)).unwrap() as usize;
        let mut chunks = Vec::new();
        let mut unit = 1;
        while unit < mark {
            let word = unseal(self.word(unit * UNIT)).unwrap();
            chunks.push((unit * UNIT, word));
            unit += (word & 0xFF_FFFF) as usize;
        }
        chunks
    }

    /// Returns the offsets of segments in this state.
    pub(crate) fn segments(&self, state: u64) -> Vec<usize> {
        let chunks = self.chunks().into_iter().filter(|(_, word)| word >> 32 == 3);
        let places = chunks.flat_map(|(at, _)| (1..SEGMENTS_CHUNK_UNITS as usize * 4).map(move |i| at + i * SEGMENT));
        places.filter(|&at| unseal(self.word(at)).is_some_and(|word| word & 7 == state)).collect()
    }

    /// Returns the offsets of the words of used entries in live segments: signature and position.
    pub(crate) fn entries(&self) -> Vec<(usize, usize)> {
        let lines = self.segments(2).into_iter().flat_map(|at| (at + 64..at + SEGMENT).step_by(64));
        let slots = lines.flat_map(|line| (0..4).map(move |i| (line + i * 8, line + 32 + i * 8)));
        slots.filter(|&(_, position)| self.word(position) << 16 != 0).collect()
    }

    /// Returns the offset of each item, by its key.
    pub(crate) fn places(&self) -> HashMap<Vec<u8>, usize> {
        let offset = |position: usize| (self.word(position) & ((1 << 48) - 1)) as usize;
        let items = self.entries().into_iter().map(|(_, position)| offset(position));
        let places: HashMap<_, _> =
            items.map(|at| (self.bytes[at + ITEM_HEADER_BYTES..][..KEY_BYTES].to_vec(), at)).collect();
        assert_eq!(places.len(), self.items.len());
        places
    }

    /// Asserts that a repair of `bytes` recovers only true items, and all except `lost`, each of which it reports.
    #[track_caller]
    pub(crate) fn assert_salvaged(&self, bytes: &[u8], lost: &[Vec<u8>]) -> Salvaged {
        let salvaged = Salvaged::from(bytes).unwrap();
        self.assert_true(&salvaged);
        let missing: Vec<_> = self.items.keys().filter(|&key| !salvaged.items.contains_key(key)).cloned().collect();
        assert_eq!(missing, lost, "{:?}", salvaged.findings);
        assert_eq!(salvaged.report.lost_count as usize, lost.len(), "{:?}", salvaged.findings);
        salvaged
    }

    /// Returns the number of recovered items that did not exist, or not with this value.
    pub(crate) fn false_count(&self, salvaged: &Salvaged) -> usize {
        salvaged.items.iter().filter(|(key, value)| self.items.get(*key) != Some(value)).count()
    }

    /// Asserts that every recovered item existed with this very value.
    #[track_caller]
    pub(crate) fn assert_true(&self, salvaged: &Salvaged) {
        assert_eq!(self.old_value_count(salvaged), 0, "old values are taken: {:?}", salvaged.findings);
    }

    /// Returns the number of recovered keys with an older value. No key may have been deleted.
    pub(crate) fn old_value_count(&self, salvaged: &Salvaged) -> usize {
        let is_old = |(key, value): &(&Vec<u8>, &Vec<u8>)| {
            let text = String::from_utf8_lossy(key);
            assert!(self.items.contains_key(*key), "'{text}' was deleted: {:?}", salvaged.findings);
            self.items[*key] != **value
        };
        salvaged.items.iter().filter(is_old).count()
    }
}

/// Result of a repair.
#[derive(Debug)]
pub(crate) struct Salvaged {
    pub(crate) items: Items,
    pub(crate) report: RepairReport,
    pub(crate) findings: Vec<Finding>,
}

impl Salvaged {
    /// Repairs a store with these bytes, which do not change.
    pub(crate) fn from(bytes: &[u8]) -> Result<Salvaged, RepairError> {
        let home = home();
        let (damaged, out) = (home.path().join("damaged"), home.path().join("out"));
        fs::create_dir(&damaged).unwrap();
        fs::write(damaged.join("store.hikv"), bytes).unwrap();
        let salvaged = Salvaged::repaired(&damaged, &out);
        assert!(fs::read(damaged.join("store.hikv")).unwrap() == bytes, "the damaged store was changed");
        assert_eq!(fs::read_dir(&damaged).unwrap().count(), 1, "something was made beside the damaged store");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1 + usize::from(salvaged.is_ok()));
        salvaged
    }

    fn repaired(damaged: &Path, out: &Path) -> Result<Salvaged, RepairError> {
        let mut findings = Vec::new();
        let report = repair(damaged, out, |event| {
            if let RepairEvent::Found(finding) = event {
                findings.push(finding);
            }
            ControlFlow::Continue(())
        })?;
        let mut items = Items::new();
        let store = Store::open_read_only(out).unwrap();
        store
            .for_each(|key, value| {
                items.insert(key.to_vec(), value.to_vec());
            })
            .unwrap();
        assert_eq!(report.items as usize, items.len());
        let count = |weight| findings.iter().filter(|finding| finding.weight == weight).count() as u64;
        let counts = [Weight::Mended, Weight::Doubtful, Weight::Lost].map(count);
        assert_eq!(counts, [report.mended_count, report.doubtful_count, report.lost_count]);
        Ok(Salvaged { items, report, findings })
    }
}

/// The offset of an extent's item in its chunk.
pub(crate) const EXTENT_ITEM: usize = CHUNK_HEADER_BYTES as usize;
