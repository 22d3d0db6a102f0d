//! What a loss of power would leave of a line: the states that the line went through, and which of them was made durable.

use std::collections::HashMap;

use loom::thread::{ThreadId, current};

use super::modelled::ENTRY_COUNT;
use crate::Position;

/// An entry's words, and how often an entry was published there.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) signature: u64,
    pub(super) position: u64,
    publication: u64,
}

/// One state of the line; a later one has the higher stamp.
#[derive(Clone, Copy, Default)]
struct State {
    stamp: u64,
    entries: [Entry; ENTRY_COUNT],
}

/// The line as it is, as it would be after a loss of power, and what each thread flushed but did not wait for yet.
///
/// It is told of every change at once, so that the states stand in the order in which the words changed.
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

    pub(super) fn store_position(&mut self, entry: usize, word: u64) {
        self.now.stamp += 1;
        let entry = &mut self.now.entries[entry];
        (entry.position, entry.publication) = (word, entry.publication + 1);
    }

    /// A word was exchanged: nothing is published thereby, but FRESH may have gone.
    ///
    /// # Panics
    /// If it has, and what was published last is not durable.
    pub(super) fn exchange_position(&mut self, entry: usize, from: Position, to: Position) {
        let published = self.now.entries[entry].publication;
        if from.is_fresh() && !to.is_fresh() {
            assert_eq!(self.durable.entries[entry].publication, published, "settled before it was durable");
        }
        self.now.stamp += 1;
        self.now.entries[entry].position = to.word();
    }

    /// This thread starts to write back the line.
    pub(super) fn flush(&mut self) {
        self.flushed.insert(current().id(), self.now);
    }

    /// What this thread flushed is durable, unless something later is already.
    pub(super) fn wait(&mut self) {
        let flushed = self.flushed.remove(&current().id());
        self.durable = flushed.into_iter().chain([self.durable]).max_by_key(|state| state.stamp).unwrap_or_default();
    }

    /// What recovery would find.
    pub(super) fn durable(&self) -> [Entry; ENTRY_COUNT] {
        self.durable.entries
    }
}
