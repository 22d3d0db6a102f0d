//! How long an end looks before it sleeps.
//!
//! A sleep and its end are a system call of each side, and where the sleeper's processor has gone idle, tens of microseconds until that is
//! back. A look at a place that has not changed is some nanoseconds. So an end that finds nothing looks on for about as long as a sleep
//! costs, and sleeps then.
//!
//! # Rules
//! - Looks are counted and bounded: an end of a connection on which nothing is said sleeps, and costs nothing.
//! - An end that has looked in vain looks half as often the next time, and twice as often after a look that has found something. Where the
//!   other side needs long for its answers, or has no processor, little is lost so. One wait in so many has its whole length, or
//!   the bound would never grow again.
//! - A process that has one processor does not look: the other side cannot go on meanwhile.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

/// About 50 us, as long as two threads take to wake each other on idle processors.
const LOOK_COUNT_MAX: u32 = 2048;
/// About what a look costs beside the turn that it comes after.
const LOOK_COUNT_MIN: u32 = 8;
/// Waits in vain until one has its whole length again.
const WHOLE_EVERY_COUNT: u32 = 16;

/// Looks of a wait, where another thread can run beside the one that looks.
static MOST: LazyLock<u32> =
    LazyLock::new(|| if available_parallelism().map_or(1, NonZero::get) > 1 { LOOK_COUNT_MAX } else { 0 });

/// How often an end looks in the wait that it is in, or comes to.
#[derive(Debug)]
pub(crate) struct Looks {
    whole_count: u32,
    count: u32,
    left_count: u32,
    vain_count: u32,
}

impl Looks {
    pub(crate) fn new() -> Looks {
        Looks::of(*MOST)
    }

    fn of(whole_count: u32) -> Looks {
        Looks { whole_count, count: whole_count, left_count: whole_count, vain_count: 0 }
    }

    /// Nothing was found: whether to look again. If not, the wait is over, and the next one is shorter.
    pub(crate) fn go_on(&mut self) -> bool {
        if self.left_count > 0 {
            self.left_count -= 1;
            return true;
        }
        self.vain_count = self.vain_count.wrapping_add(1);
        self.count = (self.count / 2).max(LOOK_COUNT_MIN).min(self.whole_count);
        let is_whole = self.vain_count.is_multiple_of(WHOLE_EVERY_COUNT);
        self.left_count = if is_whole { self.whole_count } else { self.count };
        false
    }

    /// Something was found: the wait is over.
    pub(crate) fn found(&mut self) {
        self.count = (self.count * 2).min(self.whole_count);
        self.left_count = self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a wait looks that finds nothing.
    fn vain(looks: &mut Looks) -> u32 {
        std::iter::repeat_with(|| looks.go_on()).take_while(|goes_on| *goes_on).count() as u32
    }

    #[test]
    fn waits_are_bounded_and_short_where_nothing_comes() {
        let mut looks = Looks::of(1024);
        assert_eq!(vain(&mut looks), 1024);
        let next: Vec<u32> = (0..8).map(|_| vain(&mut looks)).collect();
        assert_eq!(next, [512, 256, 128, 64, 32, 16, LOOK_COUNT_MIN, LOOK_COUNT_MIN]);
        let later: Vec<u32> = (0..WHOLE_EVERY_COUNT).map(|_| vain(&mut looks)).collect();
        assert_eq!(later.iter().filter(|count| **count == 1024).count(), 1, "{later:?}");
        assert_eq!(later.iter().sum::<u32>(), 1024 + (WHOLE_EVERY_COUNT - 1) * LOOK_COUNT_MIN);
    }

    #[test]
    fn waits_grow_where_something_comes() {
        let mut looks = Looks::of(1024);
        (0..8).for_each(|_| _ = vain(&mut looks));
        (0..3).for_each(|_| looks.found());
        assert_eq!(vain(&mut looks), 8 * LOOK_COUNT_MIN);
        (0..99).for_each(|_| looks.found());
        assert_eq!(vain(&mut looks), 1024);
    }

    #[test]
    fn one_processor_is_the_other_sides() {
        let mut looks = Looks::of(0);
        looks.found();
        assert!((0..2 * WHOLE_EVERY_COUNT).all(|_| vain(&mut looks) == 0));
    }
}
