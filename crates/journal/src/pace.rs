//! The pace of writers while a checkpoint runs: many short waits instead of one long wait.
//!
//! A checkpoint frees space in the log only at its end. Writers that fill the log faster than the checkpoint writes
//! the base would wait for all that is left of it, a second over a large store. So the space that the log has when a
//! checkpoint begins is released in parts:
//!
//! - A quarter at once. A load that writes no more than that during a checkpoint is not slowed.
//! - Five eighths in proportion to the pages that are written.
//! - An eighth when the checkpoint has ended, because it syncs the base last.
//!
//! Pace decides only when a writer appends. Nothing relies on it for space: a writer still appends only while a segment
//! is free ([`crate::buffer::Appender::reserve`]).
//!
//! A thread that waits here may hold locks of an engine, as one that waits for a segment, but none of the journal. The
//! checkpoint waits for no thread that appends, so it ends, and lifts the limit also if it fails.

use crate::File;
use crate::ahead::Segments;
use crate::slots::SlotTable;

/// A checkpoint in progress, and the space that it releases.
pub(crate) struct Pace<'a> {
    slots: &'a SlotTable,
    /// The log's end when the checkpoint began.
    from: u64,
    /// The space that the log had then.
    space_bytes: u64,
    /// Bytes of the pages to write.
    total_bytes: u64,
}

impl<'a> Pace<'a> {
    /// Begins a checkpoint that writes `total_bytes`. The log ends at `from`.
    pub(crate) fn begin<F: File>(segments: &'a Segments<F>, from: u64, total_bytes: u64) -> Pace<'a> {
        let space_bytes = segments.unused_count() * segments.capacity_bytes();
        let pace = Pace { slots: segments.slots(), from, space_bytes, total_bytes: total_bytes.max(1) };
        pace.note(0);
        pace
    }

    /// Notes that `written_bytes` of the pages are in the base.
    pub(crate) fn note(&self, written_bytes: u64) {
        self.slots.set_limit(self.from + released_bytes(self.space_bytes, written_bytes, self.total_bytes));
    }
}

impl Drop for Pace<'_> {
    fn drop(&mut self) {
        self.slots.set_limit(u64::MAX);
    }
}

/// Returns how much of the space is released when `written_bytes` of `total_bytes` are written.
fn released_bytes(space_bytes: u64, written_bytes: u64, total_bytes: u64) -> u64 {
    let paced_bytes = space_bytes / 8 * 5;
    space_bytes / 4 + (u128::from(paced_bytes) * u128::from(written_bytes) / u128::from(total_bytes)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_released_as_pages_are_written() {
        let released = |written_bytes| released_bytes(800, written_bytes, 50);
        assert_eq!([0, 10, 25, 50].map(released), [200, 300, 450, 700]);
    }
}
