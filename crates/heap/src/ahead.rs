//! Prefetches the headers of the next chunks while a region is opened: a disk serves many requests at once quickly,
//! and single requests slowly.

use pmem::Medium;

use crate::layout::unit_start;
use crate::slot_kind::SMALL_SLAB_UNITS;

/// Requests in flight: more than a disk serves at once.
const AHEAD_COUNT: u32 = 64;

/// The offsets of the next headers, guessed by assuming the most common chunk length. A wrong guess costs only time.
pub(crate) struct HeadersAhead {
    asked_to: u32,
    past: u32,
}

impl HeadersAhead {
    /// The headers of the chunks from `unit` to `past`.
    pub(crate) fn of(unit: u32, past: u32) -> HeadersAhead {
        HeadersAhead { asked_to: unit, past }
    }

    /// Prefetches the headers behind the chunk at `unit`, which is being read now.
    pub(crate) fn expect<M: Medium>(&mut self, medium: &M, unit: u32) {
        self.next(unit).for_each(|ahead| medium.prefetch_peek(unit_start(ahead)));
    }

    fn next(&mut self, unit: u32) -> impl Iterator<Item = u32> + use<> {
        let asked_to = self.asked_to.max(unit);
        let is_as_guessed = (asked_to - unit).is_multiple_of(SMALL_SLAB_UNITS);
        let from = if is_as_guessed { asked_to } else { unit };
        let past = self.past.min(unit.saturating_add(AHEAD_COUNT * SMALL_SLAB_UNITS));
        self.asked_to = from + past.saturating_sub(from).next_multiple_of(SMALL_SLAB_UNITS);
        (from..past).step_by(SMALL_SLAB_UNITS as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prediction_resumes_or_restarts() {
        let mut headers = HeadersAhead::of(1, 1000);
        let mut next = |unit| headers.next(unit).collect::<std::vec::Vec<_>>();
        let first = next(1);
        assert_eq!((first.len(), first[0], first[1]), (64, 1, 5));
        assert_eq!(next(5), [257]);
        assert_eq!(next(21), [261, 265, 269, 273]);
        let anew = next(24);
        assert_eq!((anew.len(), anew[0]), (64, 24));
        assert_eq!(next(996), [996]);
        assert_eq!(next(999), [999]);
    }
}
