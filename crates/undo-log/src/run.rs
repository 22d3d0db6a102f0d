//! Runs: written by the thread that changes words, read and restored by recovery.

use core::sync::atomic::Ordering;

use pmem::{Checksum, Medium, Offset, Span};

use crate::layout::{RANGE_HEADER_BYTES, RUN_HEADER_BYTES, range_header, range_of, ranges_bytes, run_head};
use crate::{broken, canary};

/// Writes a run and flushes it.
///
/// # Safety
/// Only the caller uses the log, and no other thread stores to the ranges.
pub(crate) unsafe fn write<M: Medium>(
    medium: &M,
    log: Span,
    (number, lane): (u64, usize),
    ranges: impl Iterator<Item = Span> + Clone,
) {
    let len_bytes = ranges_bytes(ranges.clone());
    assert!(RUN_HEADER_BYTES + len_bytes <= log.len_bytes, "a run of {len_bytes} bytes does not fit its log");
    let (head, log) = (run_head(number, lane, len_bytes), log.start);
    let (mut checksum, mut at) = (Checksum::default().update(&head), log.plus(RUN_HEADER_BYTES));
    for range in ranges {
        let header = range_header(range).to_le_bytes();
        // SAFETY: the caller's promises; a range that is about to be changed is in the region.
        let old = unsafe { medium.bytes(range) }.expect("what is changed lies in the region");
        checksum = checksum.update(&header).update(old);
        // SAFETY: the log is the caller's.
        unsafe {
            medium.write(at, &header);
            medium.write(at.plus(RANGE_HEADER_BYTES), old);
        }
        at = at.plus(RANGE_HEADER_BYTES + range.len_bytes);
    }
    let checksum = u64::from(checksum.value()).to_le_bytes();
    // SAFETY: the log is the caller's.
    unsafe {
        medium.write(log, &head);
        medium.write(log.plus(head.len() as u64), &checksum);
    }
    medium.flush(log.span(RUN_HEADER_BYTES + len_bytes));
}

/// Voids the beginning of a log and flushes it; the caller orders it. Zeros are not a valid run: their checksum is
/// not 0.
pub(crate) fn void<M: Medium>(medium: &M, log: Offset) {
    if !medium.breaks(canary::LOG_LEFT_AS_FOUND) {
        (0..RUN_HEADER_BYTES).step_by(8).for_each(|at| medium.store(log.plus(at), 0, Ordering::Relaxed));
        medium.flush(log.span(RUN_HEADER_BYTES));
    }
}

/// Orders the log before the change that follows.
pub(crate) fn order_log<M: Medium>(medium: &M) {
    medium.order_unless(canary::LOG_NOT_ORDERED);
}

/// Orders the change before the number that makes its run void.
pub(crate) fn order_change<M: Medium>(medium: &M) {
    medium.order_unless(canary::NUMBER_BEFORE_CHANGE);
}

/// Returns the span of a valid run's ranges in the log, or `None` if the run is void.
pub(crate) fn valid<M: Medium>(medium: &M, log: Span, number: u64, lane: usize) -> Option<Span> {
    let (log, capacity_bytes) = (log.start, log.len_bytes);
    // SAFETY: no thread writes to logs while a region is being recovered.
    let bytes = |span| unsafe { medium.bytes(span) }.ok();
    let head: &[u8; 16] = bytes(log.span(16))?.first_chunk()?;
    let len_bytes = (u128::from_le_bytes(*head) >> 64) as u64 & u64::from(u32::MAX);
    let is_of_number = *head == run_head(number, lane, len_bytes) || broken::is_taken_for(medium, head, lane);
    if !is_of_number || RUN_HEADER_BYTES + len_bytes > capacity_bytes {
        return None;
    }
    let ranges = log.plus(RUN_HEADER_BYTES).span(len_bytes);
    let checksum = Checksum::default().update(head).update(bytes(ranges)?).value();
    let stored = medium.load(log.plus(16), Ordering::Relaxed);
    (stored == u64::from(checksum) || medium.breaks(canary::RUN_CHECKSUM_IGNORED)).then_some(ranges)
}

/// Calls `each` with every range of a run and the offset of the words' old content. Returns false if the ranges do
/// not fit the run or the region; the checksum then matches by chance or because of damage.
pub(crate) fn each_range<M: Medium>(medium: &M, ranges: Span, mut each: impl FnMut(Span, Offset)) -> bool {
    let (mut at, past) = (ranges.start, ranges.start.0 + ranges.len_bytes);
    while at.0 + RANGE_HEADER_BYTES <= past {
        let range = range_of(medium.load(at, Ordering::Relaxed));
        let old = at.plus(RANGE_HEADER_BYTES);
        if range.len_bytes > past - old.0 || medium.check(range).is_err() || !range.start.0.is_multiple_of(8) {
            return false;
        }
        each(range, old);
        at = old.plus(range.len_bytes);
    }
    at.0 == past
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_no_run() {
        assert_eq!(run_head(0, 0, 0), [0; 16]);
        assert_ne!(Checksum::default().update(&run_head(0, 0, 0)).value(), 0);
    }
}
