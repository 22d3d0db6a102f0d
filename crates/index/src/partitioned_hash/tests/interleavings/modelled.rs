//! A medium with a few words under the control of a model checker.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use heap::layout::{SEGMENT_BYTES, batch_word};
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;
use pmem::{
    Acknowledge, Bytes, Canary, Durability, LINE_BYTES, Level, Medium, MediumError, Offset, Persist, Residency, Space,
    Span, Taken, Ticket,
};
use pmem_sim::Sim;

use super::super::super::layout::slot;
use super::durable::History;
use crate::Position;

/// The number of modelled entries in the line: the others stay empty in the scenes.
pub(super) const ENTRY_COUNT: usize = 2;
/// The length of an item: a key's number and a value.
const ITEM_BYTES: u64 = 16;
/// The items of a scene occupy this number of 16-byte slots, one after the other.
const ITEM_COUNT: u64 = 64;

const _: () = assert!(LINE_BYTES == 64 && ENTRY_COUNT <= 4);

/// A simulated region. The entries of one line are loom's atomics, and items are memory that loom watches for
/// races.
pub(super) struct Modelled {
    pub(super) sim: Sim,
    line: Offset,
    signatures: [AtomicU64; ENTRY_COUNT],
    positions: [AtomicU64; ENTRY_COUNT],
    /// The batch word that the first batch uses, alone in its line.
    batch: AtomicU64,
    items: Vec<UnsafeCell<()>>,
    /// Stands for the entries in all other lines.
    elsewhere: AtomicU64,
    /// Stands for the order of the table of batches, which loom does not control: a reader that does not find a
    /// batch in the table sees everything done before the batch was removed.
    table: AtomicU64,
    history: Mutex<History>,
    /// The history of the batch word, as if it were an entry's position.
    batch_history: Mutex<History>,
    broken: Option<Canary>,
    /// True if a commit is complete when it returns, as on memory; otherwise it must be waited for, as on a log.
    is_memory: bool,
}

/// A word of the line.
#[derive(Clone, Copy)]
enum Word {
    Signature(usize),
    Position(usize),
    Batch,
}

impl Modelled {
    /// Creates a fresh region whose entries at `line` are modelled; the store omits the step `broken`.
    pub(super) fn new(line: Offset, broken: Option<Canary>, is_memory: bool) -> Modelled {
        let words = || std::array::from_fn(|_| AtomicU64::new(0));
        Modelled {
            sim: Sim::new(0, pmem_sim::Model::Line),
            line,
            signatures: words(),
            positions: words(),
            batch: AtomicU64::new(0),
            items: (0..ITEM_COUNT).map(|_| UnsafeCell::new(())).collect(),
            elsewhere: AtomicU64::new(0),
            table: AtomicU64::new(0),
            history: Mutex::default(),
            batch_history: Mutex::default(),
            broken,
            is_memory,
        }
    }

    /// Returns the live entries that a power loss would leave in the line: signature and position.
    pub(super) fn durable_entries(&self) -> impl Iterator<Item = (u64, Position)> {
        let entries = self.history.lock().unwrap().durable();
        let entries = entries.into_iter().map(|entry| (entry.signature, Position::from_word(entry.position)));
        entries.filter(|(_, position)| position.is_live())
    }

    /// Returns the words of the entries, and the batch word, that a power loss would leave.
    pub(super) fn durable_words(&self) -> ([(u64, Position); ENTRY_COUNT], u64) {
        let entries = self.history.lock().unwrap().durable();
        let entries = entries.map(|entry| (entry.signature, Position::from_word(entry.position)));
        (entries, self.batch_history.lock().unwrap().durable()[0].position)
    }

    /// Returns the word at `at`, if it is modelled.
    fn modelled(&self, at: Offset) -> Option<(&AtomicU64, Word)> {
        let words = (0..ENTRY_COUNT).flat_map(|i| {
            let slot = slot(self.line, i as u64);
            let signature = (slot.signature, &self.signatures[i], Word::Signature(i));
            [signature, (slot.position, &self.positions[i], Word::Position(i))]
        });
        let batch = (batch_word(0), &self.batch, Word::Batch);
        words.into_iter().chain([batch]).find(|(offset, ..)| *offset == at).map(|(_, atomic, word)| (atomic, word))
    }

    fn watched(&self, at: Offset) -> &UnsafeCell<()> {
        &self.items[(at.0 / ITEM_BYTES % ITEM_COUNT) as usize]
    }

    fn flushed_is_durable(&self) {
        for history in [&self.history, &self.batch_history] {
            history.lock().unwrap().wait();
        }
    }

    /// Makes everything that the caller did before visible to a thread that calls this later.
    fn use_elsewhere(&self) {
        self.elsewhere.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the history of the word's line.
    fn history(&self, word: Word) -> MutexGuard<'_, History> {
        let history = if matches!(word, Word::Batch) { &self.batch_history } else { &self.history };
        history.lock().unwrap()
    }
}

