//! A completion queue entry: result 8, head of the submission queue 2, queue 2, identifier 2, status 2.

use crate::Status;
use crate::bytes::{pair, u16_at, u64_at};

/// The outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The command-specific result, in dwords 0 and 1.
    pub result: u64,
    /// The submission queue head.
    pub queue_head: u16,
    /// The command's identifier.
    pub id: u16,
    /// Its status.
    pub status: Status,
}

impl Completion {
    /// The length of an entry.
    pub const BYTES: usize = 16;

    /// Encodes the entry. The queue number is omitted, as in fabrics.
    #[must_use]
    pub fn encode(&self) -> [u8; Completion::BYTES] {
        let [queue_head, id, status] = [self.queue_head, self.id, self.status.field()].map(u64::from);
        pair([self.result, queue_head | id << 32 | status << 48])
    }

    /// Decodes an entry.
    #[must_use]
    pub fn decode(bytes: &[u8; Completion::BYTES]) -> Completion {
        Completion {
            result: u64_at(bytes, 0),
            queue_head: u16_at(bytes, 8),
            id: u16_at(bytes, 12),
            status: Status::from_field(u16_at(bytes, 14)),
        }
    }
}
