//! A completion queue entry: result 8, head of the submission queue 2, queue 2, identifier 2, status 2.

use crate::Status;
use crate::bytes::{pair, u16_at, u64_at};

/// What became of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// What the command defines, in dwords 0 and 1.
    pub result: u64,
    /// How far the controller has read the queue.
    pub queue_head: u16,
    /// The command's identifier.
    pub id: u16,
    /// What became of it.
    pub status: Status,
}

impl Completion {
    /// Bytes of an entry.
    pub const BYTES: usize = 16;

    /// The entry as it travels. The queue's number is left out, as fabrics have it.
    #[must_use]
    pub fn encode(&self) -> [u8; Completion::BYTES] {
        let [queue_head, id, status] = [self.queue_head, self.id, self.status.field()].map(u64::from);
        pair([self.result, queue_head | id << 32 | status << 48])
    }

    /// The entry that has travelled.
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
