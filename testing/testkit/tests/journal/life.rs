//! One life of a region: it is opened, written to, and ended by a close, a kill or a loss of power.

mod opening;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fastrand::Rng;
use journal::{File, JournalError, JournalOptions, Journaled};
use parking_lot::Mutex;
use pmem::{Bytes, Canary, Durability, Level, MediumError, Offset, Persist, Residency, Space, Span, Taken};
use pmem_sim::{CrashImage, Crashable, DiskImage, Fault, Model, SimDisk, SimFile};

use crate::Course;
use crate::content::{bytes_of, wait_at, whole};
use crate::history::{Ended, History};
use crate::wrong::Wrong;

const PAGE_BYTES: u64 = 4096;
const REGION_BYTES: u64 = 2 * PAGE_BYTES;
const REGION_BYTES_MAX: u64 = 4 * PAGE_BYTES;
const OP_COUNT_MAX: usize = 40;

/// The longest stream that is one entry of the log.
const STREAM_BYTES_MAX: usize = 896;

/// Crash images examined after one step.
const IMAGES_PER_STEP: usize = 4;

/// The levels that commits request; `None` is the level with which the journal was opened.
const LEVELS: [Option<Durability>; 6] =
    [None, None, None, Some(Durability::Power), Some(Durability::Buffered), Some(Durability::Process)];

/// A disk and the way it is used.
pub(crate) struct Life {
    disk: SimDisk,
    level: Durability,
    canary: Option<Canary>,
    /// The maximum length of a segment of the log.
    segment_bytes: u64,
    /// The memory for pages, if it is limited.
    memory_bytes_max: Option<u64>,
    overwrites: bool,
    /// The end of the life before.
    before: Ended,
}

/// The state that an observer shares with the life it observes: its history and the possible crashes.
type Shared = Mutex<(History, Vec<Crash>)>;

/// A possible crash and the states that would be legal after it.
type Crash = (DiskImage, History);

impl Life {
    /// Starts the first life of a region by creating its journal.
    pub(crate) fn first(course: Course, segment_bytes: u64) -> Life {
        let Course { level, canary, memory_bytes_max, overwrites, .. } = course;
        let disk = disk(SimDisk::new(0, Model::Disk), canary);
        let life = Life { disk, level, canary, segment_bytes, memory_bytes_max, overwrites, before: Ended::Killed };
        drop(
            Journaled::create(life.disk.files(), REGION_BYTES, [1; 16], life.options()).expect("a disk without faults"),
        );
        life
    }

    pub(crate) fn region_bytes(&self) -> u64 {
        REGION_BYTES
    }

    /// Uses few segments, so that the log becomes full repeatedly. They have the minimum length or may grow.
    fn options(&self) -> JournalOptions {
        JournalOptions {
            reserve_bytes: 1 << 30,
            huge_pages: false,
            level: self.level,
            log_bytes_max: 3 * self.segment_bytes,
            segment_bytes: self.segment_bytes,
            capacity_bytes: 2 * PAGE_BYTES,
            block_bytes: PAGE_BYTES,
            memory_bytes_max: self.memory_bytes_max,
            background: false,
            ..JournalOptions::default()
        }
    }

    fn after(&self, image: &DiskImage) -> Life {
        Life { disk: disk(SimDisk::from_image(image, Model::Disk), self.canary), before: Ended::WithoutPower, ..*self }
    }

    /// Runs one life; returns the next one, and the number of images examined.
    pub(crate) fn live(self, history: &mut History, rng: &mut Rng, faults: bool) -> Result<(Life, u64), Wrong> {
        self.decide_contents();
        if faults {
            self.ask_for_a_fault(rng);
        }
        let shared = Arc::new(Mutex::new((history.clone(), Vec::new())));
        self.observe(&shared, rng.fork());
        let next = self.live_observed(&shared, rng, faults);
        self.disk.unobserve();
        let (next, (lived, crashes)) = (next?, std::mem::take(&mut *shared.lock()));
        *history = lived;
        self.examine(&crashes)?;
        let count = crashes.len() as u64;
        Ok((next.unwrap_or_else(|| self.lose_power(crashes, history, rng)), count))
    }

    /// Returns the next life, or `None` after a loss of power.
    fn live_observed(&self, shared: &Shared, rng: &mut Rng, faults: bool) -> Result<Option<Life>, Wrong> {
        let mut found = self.find(shared, faults)?;
        let opened = found.as_ref().map(|found| self.open_bit_by_bit(found, shared, rng)).transpose();
        let opened = opened.or_else(|wrong| match wrong {
            Wrong::DoesNotOpen(error) => opening::refused(error, faults),
            wrong => Err(wrong),
        })?;
        let Some(journal) = opened else {
            self.disk.fail(None);
            // The contents that the life before left have not been read.
            return Ok(rng.bool().then(|| Life { disk: self.disk.clone(), ..*self }));
        };
        let op_count = rng.usize(0..OP_COUNT_MAX);
        let mut memory = found.take().expect("it was opened");
        for _ in 0..op_count {
            self.evict(&journal, &memory, rng)?;
            self.act(&journal, shared, &mut memory, rng)?;
        }
        Ok(self.end(journal, shared, rng))
    }

