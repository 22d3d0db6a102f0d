//! How long an end looks before it sleeps.
//!
//! A sleep and its end are a system call of each side, and where the sleeper's processor has gone idle, tens of microseconds until that is
//! back. A look at a place that has not changed is some nanoseconds, one at a socket less than one of those calls. So an end that finds
//! nothing looks on for about as long as a sleep costs, and sleeps then.
//!
//! # Rules
//! - Looks are counted and bounded: an end of a connection on which nothing is said sleeps, and costs nothing.
//! - An end that has looked in vain looks half as often the next time. Where the other side needs long for its answers, or has no
//!   processor, little is lost so. An end that has found something looks four times as long as that took, if that is more than before.
//! - One wait in so many has its whole length. Otherwise two ends that sleep would go on to: each waits for as long as it takes to wake the
//!   other, which is longer than an end looks that was woken too late often.
//! - Others get the processor some times in a long wait, and not before most answers are there: where threads are more than processors, the
//!   other side may be one of those.
//! - A process that has one processor does not look: the other side cannot go on meanwhile.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::{available_parallelism, yield_now};

/// A wait in vain is not made shorter than this part of a whole one: about what the call costs that sleeps.
const WHOLE_PER_LEAST: u32 = 64;
/// Others get the processor this often in a whole wait: each some microseconds.
const WHOLE_PER_YIELD: u32 = 16;
/// Waits in vain until one has its whole length again.
const WHOLE_EVERY_COUNT: u32 = 16;

/// Whether another thread can run beside the one that looks.
static IS_OF_USE: LazyLock<bool> = LazyLock::new(|| available_parallelism().map_or(1, NonZero::get) > 1);

/// How often one looks in the wait that it is in, or comes to.
#[derive(Debug)]
pub struct PollBudget {
    whole_count: u32,
    /// Of a wait.
    count: u32,
    made_count: u32,
    vain_count: u32,
}

impl PollBudget {
    /// Waits of so many looks at most: of as many as take about 50 us, as long as it takes to wake a thread whose processor is idle.
    #[must_use]
    pub fn new(whole_count: u32) -> PollBudget {
        PollBudget::of(if *IS_OF_USE { whole_count } else { 0 })
    }

    fn of(whole_count: u32) -> PollBudget {
        PollBudget { whole_count, count: whole_count, made_count: 0, vain_count: 0 }
    }

    /// Nothing was found: whether to look again. If not, the wait is over, and the next one is shorter.
    pub fn try_again(&mut self) -> bool {
        let is_whole = self.vain_count % WHOLE_EVERY_COUNT == WHOLE_EVERY_COUNT - 1;
        if self.made_count < if is_whole { self.whole_count } else { self.count } {
            self.made_count += 1;
            if self.made_count.is_multiple_of(self.whole_count / WHOLE_PER_YIELD) {
                yield_now();
            }
            return true;
        }
        self.vain_count = self.vain_count.wrapping_add(1);
        self.made_count = 0;
        self.count = (self.count / 2).max(self.whole_count / WHOLE_PER_LEAST);
        false
    }

    /// Something was found: the wait is over.
    pub fn reset(&mut self) {
        self.count = self.count.max(self.made_count.saturating_mul(4)).min(self.whole_count);
        self.made_count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a wait looks that finds nothing.
    fn vain(budget: &mut PollBudget) -> u32 {
        std::iter::repeat_with(|| budget.try_again()).take_while(|goes_on| *goes_on).count() as u32
    }

    #[test]
    fn waits_are_bounded_and_short_where_nothing_comes() {
        let mut budget = PollBudget::of(1024);
        assert_eq!(vain(&mut budget), 1024);
        let next: Vec<u32> = (0..7).map(|_| vain(&mut budget)).collect();
        assert_eq!(next, [512, 256, 128, 64, 32, 16, 16]);
        let later: Vec<u32> = (0..WHOLE_EVERY_COUNT).map(|_| vain(&mut budget)).collect();
        assert_eq!(later.iter().filter(|count| **count == 1024).count(), 1, "{later:?}");
        assert_eq!(later.iter().filter(|count| **count == 16).count() as u32, WHOLE_EVERY_COUNT - 1, "{later:?}");
    }

    /// After `made` looks.
    fn found(budget: &mut PollBudget, made: u32) {
        assert!((0..made).all(|_| budget.try_again()));
        budget.reset();
    }

    #[test]
    fn waits_are_as_long_as_what_is_found_takes() {
        let mut budget = PollBudget::of(1024);
        (0..8).for_each(|_| _ = vain(&mut budget));
        found(&mut budget, 3);
        found(&mut budget, 10);
        assert_eq!(vain(&mut budget), 40);
        while vain(&mut budget) != 16 {}
        // One that is woken late each time looks for long once in a while, and then again.
        while budget.vain_count % WHOLE_EVERY_COUNT != WHOLE_EVERY_COUNT - 1 {
            vain(&mut budget);
        }
        found(&mut budget, 300);
        budget.vain_count += 1;
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
