//! The contents of a line after a power loss: the states that the line went through, and which of them was made
//! durable.

use std::collections::HashMap;

use loom::thread::{ThreadId, current};

use super::modelled::ENTRY_COUNT;
use crate::Position;

/// The words of an entry, and the number of publications there.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) signature: u64,
    pub(super) position: u64,
    publication: u64,
}

/// One state of the line; a later one has a higher stamp.
#[derive(Clone, Copy, Default)]
struct State {
    stamp: u64,
    entries: [Entry; ENTRY_COUNT],
}

/// The line as it is, as it would be after a power loss, and the state that each thread has flushed but not waited
/// for yet.
///
/// Every change is recorded immediately, so the states have the same order as the changes of the words.
#[derive(Default)]
pub(super) struct History {
    now: State,
    durable: State,
    flushed: HashMap<ThreadId, State>,
}

impl History {
    pub(super) fn store_signature(&mut self, entry: usize, word: u64) {
        self.now.stamp += 1;
        self.now.entries[entry].signature = word;
    }

    /// Records the store of a word, which publishes something, or clears marks of a published word.
    pub(super) fn store_position(&mut self, entry: usize, to: Position) {
        let from = Position::from_word(self.now.entries[entry].position);
        if !to.is_undecided() && !from.is_in_batch() {
            return self.exchange_position(entry, from, to);
        }
        self.publish(entry, to.word());
    }

    pub(super) fn store_batch(&mut self, word: u64) {
        self.publish(0, word);
    }

    fn publish(&mut self, entry: usize, word: u64) {
        self.now.stamp += 1;
        let entry = &mut self.now.entries[entry];
        (entry.position, entry.publication) = (word, entry.publication + 1);
    }

    /// Records the exchange of a word, which publishes nothing, but may clear FRESH.
    ///
    /// # Panics
    /// Panics if it cleared FRESH and the last publication is not durable.
    pub(super) fn exchange_position(&mut self, entry: usize, from: Position, to: Position) {
        let published = self.now.entries[entry].publication;
        if from.is_fresh() && !to.is_fresh() {
            assert_eq!(self.durable.entries[entry].publication, published, "settled before it was durable");
        }
        self.now.stamp += 1;
        self.now.entries[entry].position = to.word();
    }

    /// Records that this thread starts to write back the line.
    pub(super) fn flush(&mut self) {
        self.flushed.insert(current().id(), self.now);
    }

    /// Records that everything that this thread flushed is durable, unless a later state is already.
    pub(super) fn wait(&mut self) {
        let flushed = self.flushed.remove(&current().id());
        self.durable = flushed.into_iter().chain([self.durable]).max_by_key(|state| state.stamp).unwrap_or_default();
    }

    /// Returns the entries that recovery would find.
    pub(super) fn durable(&self) -> [Entry; ENTRY_COUNT] {
        self.durable.entries
    }
}
