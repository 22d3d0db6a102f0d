//! The sweep after open, as engines share it out: how far it is.

use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, Ordering};

use heap::{HeapError, InvalidPlace};
use pmem::{Dram, Medium, Offset};

use super::{Context, Cursor};

/// What the sweep found wrong in a segment.
pub type Misplacement = (Offset, InvalidPlace);

/// How far the sweep is; its holder sweeps.
#[derive(Debug, Default)]
pub struct Sweep {
    cursor: Cursor,
    misplaced: Option<Offset>,
}

impl Sweep {
    /// Some entry that names no proper place. A store that has one never reuses space below the mark.
    #[must_use]
    pub fn misplaced(&self) -> Option<Offset> {
        self.misplaced
    }

    /// Has `sweep` sweep one segment. Behind the last one `swept` is true, and free space is known unless the store is damaged or
    /// read-only.
    ///
    /// # Errors
    /// What `sweep` meets.
    pub fn step<M: Medium, D: Dram>(
        &mut self,
        cx: Context<'_, M, D>,
        swept: &AtomicBool,
        sweep: impl FnOnce(Cursor, &mut dyn FnMut(Misplacement)) -> Result<Cursor, HeapError>,
    ) -> Result<(), HeapError> {
        self.cursor = sweep(self.cursor, &mut |(at, _)| self.misplaced = Some(at))?;
        if self.cursor.is_done() {
            if self.misplaced.is_none() && cx.medium.is_writable() {
                cx.heap.finish_sweep(cx.medium);
            }
            swept.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// Sweeps to the end, with the work's lock for each step; what others have swept need not be done again.
///
/// # Errors
/// What `step` meets.
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