// SAFETY: everything except the cells may be shared, and the cells hold nothing.
unsafe impl Sync for Modelled {}

// SAFETY: the memory is the inner medium's, and so is every promise about it; modelled words are never reached
// through it.
unsafe impl Bytes for Modelled {
    fn base(&self) -> NonNull<u8> {
        self.sim.base()
    }

    fn len_bytes(&self) -> u64 {
        self.sim.len_bytes()
    }

    /// A modelled store is a swap. Loom does not order a plain store after an exchange that the thread did not see,
    /// and then lets either be the last, although no store can come between the exchange and the word that it
    /// replaced.
    fn store(&self, at: Offset, value: u64, ordering: Ordering) {
        let Some((atomic, word)) = self.modelled(at) else {
            return self.sim.store(at, value, ordering);
        };
        atomic.swap(value, ordering);
        if matches!(word, Word::Batch) && value == 0 {
            // The batch is about to be removed from the table.
            self.table.fetch_add(1, Ordering::AcqRel);
        }
        let mut history = self.history(word);
        match word {
            Word::Signature(entry) => history.store_signature(entry, value),
            Word::Position(entry) => history.store_position(entry, Position::from_word(value)),
            Word::Batch => history.store_batch(value),
        }
    }

    fn load(&self, at: Offset, ordering: Ordering) -> u64 {
        let Some((atomic, word)) = self.modelled(at) else { return self.sim.load(at, ordering) };
        let value = atomic.load(ordering);
        if matches!(word, Word::Position(_)) && Position::from_word(value).is_in_batch() {
            // The table is read next, before another thread runs.
            self.table.fetch_or(0, Ordering::AcqRel);
        }
        value
    }

    fn acquire(&self) {
        loom::sync::atomic::fence(Ordering::Acquire);
    }

    fn match4(&self, at: Offset, word: u64) -> u32 {
        if at != self.line {
            self.use_elsewhere();
        }
        let matches = |i: u64| u32::from(self.load(at.plus(8 * i), Ordering::Relaxed) == word) << i;
        (0..4).map(matches).sum()
    }

    fn compare_exchange(&self, at: Offset, current: u64, new: u64) -> Result<u64, u64> {
        let Some((atomic, word)) = self.modelled(at) else { return self.sim.compare_exchange(at, current, new) };
        let replaced = atomic.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)?;
        if let Word::Position(entry) = word {
            let [from, to] = [current, new].map(Position::from_word);
            self.history(word).exchange_position(entry, from, to);
        }
        Ok(replaced)
    }

    unsafe fn write(&self, at: Offset, bytes: &[u8]) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.sim.write(at, bytes) }
    }

    unsafe fn stream(&self, at: Offset, parts: &[&[u8]]) {
        match parts.concat().len() as u64 {
            SEGMENT_BYTES => self.use_elsewhere(),
            ITEM_BYTES => self.watched(at).with_mut(|_| ()),
            // A batch's record, which only opening reads.
            _ => {}
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { self.sim.stream(at, parts) }
    }

    unsafe fn bytes(&self, span: Span) -> Result<&[u8], MediumError> {
        self.watched(span.start).with(|_| ());
        // SAFETY: the caller's promise, passed on.
        unsafe { self.sim.bytes(span) }
    }
}

impl Persist for Modelled {
    fn durability(&self) -> Durability {
        self.sim.durability()
    }

    /// Writes back the line as it is now, so that the flush has its place among the changes of the word.
    fn flush(&self, span: Span) {
        match self.modelled(span.start) {
            Some((atomic, word)) => {
                atomic.fetch_or(0, Ordering::Relaxed);
                self.history(word).flush();
            }
            None => self.sim.flush(span),
        }
    }

    fn publish(&self, words: &[(Offset, u64)], _key: u64) -> Taken {
        words.iter().for_each(|&(at, word)| self.store(at, word, Ordering::Release));
        let last = words.last().expect("something is published").0;
        if self.modelled(last).is_none() {
            self.use_elsewhere();
        }
        self.flush(last.span(8));
        Taken::Yes
    }

    fn order(&self) {
        self.sim.order();
        self.flushed_is_durable();
    }

    fn commit(&self, level: Level) -> Ticket {
        self.sim.commit(level);
        if self.is_memory {
            self.flushed_is_durable();
        }
        Ticket(u64::from(!self.is_memory))
    }

    fn wait(&self, ticket: Ticket) -> Result<(), MediumError> {
        self.flushed_is_durable();
        self.sim.wait(ticket)
    }
}

impl Acknowledge for Modelled {}

impl Residency for Modelled {}

impl Space for Modelled {
    fn grow(&self, to_bytes: u64) -> Result<(), MediumError> {
        self.sim.grow(to_bytes)
    }
}

impl Medium for Modelled {
    fn name(&self) -> &'static str {
        "modelled"
    }

    fn breaks(&self, canary: Canary) -> bool {
        self.broken == Some(canary)
    }
}