    fn ask_for_a_fault(&self, rng: &mut Rng) {
        let number = self.disk.operation_count() + rng.u64(1..120);
        self.disk.fail(Some(if rng.bool() { Fault::Error(number) } else { Fault::Full(number) }));
    }

    fn observe(&self, shared: &Arc<Shared>, mut rng: Rng) {
        let shared = Arc::clone(shared);
        self.disk.observe(Box::new(move |disk, _| {
            let images = disk.images(IMAGES_PER_STEP, rng.u64(..));
            let mut shared = shared.lock();
            let history = shared.0.clone();
            shared.1.extend(images.into_iter().map(|image| (image, history.clone())));
        }));
    }

    /// Makes pages clean and evicts them at times, and at times compares all pages with the `memory` of a region
    /// without a limit.
    fn evict(&self, journal: &Journaled<SimFile>, memory: &[u8], rng: &mut Rng) -> Result<(), Wrong> {
        if self.memory_bytes_max.is_none() {
            return Ok(());
        }
        match rng.u8(0..8) {
            // As before a write, which waits for clean pages; and as before a read, which does not.
            0 | 1 => drop(journal.acknowledger().together(|| ())),
            2 => journal.acknowledger().admit(),
            _ => {}
        }
        match rng.bool().then(|| whole(journal)) {
            Some(Ok(shown)) if shown != memory => Err(Wrong::Contents("in memory".into())),
            _ => Ok(()),
        }
    }

