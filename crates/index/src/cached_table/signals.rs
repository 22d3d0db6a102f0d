//! Lets a second thread write a copy on behalf of the writer (Rewo-Hash paper, section III.E: the synchronisation
//! thread and its signal).
//!
//! A write that has begun, and so has hidden its key's copy, may hand the new copy over before the store publishes.
//! The writer puts the copy into a *signal*, some lines of words, and continues in the store. A thread that serves
//! the table takes the request and writes the copy, which stays hidden. When the item is durable, the writer checks
//! the signal and shows the copy (step 4 of the parent module).
//!
//! | state of a signal | changed by | words used by |
//! |---|---|---|
//! | free | a writer: to claimed | no thread |
//! | claimed | the same writer: to incomplete | the writer |
//! | incomplete | a serving thread: to taken; or the writer: to free, and writes the copy itself | no thread |
//! | taken | the serving thread: to complete or refused | the serving thread |
//! | complete, refused | the writer: to free | no thread |
//!
//! # Coherence
//! The serving thread writes the copy under the bucket's lock, if the write is the only one in the bucket. The
//! writer shows it if that is still so: no other write of the bucket began in between. Until then the copy is
//! hidden, because the item may not be durable yet. (In the paper the copy is readable by then.) A writer waits for
//! a serving thread that has taken its request, whatever happened to the write. So no copy is written for a write
//! that has ended.
//!
//! # Waiting
//! A writer waits only for a copy that is being written, and takes back a request that no thread has taken. So no
//! serving thread needs to be awake, or alive; if a thread dies while writing, the unwinding sets *refused*. A
//! serving thread waits only for a bucket's lock. Serving threads hold no lock of the store and do not use the
//! store's memory, so a crash leaves the region in the same state as without such threads.
//!
//! Removals, the keys of batches and copies of more than 448 bytes are not handed over: their writers do the work.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use pmem::Backoff;
use word::Word;

use super::copy::NewCopy;
use super::copy::{HANDED_WORDS_MAX, Own};
use super::key::LookupKey;
use super::lines::{LINE_WORDS, Line, Lines};

/// The number of writers that can hand over a copy at the same time. Further writers write their copies themselves.
const SIGNAL_COUNT: usize = 16;
/// The lines of a signal: its state and the number of begun writes, then the copy.
const SIGNAL_LINES: usize = 1 + HANDED_WORDS_MAX / LINE_WORDS;

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

/// One signal.
pub(super) struct Signal<'a, W> {
    state: &'a W,
    begun: &'a W,
    lines: &'a Lines<W>,
    /// The place of the copy in the lines, in words.
    place: usize,
}

/// A copy that was handed over. The writer must end it.
#[must_use]
pub(super) struct Handed<'a, W>(Signal<'a, W>);

/// The result of handing a copy over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The table has the copy, hidden.
    Written,
    /// The table does not have the copy.
    Refused,
    /// No thread had taken it.
    TakenBack,
}

/// A request that a serving thread has taken. Dropping it refuses the request, unless it was completed.
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

    pub(super) fn count(&self) -> usize {
        self.lines.len() / SIGNAL_LINES
    }

    fn signal(&self, number: usize) -> Signal<'_, W> {
        let first = number * SIGNAL_LINES;
        let Line([state, begun, ..]) = &self.lines[first];
        Signal { state, begun, lines: &self.lines, place: (first + 1) * LINE_WORDS }
    }

    /// Hands a copy over for the write of its bucket that was number `begun`. Returns `None` if the copy is too
    /// long, or if the thread's signal is in use.
    pub(super) fn hand_off(&self, key: LookupKey<'_>, copy: &NewCopy<'_>, begun: u64) -> Option<Handed<'_, W>> {
        let words = copy.words(key.bytes).filter(|&words| words <= HANDED_WORDS_MAX)?;
        let signal = self.signal(epoch::thread_index() % self.count());
        signal.state.compare_exchange(FREE, CLAIMED, Acquire, Relaxed).ok()?;
        signal.begun.store(begun, Relaxed);
        copy.write(signal.lines, signal.place, key, words);
        signal.state.store(INCOMPLETE, Release);
        Some(Handed(signal))
    }

    /// Takes the request of a signal, if it has one that no thread has taken.
    pub(super) fn take(&self, number: usize) -> Option<Taken<'_, W>> {
        let signal = self.signal(number);
        let is_incomplete = signal.state.load(Relaxed) == INCOMPLETE;
        let is_mine = is_incomplete && signal.state.compare_exchange(INCOMPLETE, TAKEN, Acquire, Relaxed).is_ok();
        is_mine.then(|| Taken { signal, answer: REFUSED })
    }
}

impl<W: Word> Handed<'_, W> {
    /// Takes the copy back, or waits for the thread that has taken it.
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
    /// Returns the number of writes of the bucket that had begun, including the writer's.
    pub(super) fn begun(&self) -> u64 {
        self.signal.begun.load(Relaxed)
    }

    /// Returns the copy that was handed over.
    pub(super) fn copy(&self) -> Own {
        Own::take(self.signal.lines, self.signal.place)
    }

    /// Completes the request: the copy is in the table, hidden.
    pub(super) fn complete(mut self) {
        self.answer = COMPLETE;
    }
}

impl<W: Word> Drop for Taken<'_, W> {
    fn drop(&mut self) {
        self.signal.state.store(self.answer, Release);
    }
}
