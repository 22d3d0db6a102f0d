//! Adaptive polling before sleeping.
//!
//! Sleeping and waking cost each side a system call, and if the sleeper's processor has gone idle, tens of microseconds
//! until it runs again. A poll of an unchanged position takes some nanoseconds, a poll of a socket less than one of
//! those system calls. So an end without data polls for about as long as a sleep costs, and then sleeps.
//!
//! # Rules
//! - Polls are counted and bounded: an end of an idle connection sleeps, and costs nothing.
//! - An end that has polled in vain polls half as often the next time. So little is lost if the other side answers
//!   slowly or has no processor. An end that has found data polls up to four times as often as that took, if that is
//!   more than before.
//! - Every `WHOLE_EVERY_COUNT`-th wait has full length. Otherwise two sleeping ends would keep sleeping: each wait
//!   takes as long as waking the other, which is longer than the shortened polling of an end that was often woken late.
//! - A long wait yields the processor several times, but not before most answers have arrived: if there are more
//!   threads than processors, the other side may be waiting for one.
//! - A process with one processor does not poll: the other side could not run in that time.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::{available_parallelism, yield_now};

/// The shortest wait, as a fraction of a full one: about the cost of the sleeping system call.
const WHOLE_PER_LEAST: u32 = 64;
/// Number of yields in a full wait: each takes some microseconds.
const WHOLE_PER_YIELD: u32 = 16;
/// Number of waits in vain after which one has its full length again.
const WHOLE_EVERY_COUNT: u32 = 16;

/// True if another thread can run while this one polls.
static IS_OF_USE: LazyLock<bool> = LazyLock::new(|| available_parallelism().map_or(1, NonZero::get) > 1);

/// The state of adaptive polling.
#[derive(Debug)]
pub struct PollBudget {
    whole_count: u32,
    /// Of one wait.
    count: u32,
    made_count: u32,
    fruitless_count: u32,
}

impl PollBudget {
    /// Creates waits of at most `whole_count` polls. They should take about 50 us, the time to wake a thread whose
    /// processor is idle.
    #[must_use]
    pub fn new(whole_count: u32) -> PollBudget {
        PollBudget::of(if *IS_OF_USE { whole_count } else { 0 })
    }

    fn of(whole_count: u32) -> PollBudget {
        PollBudget { whole_count, count: whole_count, made_count: 0, fruitless_count: 0 }
    }

    /// Called when no data was found: returns whether to poll again. If not, the wait is over, and the next one is
    /// shorter.
    pub fn try_again(&mut self) -> bool {
        let is_whole = self.fruitless_count % WHOLE_EVERY_COUNT == WHOLE_EVERY_COUNT - 1;
        if self.made_count < if is_whole { self.whole_count } else { self.count } {
            self.made_count += 1;
            if self.made_count.is_multiple_of(self.whole_count / WHOLE_PER_YIELD) {
                yield_now();
            }
            return true;
        }
        self.fruitless_count = self.fruitless_count.wrapping_add(1);
        self.made_count = 0;
        self.count = (self.count / 2).max(self.whole_count / WHOLE_PER_LEAST);
        false
    }

    /// Ends the wait, because data was found.
    pub fn reset(&mut self) {
        self.count = self.count.max(self.made_count.saturating_mul(4)).min(self.whole_count);
        self.made_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of polls in a wait in vain.
    fn vain(budget: &mut PollBudget) -> u32 {
        std::iter::repeat_with(|| budget.try_again()).take_while(|goes_on| *goes_on).count() as u32
    }

    #[test]
    fn idle_polls_shrink_to_a_minimum() {
        let mut budget = PollBudget::of(1024);
        assert_eq!(vain(&mut budget), 1024);
        let next: Vec<u32> = (0..7).map(|_| vain(&mut budget)).collect();
        assert_eq!(next, [512, 256, 128, 64, 32, 16, 16]);
        let later: Vec<u32> = (0..WHOLE_EVERY_COUNT).map(|_| vain(&mut budget)).collect();
        assert_eq!(later.iter().filter(|count| **count == 1024).count(), 1, "{later:?}");
        assert_eq!(later.iter().filter(|count| **count == 16).count() as u32, WHOLE_EVERY_COUNT - 1, "{later:?}");
    }

    /// Finds data after `made` polls.
    fn found(budget: &mut PollBudget, made: u32) {
        assert!((0..made).all(|_| budget.try_again()));
        budget.reset();
    }

    #[test]
    fn waits_adapt_to_response_time() {
        let mut budget = PollBudget::of(1024);
        (0..8).for_each(|_| _ = vain(&mut budget));
        found(&mut budget, 3);
        found(&mut budget, 10);
        assert_eq!(vain(&mut budget), 40);
        while vain(&mut budget) != 16 {}
        // An end that is always woken late polls long once in a while, and then again.
        while budget.fruitless_count % WHOLE_EVERY_COUNT != WHOLE_EVERY_COUNT - 1 {
            vain(&mut budget);
        }
        found(&mut budget, 300);
        budget.fruitless_count += 1;
        found(&mut budget, 300);
        assert_eq!(vain(&mut budget), 1024);
    }

    #[test]
    fn one_processor_is_the_other_sides() {
        let mut budget = PollBudget::of(0);
        budget.reset();
        assert!((0..2 * WHOLE_EVERY_COUNT).all(|_| vain(&mut budget) == 0));
    }
}
