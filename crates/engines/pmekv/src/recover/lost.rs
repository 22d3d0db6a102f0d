//! Damage that an opening reports, or skips where the caller wants the intact items of a damaged store.

use heap::{HeapError, InvalidPlace};
use parking_lot::Mutex;

/// An offset, and the damage there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    pub(crate) what: &'static str,
}

/// Damage that an opening has met, on any thread.
#[derive(Default)]
pub(crate) struct Lost(Mutex<Vec<Damage>>);

impl Lost {
    /// Returns the damage in order of offsets.
    pub(crate) fn into_damage(self) -> Vec<Damage> {
        let mut all = self.0.into_inner();
        all.sort_unstable();
        all
    }
}

/// Turns damage into `None` and notes it in `lost`, if damage is skipped.
pub(super) fn past<T>(lost: Option<&Lost>, result: Result<T, HeapError>) -> Result<Option<T>, HeapError> {
    match (result, lost) {
        (Err(HeapError::Damaged { offset, what }), Some(lost)) => {
            lost.0.lock().push(Damage { offset, what });
            Ok(None)
        }
        (result, _) => result.map(Some),
    }
}

/// Returns the error of a reference to an impossible place.
pub(super) fn damaged(wrong: InvalidPlace) -> HeapError {
    HeapError::Damaged { offset: wrong.offset, what: wrong.what }
}
