//! Copies that another thread writes than their writer (Rewo-Hash paper, section III.E: the synchronisation thread and its signal).
//!
//! A write that has begun, and so has hidden its key's copy, may hand the new one over before the store publishes: the writer puts the
//! copy into a *signal*, some lines of words, and goes on in the store. A thread that serves the table takes the request and writes the copy,
//! which stays hidden. When the item is durable, the writer looks at the signal and shows the copy (step 4 of the module above).
//!
//! | a signal is | changed by | the words are touched by |
//! |---|---|---|
//! | free | a writer: claimed | nobody |
//! | claimed | the same: incomplete | the same |
//! | incomplete | a serving thread: taken; the writer: free, and writes the copy itself | nobody |
//! | taken | the serving thread: complete, or refused | the serving thread |
//! | complete, refused | the writer: free | nobody |
//!
//! # Coherence
//! The copy is written under the bucket's lock, if the writer's write is alone there, and shown by the writer if that is still so: nothing
//! was written to the bucket in between but for this write. Until then the copy is hidden, since the item may not be durable yet (the
//! paper's copy is readable by then). A serving thread that has taken a request is waited for, whatever became of the write: so nothing is
//! written for a write that has ended.
//!
//! # Waiting
//! A writer waits for a copy that is being written, and for nothing else: a request that no thread has taken is taken back. So no thread
//! has to be awake, or alive; the unwinding of one that dies while writing says *refused*. A serving thread waits for a bucket's lock alone,
//! and has no lock of the store, nor the store's memory: a crash finds in the region what there would be without such threads.
//!
//! Removals, the keys of batches and copies of more than 448 bytes are not handed over: their writers do what is to be done.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use pmem::Backoff;
use word::Word;

use super::copy::Own;
use super::counts::Counted;
use super::lines::{LINE_WORDS, Line, Lines};
use super::{CachedTable, LookupKey, NewCopy};

/// Writers that can have handed something over at once; others write their copies themselves.
const SIGNAL_COUNT: usize = 16;
/// A signal's lines: its state and how many writes had begun, then the copy.
const SIGNAL_LINES: usize = 8;
/// The longest copy that is handed over.
pub(super) const HANDED_WORDS_MAX: usize = (SIGNAL_LINES - 1) * LINE_WORDS;

const FREE: u64 = 0;
const CLAIMED: u64 = 1;
const INCOMPLETE: u64 = 2;
const TAKEN: u64 = 3;
const COMPLETE: u64 = 4;
const REFUSED: u64 = 5;

/// All signals of a table.
pub(super) struct Signals<W> {
    lines: Lines<W>,
}

/// One of them.
pub(super) struct Signal<'a, W> {
    state: &'a W,
    begun: &'a W,
    lines: &'a Lines<W>,
    /// Where the copy lies in the lines, in words.
    place: usize,
}

/// A copy that was handed over. It has to be ended.
#[must_use]
pub(super) struct Handed<'a, W>(Signal<'a, W>);

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The table has it, hidden.
    Written,
    /// It is not there.
    Refused,
    /// Nobody has looked at it.
    TakenBack,
}

/// A request that a serving thread has taken; refused when it is dropped, unless it was completed.
pub(super) struct Taken<'a, W: Word> {
    signal: Signal<'a, W>,
    answer: u64,
}

impl<W: Word> Signals<W> {
    pub(super) fn new() -> Signals<W> {
        Signals::of(SIGNAL_COUNT)
    }

    pub(super) fn of(count: usize) -> Signals<W> {
        Signals { lines: Lines::own(count * SIGNAL_LINES) }
    }

    pub(super) fn line_count(&self) -> usize {
        self.lines.len()
    }

    fn count(&self) -> usize {
        self.lines.len() / SIGNAL_LINES
    }

    fn signal(&self, number: usize) -> Signal<'_, W> {
        let first = number * SIGNAL_LINES;
        let Line([state, begun, ..]) = &self.lines[first];
        Signal { state, begun, lines: &self.lines, place: (first + 1) * LINE_WORDS }
    }

    /// Hands a copy over for the write of its bucket that was the `begun`th; `None` if it is too long, or the thread's signal is in
    /// use.
    pub(super) fn hand_off(&self, key: LookupKey<'_>, copy: &NewCopy<'_>, begun: u64) -> Option<Handed<'_, W>> {
        let words = copy.words(key.bytes).filter(|&words| words <= HANDED_WORDS_MAX)?;
        let signal = self.signal(epoch::thread_index() % self.count());
        signal.state.compare_exchange(FREE, CLAIMED, Acquire, Relaxed).ok()?;
        signal.begun.store(begun, Relaxed);
        copy.write(signal.lines, signal.place, key, words);
        signal.state.store(INCOMPLETE, Release);
        Some(Handed(signal))
    }

    /// The request of a signal, if it has one that nobody has taken.
    pub(super) fn take(&self, number: usize) -> Option<Taken<'_, W>> {
        let signal = self.signal(number);
        let is_incomplete = signal.state.load(Relaxed) == INCOMPLETE;
        let is_mine = is_incomplete && signal.state.compare_exchange(INCOMPLETE, TAKEN, Acquire, Relaxed).is_ok();
        is_mine.then(|| Taken { signal, answer: REFUSED })
    }
}

impl<W: Word> Handed<'_, W> {
    /// Takes it back, or waits for the thread that has it.
    pub(super) fn end(self, relax: fn(&mut Backoff)) -> Ended {
        let Handed(Signal { state, .. }) = self;
        if state.compare_exchange(INCOMPLETE, FREE, Release, Relaxed).is_ok() {
            return Ended::TakenBack;
        }
        let mut backoff = Backoff::short();
        loop {
            let ended = match state.load(Acquire) {
                COMPLETE => Ended::Written,
                REFUSED => Ended::Refused,
                _ => {
                    relax(&mut backoff);
                    continue;
                }
            };
            state.store(FREE, Release);
            return ended;
        }
    }
}

impl<W: Word> Taken<'_, W> {
    /// How many writes of the bucket had begun with the writer's.
    pub(super) fn begun(&self) -> u64 {
        self.signal.begun.load(Relaxed)
    }

    /// What was handed over.
    pub(super) fn copy(&self) -> Own {
        Own::take(self.signal.lines, self.signal.place)
    }

    /// The copy is in the table, hidden.
    pub(super) fn complete(mut self) {
        self.answer = COMPLETE;
    }
}

impl<W: Word> Drop for Taken<'_, W> {
    fn drop(&mut self) {
        self.signal.state.store(self.answer, Release);
    }
}

impl<W: Word> CachedTable<W> {
    /// Writes the copies that were handed over and that no other thread has taken; how many there were.
    pub fn serve(&self) -> usize {
        let Some(signals) = self.signals.get() else { return 0 };
        (0..signals.count()).filter_map(|number| signals.take(number)).map(|request| self.serve_one(request)).count()
    }

    pub(super) fn serve_one(&self, request: Taken<'_, W>) {
        let own = request.copy();
        if self.write_hidden(own.key(), &own.copy(), request.begun()) {
            self.counts.count(Counted::Served);
            request.complete();
        }
    }
}
