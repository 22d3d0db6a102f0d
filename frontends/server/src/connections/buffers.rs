//! An event loop's buffers, borrowed by a connection during its turn. Idle connections hold none, so ten thousand of
//! them need little memory.
//!
//! The memory of a burst of long requests is freed with the buffers, but the allocator keeps it for the next burst.
//! Freed bytes are counted; after [`FREED_BYTES_MIN`] the allocator is asked to return them to the system.

use std::mem;

use resp::Requests;

/// The largest buffer that is kept for the next turn; a larger one is freed.
pub(crate) const KEPT_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) input: Vec<u8>,
    /// One for each connection whose replies are about to be sent.
    pub(crate) outputs: Vec<Vec<u8>>,
    pub(crate) requests: Requests,
    /// Bytes freed since the last trim.
    freed_bytes: usize,
}

/// Large enough that a trim, which scans all free memory, costs little compared to the allocations since the last one.
const FREED_BYTES_MIN: usize = 16 << 20;

/// Maximum number of outputs kept: those of a group of connections, which together hold little more than one full
/// output.
const KEPT_OUTPUT_COUNT_MAX: usize = 64;

impl Buffers {
    /// Keeps an emptied output, unless there are many or it has grown large.
    pub(crate) fn keep_output(&mut self, mut buffer: Vec<u8>) {
        let bytes_max = if self.outputs.is_empty() { KEPT_BYTES_MAX } else { KEPT_BYTES_MAX / KEPT_OUTPUT_COUNT_MAX };
        if self.outputs.len() < KEPT_OUTPUT_COUNT_MAX && (1..=bytes_max).contains(&buffer.capacity()) {
            buffer.clear();
            self.outputs.push(buffer);
        } else {
            self.note_freed(buffer.capacity());
        }
    }

    /// Keeps an emptied buffer, unless it has grown large.
    pub(crate) fn keep_input(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= KEPT_BYTES_MAX {
            buffer.clear();
            buffer = mem::replace(&mut self.input, buffer);
        }
        self.note_freed(buffer.capacity());
    }

    /// Records that a buffer of `capacity_bytes` capacity is freed.
    pub(crate) fn note_freed(&mut self, capacity_bytes: usize) {
        self.freed_bytes += capacity_bytes;
    }

    /// Has the allocator return freed memory to the system, if it is much.
    pub(crate) fn trim(&mut self) {
        if self.freed_bytes >= FREED_BYTES_MIN {
            self.freed_bytes = 0;
            trim();
        }
    }
}

#[cfg(target_env = "gnu")]
#[cold]
fn trim() {
    // SAFETY: it has no pointer arguments, and may be called by any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators have no such call.
#[cfg(not(target_env = "gnu"))]
fn trim() {}
