//! The progress of the sweep after open, which an engine's threads share.

use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, Ordering};

use heap::{HeapError, InvalidPlace, Place};
use pmem::{Dram, Medium, Offset};

use super::{Context, Cursor};

/// An invalid position that the sweep found: its place, and the reason.
pub type Misplacement = (Offset, InvalidPlace);

/// The progress of the sweep. The thread that holds it sweeps.
#[derive(Debug, Default)]
pub struct Sweep {
    cursor: Cursor,
    misplaced: Option<Offset>,
}

impl Sweep {
    /// Returns the place of an entry that names an invalid place. A store that has such an entry never reuses space
    /// below the mark.
    #[must_use]
    pub fn misplaced(&self) -> Option<Offset> {
        self.misplaced
    }

    /// Sweeps one segment by calling `sweep`. After the last segment, sets `swept`; free space is then known,
    /// unless the store is damaged or read-only.
    ///
    /// # Errors
    /// Returns the error of `sweep`.
    pub fn step<M: Medium, D: Dram>(
        &mut self,
        cx: Context<'_, M, D>,
        swept: &AtomicBool,
        sweep: impl FnOnce(Cursor, &mut dyn FnMut(Misplacement)) -> Result<Cursor, HeapError>,
    ) -> Result<(), HeapError> {
        self.cursor = sweep(self.cursor, &mut |(at, _)| self.misplaced = Some(at))?;
        if self.cursor.is_done() {
            if self.misplaced.is_none() && cx.medium.is_writable() {
                cx.heap.sweep().finish(cx.medium);
            }
            swept.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// Sweeps to the end, and takes the lock of the work for each step. Segments that other threads have swept are not
/// swept again.
///
/// # Errors
/// Returns the error of `step`.
pub fn finish_sweep<B, G: DerefMut<Target = B>, E>(
    swept: &AtomicBool,
    lock: impl Fn() -> G,
    step: impl Fn(&mut B) -> Result<(), E>,
) -> Result<(), E> {
    while !swept.load(Ordering::Acquire) {
        let mut work = lock();
        if !swept.load(Ordering::Acquire) {
            step(&mut work)?;
        }
    }
    Ok(())
}

/// Reports to the allocator that an entry at `named_at` names `place`. Reports an invalid place, and with `twice` one
/// that was reached before, to `misplaced`.
pub(crate) fn reach<M: Medium, D: Dram>(
    cx: Context<'_, M, D>,
    named_at: Offset,
    place: Place,
    twice: &'static str,
    misplaced: &mut dyn FnMut(Misplacement),
) {
    match cx.heap.sweep().mark_reached(place) {
        Ok(true) => {}
        Ok(false) => misplaced((named_at, InvalidPlace { offset: place.offset.0, what: twice })),
        Err(wrong) => misplaced((named_at, wrong)),
    }
}
