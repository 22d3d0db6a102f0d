//! An event loop's buffers, lent to the connection whose turn it is. Connections that are between requests hold none,
//! so that ten thousand idle ones need little memory.

use resp::Requests;

/// The largest buffer that is kept for the next turn; one that a large request made is given back to the system.
pub(crate) const KEPT_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    pub(crate) requests: Requests,
}

/// Puts an emptied buffer back, unless it has grown large.
pub(crate) fn keep(place: &mut Vec<u8>, mut buffer: Vec<u8>) {
    if buffer.capacity() <= KEPT_BYTES_MAX {
        buffer.clear();
        *place = buffer;
    }
}
