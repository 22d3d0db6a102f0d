//! Batch words: one line each in the region's head. A word is the commit word of one batch at a time.
//!
//! A word is 0 if it has no batch. Otherwise it is sealed and holds the offset of the batch's record, a multiple of
//! 16, with the state in the low bits. The index defines the contents of records and the meaning of states
//! (`partitioned_hash/batch`).

use core::sync::atomic::Ordering;

use pmem::{Medium, Offset, seal, unseal};

use crate::HeapError;
use crate::class::GRAIN_BYTES;
use crate::layout::{REGION_BYTES_MAX, batch_word};
use crate::state;

/// The progress of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchState {
    /// The record is durable; none of its changes has been made.
    Prepared = 1,
    /// All changes have been made.
    Committed = 2,
}

/// A batch word that is not 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchWord {
    /// The record's offset.
    pub record: Offset,
    /// The progress of the batch.
    pub state: BatchState,
}

const STATE: u64 = GRAIN_BYTES - 1;
const _: () = assert!(REGION_BYTES_MAX <= 1 << 48);

impl BatchWord {
    /// Returns the word to store.
    ///
    /// # Panics
    /// If the record's offset is not a multiple of 16 below 2^48.
    #[must_use]
    pub fn word(self) -> u64 {
        assert!(self.record.0 & STATE == 0, "a record at {:#x}", self.record.0);
        seal(self.record.0 | self.state as u64)
    }

    /// Reads batch word `number` of the region; `None` if it is 0.
    ///
    /// # Errors
    /// [`HeapError::Damaged`] if the word does not fit its check.
    pub fn load<M: Medium>(medium: &M, number: usize) -> Result<Option<BatchWord>, HeapError> {
        let at = batch_word(number);
        match medium.load(at, Ordering::Acquire) {
            0 => Ok(None),
            word => BatchWord::from_word(word)
                .map(Some)
                .ok_or(HeapError::Damaged { offset: at.0, what: "a batch word does not fit its check" }),
        }
    }

    /// Decodes a word; `None` if it is no batch word.
    #[must_use]
    pub fn from_word(word: u64) -> Option<BatchWord> {
        let payload = unseal(word)?;
        let state = match payload & STATE {
            1 => BatchState::Prepared,
            2 => BatchState::Committed,
            _ => return None,
        };
        Some(BatchWord { record: Offset(payload & !STATE), state })
    }

    /// Stores and flushes batch word `number`. The caller orders it.
    pub fn store<M: Medium>(self, medium: &M, number: usize) {
        state::store_word(medium, batch_word(number), self.word());
    }

    /// Clears batch word `number` and flushes it. The caller orders it.
    pub fn clear<M: Medium>(medium: &M, number: usize) {
        state::store_word(medium, batch_word(number), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_identify_record_and_state() {
        for state in [BatchState::Prepared, BatchState::Committed] {
            let word = BatchWord { record: Offset(REGION_BYTES_MAX - 16), state };
            assert_eq!(BatchWord::from_word(word.word()), Some(word));
        }
        assert_eq!(BatchWord::from_word(seal(64)), None);
        assert_eq!(BatchWord::from_word(0), None);
    }
}
