//! Giving space back, by request.

use std::ops::ControlFlow;

use engine::{CompactionProgress, CompactionReport, Error};

use crate::{ProgressReply, Store};

impl Store {
    /// Gathers items in fewer chunks and gives the space of the others back to the file system, as far as it can be done,
    /// and tells `progress` about it now and then. Others read and write meanwhile. The file gets no shorter: it has holes,
    /// where its file system knows such.
    ///
    /// Chunks are emptied into the gaps of others, so that no further space is needed. What readers hold on to becomes free
    /// after them. `progress` may use the store as any caller may, but for compacting it. Where `progress` stops it ([`ProgressReply`]), the report has
    /// what was done.
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
    /// [`Error::InsideCallback`] within `progress`. [`Error::Corrupt`] where damage keeps free space from being known; otherwise see [`Error`]. A damaged item is no
    /// error: it stays where it is, and is told. What was done until then stays done.
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
