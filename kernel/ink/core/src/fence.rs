//! A key where a walk goes on, in memory that was lent for the longest.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::slice;

use pbtree::KEY_BYTES_MAX;
use pmem::Dram;

use crate::errno::ENOMEM;
use crate::host::Kernel;

const FENCE: Layout = match Layout::array::<u8>(KEY_BYTES_MAX) {
    Ok(layout) => layout,
    Err(_) => panic!("a key fits memory"),
};

/// A key, copied.
pub(crate) struct Fence {
    memory: NonNull<u8>,
    len: usize,
}

impl Fence {
    /// An empty one.
    pub(crate) fn new() -> Result<Fence, i64> {
        Ok(Fence { memory: Kernel.lend(FENCE).ok_or(ENOMEM)?, len: 0 })
    }

    /// Copies a key.
    pub(crate) fn set(&mut self, key: &[u8]) {
        assert!(key.len() <= KEY_BYTES_MAX);
        // SAFETY: the memory was lent for the longest key, and is nobody else's.
        unsafe { self.memory.copy_from_nonoverlapping(NonNull::from(key).cast(), key.len()) };
        self.len = key.len();
    }

    /// The key that was copied last.
    pub(crate) fn get(&self) -> &[u8] {
        // SAFETY: as many bytes were copied there.
        unsafe { slice::from_raw_parts(self.memory.as_ptr(), self.len) }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        // SAFETY: lent with this layout, and nobody uses it any more.
        unsafe { Kernel.give_back(self.memory, FENCE) }
    }
}
