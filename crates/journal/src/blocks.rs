//! Records the parts of the region's memory that are already loaded.
//!
//! # States
//! A block is *absent* until a thread claims it, *loading* while that thread fills the block, and *present* or
//! *lost* from then on.
//!
//! # Order
//! A thread that claims a block has exclusive access to the block's memory, fills it, and then stores the state
//! (Release). A thread that has loaded this state (Acquire) sees the block's bytes, and no thread fills it a second
//! time. A thread that finds a block that another thread is filling waits. The thread that settles the last block
//! learns that from the return value, and has seen all blocks settled (AcqRel on the count).

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};
use word::Word;

/// The content of a block's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum State {
    /// Zeros.
    Absent,
    /// Bytes that one thread is writing.
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

/// Returns a block's state. It is a byte because a large base has many blocks.
#[inline(always)]
fn state_of(word: &impl Word<u8>) -> State {
    State::of(word.load(Ordering::Acquire))
}

fn claim(word: &impl Word<u8>) -> bool {
    // Most blocks are present when the loader reaches them, and a load does not change the line.
    word.load(Ordering::Relaxed) == State::Absent as u8
        && word
            .compare_exchange(State::Absent as u8, State::Loading as u8, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
}

fn settle(words: &[impl Word<u8>], state: State) {
    words.iter().for_each(|word| word.store(state as u8, Ordering::Release));
}

/// Returns true if these blocks were the last.
fn take_settled(unsettled_count: &impl Word, count: u64) -> bool {
    unsettled_count.fetch_sub(count, Ordering::AcqRel) == count
}

/// The states of all blocks of a base.
#[derive(Debug)]
pub(crate) struct Blocks {
    states: Box<[AtomicU8]>,
    block_bytes: u64,
    len_bytes: u64,
    /// Number of blocks that are neither present nor lost.
    unsettled_count: AtomicU64,
    /// Held by a thread while it starts to wait for a block.
    waiting: Mutex<()>,
    settled: Condvar,
}

impl Blocks {
    /// Creates the blocks of `len_bytes`, all absent. The last one may be shorter.
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

    /// Returns the length of a block.
    pub(crate) fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Returns the total number of bytes.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the number of bytes in memory, or lost; the last block counts as a full one.
    pub(crate) fn settled_bytes(&self) -> u64 {
        let unsettled_bytes = self.unsettled_count.load(Ordering::Relaxed) * self.block_bytes;
        self.len_bytes.saturating_sub(unsettled_bytes)
    }

    /// Returns the blocks that hold bytes of `range`. Nothing behind the last block needs loading.
    pub(crate) fn touched_by(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.len_bytes).div_ceil(self.block_bytes);
        (range.start / self.block_bytes).min(end)..end
    }

    /// Returns the byte range of `blocks`.
    pub(crate) fn bytes_of(&self, blocks: Range<u64>) -> Range<u64> {
        blocks.start * self.block_bytes..(blocks.end * self.block_bytes).min(self.len_bytes)
    }

    pub(crate) fn state(&self, block: u64) -> State {
        state_of(&self.states[block as usize])
    }

    /// Returns true for only one caller, which fills the block and then settles it.
    pub(crate) fn claim(&self, block: u64) -> bool {
        claim(&self.states[block as usize])
    }

    /// Claims the first consecutive absent blocks of `among`, at most `count_max`.
    pub(crate) fn claim_run(&self, among: Range<u64>, count_max: u64) -> Option<Range<u64>> {
        let start = among.clone().find(|&block| self.claim(block))?;
        let past = among.end.min(start + count_max);
        let end = (start + 1..past).find(|&block| !self.claim(block)).unwrap_or(past);
        Some(start..end)
    }

    /// Ends a claim; returns true if no block is left to be loaded.
    pub(crate) fn settle(&self, blocks: Range<u64>, state: State) -> bool {
        settle(&self.states[blocks.start as usize..blocks.end as usize], state);
        // A thread that has found a block loading holds the lock until it waits.
        drop(self.waiting.lock());
        self.settled.notify_all();
        take_settled(&self.unsettled_count, blocks.end - blocks.start)
    }

    /// Waits until no thread fills the block; returns its state.
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
    fn runs_are_claimed_once() {
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
    fn range_touches_blocks_up_to_last() {
        let blocks = Blocks::absent(20, 8);
        let ranges = [0..1, 7..9, 8..16, 16..99, 20..99, 99..100];
        assert_eq!(ranges.map(|range| blocks.touched_by(range)), [0..1, 0..2, 1..2, 2..3, 2..3, 3..3]);
    }
}

/// Explores every interleaving of the thread that reads all blocks and of a thread that needs some, with the
/// reorderings that the memory model allows. Not run by Miri: loom switches stacks in assembly.
#[cfg(all(test, not(miri)))]
mod interleavings {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;
    use word::model::{Modelled, NoRelease, Unchanged, WeakenedByte, Weakening};

    use super::*;

    /// The content of a filled block.
    const FILLED: u64 = 7;

    struct World<W> {
        states: [WeakenedByte<W>; 2],
        memory: [UnsafeCell<u64>; 2],
        unsettled_count: Modelled,
        is_loaded: AtomicU64,
    }

    impl<W: Weakening> World<W> {
        fn new() -> World<W> {
            World {
                states: [0, 1].map(|_| WeakenedByte::new(State::Absent as u8)),
                memory: [0, 1].map(|_| UnsafeCell::new(0)),
                unsettled_count: Word::new(2),
                is_loaded: AtomicU64::new(0),
            }
        }

        fn bring(&self, block: usize) {
            if claim(&self.states[block]) {
                self.memory[block].with_mut(|memory| {
                    // SAFETY: the claim gives only this thread access to the block; the model checker objects if it
                    // does not.
                    let memory = unsafe { &mut *memory };
                    assert_eq!(*memory, 0, "it is filled a second time");
                    *memory = FILLED;
                });
                settle(&self.states[block..=block], State::Present);
                if take_settled(&self.unsettled_count, 1) {
                    self.is_loaded.store(1, Ordering::Release);
                }
            }
        }

        /// Reads the block if that is allowed.
        fn read(&self, block: usize) {
            if self.is_loaded.load(Ordering::Acquire) == 1 || state_of(&self.states[block]) == State::Present {
                // SAFETY: a present block is not filled again; the model checker objects if it is.
                self.memory[block].with(|memory| assert_eq!(unsafe { *memory }, FILLED));
            }
        }
    }

    fn loader_beside_reader<W: Weakening>() {
        loom::model(|| {
            let world = Arc::new(World::<W>::new());
            let loader = {
                let world = Arc::clone(&world);
                thread::spawn(move || (0..2).for_each(|block| world.bring(block)))
            };
            world.bring(1);
            world.read(0);
            world.read(1);
            loader.join().unwrap();
            assert_eq!(world.is_loaded.load(Ordering::Acquire), 1);
            (0..2).for_each(|block| world.read(block));
        });
    }

    #[test]
    fn present_block_shows_its_bytes() {
        loader_beside_reader::<Unchanged>();
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn state_that_is_not_released_is_caught() {
        loader_beside_reader::<NoRelease>();
    }
}
