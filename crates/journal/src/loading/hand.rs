//! The hand of the clock: the order in which pages are evicted.
//!
//! # Order
//! 1. Pages that a thread has read once (`once`), and that no thread has used since.
//! 2. Other pages, in the order of the hand: at its first pass a page becomes cold, and a page that no thread has used
//!    until a later pass is evicted. For a page of an index, that is the fifth later pass instead of the first, because
//!    every operation needs the index: a get whose index page is missing reads two pages.
//!
//! An index that uses more than 3/4 of the memory is not preferred: items would have no memory.
//!
//! All of this chooses pages, and changes no argument of `page_state`. The marks are hints: a mark that is lost or
//! late makes a page stay longer or shorter.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::page_state::State;

/// Passes that an unused page of an index outlives, in addition to the first.
const PASS_COUNT: u8 = 4;

/// The mark of a page of an index; the other bits are the number of passes that it outlives.
const IS_INDEX: u8 = 1 << 7;

/// Pages that were read once and are remembered: as many as two batches evict. The hand finds the others.
const ONCE_COUNT_MAX: usize = 4096;

/// The position of the hand. Its holder evicts.
#[derive(Debug, Default)]
pub(super) struct Hand {
    pub(super) page: u64,
    /// Pages of indexes in memory that this round has passed.
    index_count: u64,
}

/// The preference of pages.
#[derive(Debug)]
pub(super) struct Preference {
    /// A byte for each page, in memory that the kernel allocates on first use; 0 is a page of items.
    marks: Box<[AtomicU8]>,
    /// Pages of indexes in memory, as the last complete round of the hand has counted them.
    index_count: AtomicU64,
    is_index_preferred: AtomicBool,
    once: Mutex<VecDeque<u64>>,
}

impl Preference {
    pub(super) fn new(page_count: u64) -> Preference {
        let marks = Box::<[AtomicU8]>::new_zeroed_slice(page_count as usize);
        Preference {
            // SAFETY: a zero is an atomic byte.
            marks: unsafe { marks.assume_init() },
            index_count: 0.into(),
            is_index_preferred: true.into(),
            once: Mutex::default(),
        }
    }

    /// Notes whether a page is part of an index.
    pub(super) fn note(&self, page: u64, is_index: bool) {
        let Some(mark) = self.marks.get(page as usize) else { return };
        let wanted = if is_index { IS_INDEX | PASS_COUNT } else { 0 };
        // Most pages never have a mark, and a load allocates no memory.
        if mark.load(Ordering::Relaxed) & IS_INDEX != wanted & IS_INDEX {
            mark.store(wanted, Ordering::Relaxed);
        }
    }

    fn is_index(&self, page: u64) -> bool {
        self.marks[page as usize].load(Ordering::Relaxed) & IS_INDEX != 0
    }

    /// Returns true if a page that is read once need not stay longer than other pages.
    pub(super) fn yields(&self, page: u64) -> bool {
        !self.is_index(page) || !self.is_index_preferred.load(Ordering::Relaxed)
    }

    /// Returns the number of pages of indexes in memory, which is as old as the hand's last round.
    pub(super) fn index_count(&self) -> u64 {
        self.index_count.load(Ordering::Relaxed)
    }

    /// Remembers a page that was read once.
    pub(super) fn note_once(&self, page: u64) {
        let mut once = self.once.lock();
        if once.len() == ONCE_COUNT_MAX {
            once.pop_front();
        }
        once.push_back(page);
    }

    /// Returns a page that was read once.
    pub(super) fn next_once(&self) -> Option<u64> {
        self.once.lock().pop_front()
    }

    /// Begins a round of the hand, for which there is memory for `count_max` pages.
    pub(super) fn begin_round(&self, hand: &mut Hand, count_max: u64) {
        self.index_count.store(hand.index_count, Ordering::Relaxed);
        self.is_index_preferred.store(hand.index_count * 4 <= count_max * 3, Ordering::Relaxed);
        *hand = Hand::default();
    }

    /// Passes a page in this state; returns true if the page outlives the pass.
    pub(super) fn outlives(&self, hand: &mut Hand, page: u64, state: State) -> bool {
        if state <= State::Lost || !self.is_index(page) {
            return false;
        }
        hand.index_count += 1;
        let mark = &self.marks[page as usize];
        match mark.load(Ordering::Relaxed) & !IS_INDEX {
            _ if state != State::Cold => {
                mark.store(IS_INDEX | PASS_COUNT, Ordering::Relaxed);
                false
            }
            0 => false,
            _ if !self.is_index_preferred.load(Ordering::Relaxed) => false,
            left => {
                mark.store(IS_INDEX | (left - 1), Ordering::Relaxed);
                true
            }
        }
    }
}
