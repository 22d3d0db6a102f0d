//! An event loop's buffers, lent to the connection whose turn it is. Connections that are between requests hold none,
//! so that ten thousand idle ones need little memory.

use resp::Requests;

/// The largest buffer that is kept for the next turn; one that a large request made is given back to the system.
pub(crate) const KEPT_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) input: Vec<u8>,
    /// One for each connection whose replies are about to be sent.
    pub(crate) outputs: Vec<Vec<u8>>,
    pub(crate) requests: Requests,
}

/// As many outputs as are kept: those of a group of connections, which hold little more than a full one together.
const KEPT_OUTPUT_COUNT_MAX: usize = 64;

impl Buffers {
    /// Puts an emptied output back, unless there are many, or it has grown large.
    pub(crate) fn keep_output(&mut self, mut buffer: Vec<u8>) {
        let bytes_max = if self.outputs.is_empty() { KEPT_BYTES_MAX } else { KEPT_BYTES_MAX / KEPT_OUTPUT_COUNT_MAX };
        if self.outputs.len() < KEPT_OUTPUT_COUNT_MAX && (1..=bytes_max).contains(&buffer.capacity()) {
            buffer.clear();
            self.outputs.push(buffer);
        }
    }
}

/// Puts an emptied buffer back, unless it has grown large.
pub(crate) fn keep(place: &mut Vec<u8>, mut buffer: Vec<u8>) {
    if buffer.capacity() <= KEPT_BYTES_MAX {
        buffer.clear();
        *place = buffer;
    }
}