    /// Makes a random change. Also makes it in `memory`.
    fn act(
        &self,
        journal: &Journaled<SimFile>,
        shared: &Shared,
        memory: &mut Vec<u8>,
        rng: &mut Rng,
    ) -> Result<(), Wrong> {
        let mut set = |at: u64, bytes: &[u8]| memory[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        let note = |spans: &[Span]| {
            let pieces = spans.iter().map(|&span| (span, bytes_of(journal, span)));
            shared.lock().0.push(pieces.collect::<Vec<_>>());
        };
        let was_healthy = journal.health().is_ok();
        match rng.u8(0..if self.overwrites { 26 } else { 24 }) {
            0..6 => {
                let line = rng.u64(0..8) * 64;
                let place = rng.u64(0..4) * 8;
                let first = rng.bool().then(|| (Offset(line + place), rng.u64(..)));
                let last = (Offset(line + 32 + place), rng.u64(..));
                let words: Vec<(Offset, u64)> = first.into_iter().chain([last]).collect();
                // As the words will be, because they reach the log before memory.
                if was_healthy {
                    shared.lock().0.push(words.iter().map(|&(at, word)| (at.span(8), word.to_ne_bytes().to_vec())));
                }
                if journal.publish(&words, last.1) == Taken::Yes {
                    words.iter().for_each(|(at, word)| set(at.0, &word.to_ne_bytes()));
                }
            }
            6..11 => {
                let at = Offset(rng.u64(64..REGION_BYTES / 8 - 8) * 8);
                let word = rng.u64(..);
                shared.lock().0.store(at.0 as usize, word.to_ne_bytes().to_vec());
                journal.store(at, word, Ordering::Relaxed);
                set(at.0, &word.to_ne_bytes());
                if rng.bool() {
                    let span = Offset(at.0 + rng.u64(0..4)).span(rng.u64(1..40));
                    note(&[span]);
                    journal.flush(span);
                }
            }
            11..17 => {
                let at = Offset(rng.u64(64..REGION_BYTES / 16 - 64) * 16);
                let bytes = vec![rng.u8(..); rng.usize(1..=STREAM_BYTES_MAX)];
                let padded_bytes = bytes.len().next_multiple_of(16) as u64;
                let mut padded = bytes.clone();
                padded.resize(padded_bytes as usize, 0);
                // These bytes reach memory before the log.
                shared.lock().0.store(at.0 as usize, padded.clone());
                shared.lock().0.push([(at.span(padded_bytes), padded.clone())]);
                // SAFETY: only one thread uses the region, and it holds no reference into it.
                unsafe { journal.stream(at, &[&bytes]) };
                set(at.0, &padded);
            }
            17..22 => return self.commit(journal, shared, LEVELS[rng.usize(0..LEVELS.len())]),
            22 => drop(journal.checkpoint()),
            23 | 24 if self.overwrites => {
                let at = Offset(rng.u64(64..PAGE_BYTES / 16 + 1) * 16);
                let end = if rng.bool() { REGION_BYTES } else { rng.u64(at.0 / 16 + 1..REGION_BYTES / 16) * 16 };
                shared.lock().0.store(at.0 as usize, vec![0; (end - at.0) as usize]);
                // SAFETY: as above.
                unsafe { journal.overwrite(at.span(end - at.0)) };
                for start in (at.0..end).step_by(STREAM_BYTES_MAX) {
                    let bytes = vec![rng.u8(..); STREAM_BYTES_MAX.min((end - start) as usize)];
                    shared.lock().0.store(start as usize, bytes.clone());
                    shared.lock().0.push([(Offset(start).span(bytes.len() as u64), bytes.clone())]);
                    // SAFETY: as above.
                    unsafe { journal.stream(Offset(start), &[&bytes]) };
                    set(start, &bytes);
                }
            }
            _ => {
                let to_bytes = journal.len_bytes() + PAGE_BYTES;
                if to_bytes <= REGION_BYTES_MAX {
                    shared.lock().0.push_growth(to_bytes);
                    if journal.grow(to_bytes).is_err() {
                        shared.lock().0.withdraw();
                    }
                    memory.resize(journal.len_bytes() as usize, 0);
                }
            }
        }
        Ok(())
    }

    /// Commits. At level power this acknowledges everything flushed so far. A poisoned log acknowledges nothing.
    fn commit(&self, journal: &Journaled<SimFile>, shared: &Shared, level: Option<Durability>) -> Result<(), Wrong> {
        let was_healthy = journal.health().is_ok();
        let waited = match level {
            None => journal.wait(journal.commit(Level::Strongest)),
            Some(level) => wait_at(journal, level),
        };
        match waited {
            Ok(()) if !was_healthy => return Err(Wrong::Health("a poisoned log has acknowledged")),
            Ok(()) if level.unwrap_or(self.level) == Durability::Power => {
                shared.lock().0.acknowledge(Ended::WithoutPower)
            }
            Ok(()) => shared.lock().0.acknowledge(Ended::Killed),
            Err(MediumError::Poisoned { .. }) if journal.health().is_err() => {}
            Err(_) => return Err(Wrong::Health("a wait failed, but the log is not poisoned")),
        }
        Ok(())
    }

    /// Ends the life with a close, a kill, or a loss of power (`None`).
    fn end(&self, journal: Journaled<SimFile>, shared: &Shared, rng: &mut Rng) -> Option<Life> {
        match rng.u8(0..6) {
            0 => {
                if journal.sync().is_ok() {
                    shared.lock().0.acknowledge(Ended::WithoutPower);
                }
                drop(journal);
            }
            1 | 2 => self.kill(journal),
            _ => {
                self.kill(journal);
                return None;
            }
        }
        self.disk.fail(None);
        Some(Life { disk: self.disk.clone(), before: Ended::Killed, ..*self })
    }

    fn kill(&self, journal: Journaled<SimFile>) {
        self.disk.unobserve();
        self.disk.fail(Some(Fault::Dead(0)));
        drop(journal);
    }

    /// Opens and compares every recorded crash.
    fn examine(&self, crashes: &[Crash]) -> Result<u64, Wrong> {
        for (image, history) in crashes {
            let journal = self.after(image).open().map_err(Wrong::DoesNotOpen)?;
            let found = whole(&journal).expect("the disk can be read");
            if !history.allows(&found, Ended::WithoutPower) {
                return Err(Wrong::Contents(format!("after a crash, {image}: {}", history.difference(&found))));
            }
            self.examine_flipped(image, history)?;
        }
        Ok(crashes.len() as u64)
    }

    /// Flips a bit of the log, chosen by the image's contents. The damage is noticed, or nothing is lost that a later
    /// frame records as durable.
    fn examine_flipped(&self, image: &DiskImage, history: &History) -> Result<(), Wrong> {
        let flipped = self.after(image);
        let log = flipped.disk.files().log;
        let flip = |log: &SimFile| {
            let bit = Rng::with_seed(image.hash()).u64(0..log.len()? * 8);
            let mut byte = [0];
            log.read_at(&mut byte, bit / 8)?;
            // The bit may be in a hole.
            log.allocate(bit / 8..bit / 8 + 1)?;
            log.write_at(&[byte[0] ^ 1 << (bit % 8)], bit / 8)?;
            log.sync()
        };
        flip(&log).expect("the disk can be written");
        let journal = match flipped.open() {
            Err(JournalError::Gap { .. } | JournalError::Damaged { .. } | JournalError::Unfinished) => return Ok(()),
            opened => opened.map_err(Wrong::DoesNotOpen)?,
        };
        let found = whole(&journal).expect("the disk can be read");
        if history.allows_flipped(&found) {
            return Ok(());
        }
        Err(Wrong::Contents(format!("after a crash and a flip, {image}: {}", history.difference(&found))))
    }

    fn lose_power(self, mut crashes: Vec<Crash>, history: &mut History, rng: &mut Rng) -> Life {
        if crashes.is_empty() {
            self.disk.fail(None);
            return self;
        }
        let (image, then) = crashes.swap_remove(rng.usize(0..crashes.len()));
        *history = then;
        self.after(&image)
    }
}

fn disk(disk: SimDisk, canary: Option<Canary>) -> SimDisk {
    match canary {
        Some(canary) => disk.with_canary(canary),
        None => disk,
    }
}
