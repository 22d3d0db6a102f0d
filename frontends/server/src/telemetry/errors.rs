//! Error replies by their first word, for `INFO errorstats`.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Maximum number of words, as in Redis: errors whose first word clients choose must not fill memory.
const WORD_COUNT_MAX: usize = 128;

#[derive(Default)]
pub(crate) struct ErrorCounts(Mutex<BTreeMap<String, u64>>);

impl ErrorCounts {
    /// Counts an error by its text.
    #[cold]
    pub(crate) fn note(&self, text: &[u8]) {
        let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let mut counts = self.0.lock();
        if let Some(count) = str::from_utf8(word).ok().and_then(|word| counts.get_mut(word)) {
            *count += 1;
        } else if counts.len() < WORD_COUNT_MAX {
            counts.insert(String::from_utf8_lossy(word).into_owned(), 1);
        }
    }

    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        self.0.lock().iter().map(|(word, count)| (word.clone(), *count)).collect()
    }

    pub(super) fn forget(&self) {
        self.0.lock().clear();
    }
}
