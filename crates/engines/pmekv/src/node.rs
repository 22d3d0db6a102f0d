//! Nodes: the keys of a checkpoint, packed in their order. A node names the one before it.

use heap::HeapError;
use index::Position;
use pmem::{Checksum, Offset};

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::layout::{NODE_BYTES, NODE_HEADER_BYTES, NODE_KEY_BYTES, NODE_KEY_COUNT_MAX};

/// A key of a checkpoint: its record, and the lane of its changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stored {
    pub(crate) record: Position,
    pub(crate) checksum: u32,
    pub(crate) lane: u32,
}

/// A node as it is written.
pub(crate) fn to_bytes(number: u64, previous: Offset, keys: &[Stored]) -> Vec<u8> {
    let mut bytes = vec![0; NODE_HEADER_BYTES + keys.len() * NODE_KEY_BYTES];
    put_u64(&mut bytes, 0, previous.0);
    put_u32(&mut bytes, 8, keys.len() as u32);
    for (i, key) in keys.iter().enumerate() {
        let at = NODE_HEADER_BYTES + i * NODE_KEY_BYTES;
        put_u64(&mut bytes, at, key.record.word());
        put_u32(&mut bytes, at + 8, key.checksum);
        put_u32(&mut bytes, at + 12, key.lane);
    }
    let check = checksum(number, &bytes);
    put_u32(&mut bytes, 12, check);
    bytes
}

/// The node before this one, by what this one says, whether that is whole or not.
pub(crate) fn previous(bytes: &[u8]) -> Offset {
    Offset(u64_at(bytes, 0))
}

/// Appends the node's keys.
pub(crate) fn read(number: u64, at: Offset, bytes: &[u8], keys: &mut Vec<Stored>) -> Result<(), HeapError> {
    let damaged = |what| HeapError::Damaged { offset: at.0, what };
    let count = u32_at(bytes, 8) as usize;
    if count > NODE_KEY_COUNT_MAX || bytes.len() as u64 != NODE_BYTES {
        return Err(damaged("a node has too many keys"));
    }
    let bytes = &bytes[..NODE_HEADER_BYTES + count * NODE_KEY_BYTES];
    if checksum(number, bytes) != u32_at(bytes, 12) {
        return Err(damaged("a node's checksum does not fit"));
    }
    let key = |bytes: &[u8]| Stored {
        record: Position::from_word(u64_at(bytes, 0)),
        checksum: u32_at(bytes, 8),
        lane: u32_at(bytes, 12),
    };
    keys.extend(bytes[NODE_HEADER_BYTES..].chunks_exact(NODE_KEY_BYTES).map(key));
    Ok(())
}

fn checksum(number: u64, bytes: &[u8]) -> u32 {
    let salted = Checksum::default().update(&number.to_le_bytes());
    salted.update(&bytes[..12]).update(&bytes[NODE_HEADER_BYTES..]).value()
}
