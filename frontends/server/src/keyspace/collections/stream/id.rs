//! Ids of entries.

use std::fmt;

const SEQUENCE_BITS: u32 = 64;

/// The id of an entry: milliseconds since the Unix epoch in the upper half, a sequence number in the lower one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct StreamId(u128);

impl StreamId {
    pub(crate) const BYTES: usize = 16;
    /// No entry has this id.
    pub(crate) const ZERO: StreamId = StreamId(0);
    pub(crate) const MAX: StreamId = StreamId(u128::MAX);

    pub(crate) fn of(ms: u64, sequence: u64) -> StreamId {
        StreamId(u128::from(ms) << SEQUENCE_BITS | u128::from(sequence))
    }

    pub(crate) fn ms(self) -> u64 {
        (self.0 >> SEQUENCE_BITS) as u64
    }

    pub(crate) fn seq(self) -> u64 {
        self.0 as u64
    }

    pub(crate) fn next(self) -> Option<StreamId> {
        self.0.checked_add(1).map(StreamId)
    }

    pub(crate) fn previous(self) -> Option<StreamId> {
        self.0.checked_sub(1).map(StreamId)
    }

    /// Returns the bytes in keys, whose order is that of ids.
    pub(crate) fn bytes(self) -> [u8; StreamId::BYTES] {
        self.0.to_be_bytes()
    }

    /// Returns the id of its bytes in a key.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<StreamId> {
        bytes.try_into().ok().map(|bytes| StreamId(u128::from_be_bytes(bytes)))
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms(), self.seq())
    }
}
