//! An event loop's buffers, lent to the connection whose turn it is. Connections that are between requests hold none,
//! so that ten thousand idle ones need little memory.
//!
//! What a burst of long requests took is freed with the buffers, but the allocator keeps it for the next burst. So what is freed
//! is counted, and from [`FREED_BYTES_MIN`] on the allocator is asked to give it back to the system.

use std::mem;

use resp::Requests;

/// The largest buffer that is kept for the next turn; one that a large request made is given back to the system.
pub(crate) const KEPT_BYTES_MAX: usize = 1 << 20;

#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) input: Vec<u8>,
    /// One for each connection whose replies are about to be sent.
    pub(crate) outputs: Vec<Vec<u8>>,
    pub(crate) requests: Requests,
    /// Freed since the allocator was last asked.
    freed_bytes: usize,
}

/// So much that asking, which looks at all that is free, costs little beside what has come and gone meanwhile.
const FREED_BYTES_MIN: usize = 16 << 20;

/// As many outputs as are kept: those of a group of connections, which hold little more than a full one together.
const KEPT_OUTPUT_COUNT_MAX: usize = 64;

impl Buffers {
    /// Puts an emptied output back, unless there are many, or it has grown large.
    pub(crate) fn keep_output(&mut self, mut buffer: Vec<u8>) {
        let bytes_max = if self.outputs.is_empty() { KEPT_BYTES_MAX } else { KEPT_BYTES_MAX / KEPT_OUTPUT_COUNT_MAX };
        if self.outputs.len() < KEPT_OUTPUT_COUNT_MAX && (1..=bytes_max).contains(&buffer.capacity()) {
            buffer.clear();
            self.outputs.push(buffer);
        } else {
            self.note_freed(buffer.capacity());
        }
    }

    /// Puts an emptied buffer back, unless it has grown large.
    pub(crate) fn keep_input(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= KEPT_BYTES_MAX {
            buffer.clear();
            buffer = mem::replace(&mut self.input, buffer);
        }
        self.note_freed(buffer.capacity());
    }

    /// A buffer with so much room goes.
    pub(crate) fn note_freed(&mut self, capacity_bytes: usize) {
        self.freed_bytes += capacity_bytes;
    }

    /// Has the allocator give back what was freed, if that is much.
    pub(crate) fn give_back(&mut self) {
        if self.freed_bytes >= FREED_BYTES_MIN {
            self.freed_bytes = 0;
            trim();
        }
    }
}

#[cfg(target_env = "gnu")]
#[cold]
fn trim() {
    // SAFETY: it takes no pointer, and may be called by any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators are not asked.
#[cfg(not(target_env = "gnu"))]
fn trim() {}
