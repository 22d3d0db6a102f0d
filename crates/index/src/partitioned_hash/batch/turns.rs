//! Turns: the exclusive use of one of the batch words, until it is 0 again.

use super::Batches;

/// The use of a batch word, which is released on drop.
#[derive(Debug)]
#[must_use]
pub struct Turn<'a> {
    batches: &'a Batches,
    pub(super) number: usize,
}

impl Batches {
    /// Waits until a batch word is free. The caller holds no lock.
    pub(in crate::partitioned_hash) fn turn(&self) -> Turn<'_> {
        let mut taken = self.taken.lock();
        while *taken == u16::MAX {
            self.returned.wait(&mut taken);
        }
        let number = taken.trailing_ones() as usize;
        *taken |= 1 << number;
        Turn { batches: self, number }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.batches.taken.lock() &= !(1 << self.number);
        self.batches.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use heap::layout::BATCH_WORD_COUNT;

    use super::*;

    #[test]
    fn the_seventeenth_waits_for_one_of_sixteen() {
        let batches = Batches::default();
        let mut turns: Vec<_> = (0..BATCH_WORD_COUNT).map(|_| batches.turn()).collect();
        let mut numbers: Vec<_> = turns.iter().map(|turn| turn.number).collect();
        numbers.dedup();
        assert_eq!(numbers.len(), BATCH_WORD_COUNT);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let last = scope.spawn(|| {
                let turn = batches.turn();
                assert!(is_over.load(Ordering::Acquire), "it did not wait");
                turn.number
            });
            is_over.store(true, Ordering::Release);
            drop(turns.remove(7));
            assert_eq!(last.join().unwrap(), 7);
        });
    }
}
