//! What an opening goes past, where the caller wants what is whole of a damaged store.

use heap::HeapError;
use parking_lot::Mutex;

/// Where something is damaged, and what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Damage {
    pub(crate) offset: u64,
    pub(crate) what: &'static str,
}

/// Damage that an opening has met, by whichever thread.
#[derive(Default)]
pub(crate) struct Lost(Mutex<Vec<Damage>>);

impl Lost {
    /// In the order of places.
    pub(crate) fn into_damage(self) -> Vec<Damage> {
        let mut all = self.0.into_inner();
        all.sort_unstable();
        all
    }
}

/// `None` in place of what damage hides, if that is to be gone past.
pub(super) fn past<T>(lost: Option<&Lost>, result: Result<T, HeapError>) -> Result<Option<T>, HeapError> {
    match (result, lost) {
        (Err(HeapError::Damaged { offset, what }), Some(lost)) => {
            lost.0.lock().push(Damage { offset, what });
            Ok(None)
        }
        (result, _) => result.map(Some),
    }
}
