//! A completion queue entry: result 8, head of the submission queue 2, queue 2, identifier 2, status 2.

use crate::Status;
use crate::bytes::{put, u16_at, u64_at};

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
        let mut bytes = [0; Completion::BYTES];
        put(&mut bytes, 0, &self.result.to_le_bytes());
        put(&mut bytes, 8, &self.queue_head.to_le_bytes());
        put(&mut bytes, 12, &self.id.to_le_bytes());
        put(&mut bytes, 14, &self.status.field().to_le_bytes());
        bytes
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
