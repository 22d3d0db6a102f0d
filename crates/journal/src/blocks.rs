//! Which parts of the region's memory have their bytes yet.
//!
//! # States
//! A block is *absent* until somebody claims it, *loading* while he fills it, and *present* or *lost* from then on.
//!
//! # Order
//! Who claims a block has its memory for himself. He fills it, and then stores the state (Release); whoever has loaded that
//! (Acquire) sees the block's bytes, and nobody fills it a second time. Who meets a block that another one fills waits. The
//! last who settles a block is told so, and has seen all of them settled (AcqRel on the count).

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

/// What a block's memory holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// Zeros.
    Absent,
    /// What one thread is writing to it.
    Loading,
    /// The region's bytes.
    Present,
    /// Zeros: the base could not be read there.
    Lost,
}

impl State {
    fn of(byte: u8) -> State {
        [State::Absent, State::Loading, State::Present, State::Lost][byte as usize]
    }
}

/// The states of all blocks of what a base holds.
#[derive(Debug)]
pub(crate) struct Blocks {
    states: Box<[AtomicU8]>,
    block_bytes: u64,
    len_bytes: u64,
    /// How many are neither present nor lost.
    unsettled_count: AtomicU64,
    /// Who waits for a block does so under this.
    waiting: Mutex<()>,
    settled: Condvar,
}

impl Blocks {
    /// The blocks of `len_bytes`, all absent. The last one may be shorter.
    pub(crate) fn absent(len_bytes: u64, block_bytes: u64) -> Blocks {
        let count = len_bytes.div_ceil(block_bytes);
        Blocks {
            states: (0..count).map(|_| AtomicU8::new(State::Absent as u8)).collect(),
            block_bytes,
            len_bytes,
            unsettled_count: AtomicU64::new(count),
            waiting: Mutex::new(()),
            settled: Condvar::new(),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.states.len() as u64
    }

    /// How many bytes there are.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// How many are in memory, or lost; the last block counts as a whole one.
    pub(crate) fn settled_bytes(&self) -> u64 {
        let unsettled_bytes = self.unsettled_count.load(Ordering::Relaxed) * self.block_bytes;
        self.len_bytes.saturating_sub(unsettled_bytes)
    }

    /// The blocks that hold bytes of `range`. Behind the last one there is nothing to be loaded.
    pub(crate) fn touched_by(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.len_bytes).div_ceil(self.block_bytes);
        (range.start / self.block_bytes).min(end)..end
    }

    /// The bytes of `blocks`.
    pub(crate) fn bytes_of(&self, blocks: Range<u64>) -> Range<u64> {
        blocks.start * self.block_bytes..(blocks.end * self.block_bytes).min(self.len_bytes)
    }

    pub(crate) fn state(&self, block: u64) -> State {
        State::of(self.states[block as usize].load(Ordering::Acquire))
    }

    /// True for one caller alone, who fills the block and then settles it.
    pub(crate) fn claim(&self, block: u64) -> bool {
        let state = &self.states[block as usize];
        // Most are present when the loader comes by: a load changes no line.
        state.load(Ordering::Relaxed) == State::Absent as u8
            && state
                .compare_exchange(State::Absent as u8, State::Loading as u8, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Claims the first blocks of `among` that follow one another and are absent, at most `count_max`.
    pub(crate) fn claim_run(&self, among: Range<u64>, count_max: u64) -> Option<Range<u64>> {
        let start = among.clone().find(|&block| self.claim(block))?;
        let past = among.end.min(start + count_max);
        let end = (start + 1..past).find(|&block| !self.claim(block)).unwrap_or(past);
        Some(start..end)
    }

    /// Ends what a claim began; true if nothing is left to be loaded.
    pub(crate) fn settle(&self, blocks: Range<u64>, state: State) -> bool {
        for block in blocks.clone() {
            self.states[block as usize].store(state as u8, Ordering::Release);
        }
        // Whoever has found a block loading holds the lock until he waits.
        drop(self.waiting.lock());
        self.settled.notify_all();
        let count = blocks.end - blocks.start;
        self.unsettled_count.fetch_sub(count, Ordering::AcqRel) == count
    }

    /// Returns once nobody fills the block, with its state.
    pub(crate) fn wait(&self, block: u64) -> State {
        let mut waiting = self.waiting.lock();
        loop {
            match self.state(block) {
                State::Loading => self.settled.wait(&mut waiting),
                state => return state,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_claimed_once_and_end_at_what_others_have() {
        let blocks = Blocks::absent(9 * 8 + 1, 8);
        assert_eq!((blocks.count(), blocks.bytes_of(8..10)), (10, 64..73));
        assert!(blocks.claim(4) && !blocks.claim(4));
        assert_eq!(blocks.claim_run(0..10, 3), Some(0..3));
        assert_eq!(blocks.claim_run(0..10, 3), Some(3..4));
        assert_eq!(blocks.claim_run(0..10, 9), Some(5..10));
        assert_eq!(blocks.claim_run(0..10, 9), None);
        let ends: Vec<bool> =
            [0..3, 5..10, 3..4, 4..5].map(|run| blocks.settle(run, State::Present)).into_iter().collect();
        assert_eq!((ends, blocks.settled_bytes()), (vec![false, false, false, true], 73));
    }

    #[test]
    fn a_range_touches_blocks_up_to_the_last() {
        let blocks = Blocks::absent(20, 8);
        let ranges = [0..1, 7..9, 8..16, 16..99, 20..99, 99..100];
        assert_eq!(ranges.map(|range| blocks.touched_by(range)), [0..1, 0..2, 1..2, 2..3, 2..3, 3..3]);
    }
}
