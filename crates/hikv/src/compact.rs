//! Compaction on request.

use std::ops::ControlFlow;

use engine::{CompactionProgress, CompactionReport, Error};

use crate::{ProgressReply, Store};

impl Store {
    /// Moves items into fewer chunks, and returns the space of emptied chunks to the file system as far as possible.
    /// Calls `progress` from time to time. Other threads can read and write while it runs. The file does not become
    /// shorter: it gets holes, if its file system supports them.
    ///
    /// Items move into gaps of other chunks, so compaction needs no additional space. Space that readers still use
    /// becomes free after them. `progress` may use the store in any way except for compacting it. If it stops the
    /// compaction ([`ProgressReply`]), the report covers the work done.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let store = hikv::Options::new().compact_above(None).open(dir.path())?;
    /// for number in 0..1_000u32 {
    ///     store.put(number.to_be_bytes(), [7; 4_000])?;
    /// }
    /// for number in 0..1_000u32 {
    ///     if number % 10 > 0 {
    ///         store.delete(number.to_be_bytes())?;
    ///     }
    /// }
    /// let compacted = store.compact(|_| {})?;
    /// assert!(compacted.moved_items > 0);
    /// assert!(compacted.taken_bytes_after <= compacted.taken_bytes_before);
    /// assert_eq!(store.len()?, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InsideCallback`] within `progress`. [`Error::Corrupt`] if damage prevents the count of free space.
    /// Damaged items are no error: they stay in place, and the report lists their offsets. Work done before an error
    /// stays done.
    pub fn compact<A: ProgressReply>(
        &self,
        mut progress: impl FnMut(CompactionProgress) -> A,
    ) -> Result<CompactionReport, Error> {
        let mut show = |at| match progress(at).goes_on() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        self.writable_engine()?.compact(&mut show)
    }
}
