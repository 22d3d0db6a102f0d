//! A key where a walk goes on. Most keys are short, and lie in the fence itself; a longer one gets memory that is lent for the longest.

use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::slice;

use pbtree::KEY_BYTES_MAX;
use pmem::Dram;

use crate::errno::ENOMEM;
use crate::host::Kernel;

const LONGEST: Layout = match Layout::array::<u8>(KEY_BYTES_MAX) {
    Ok(layout) => layout,
    Err(_) => panic!("a key fits memory"),
};
/// What a fence holds without asking for memory: a scan has two of them on its stack.
const SHORT_BYTES: usize = 256;

/// A key, copied.
pub(crate) struct Fence {
    short: [MaybeUninit<u8>; SHORT_BYTES],
    /// Lent when it is first needed.
    longest: Option<NonNull<u8>>,
    len: usize,
}

impl Fence {
    /// An empty one.
    pub(crate) fn new() -> Fence {
        Fence { short: [MaybeUninit::uninit(); SHORT_BYTES], longest: None, len: 0 }
    }

    /// Copies a key. Without memory for it the fence is as it was.
    pub(crate) fn set(&mut self, key: &[u8]) -> Result<(), i64> {
        assert!(key.len() <= KEY_BYTES_MAX);
        if key.len() > SHORT_BYTES && self.longest.is_none() {
            self.longest = Some(Kernel.allocate(LONGEST).ok_or(ENOMEM)?);
        }
        self.len = key.len();
        let place = match self.longest {
            Some(memory) if key.len() > SHORT_BYTES => memory.as_ptr(),
            _ => self.short.as_mut_ptr().cast(),
        };
        // SAFETY: the place has room for a key of this length, and is nobody else's.
        unsafe { place.copy_from_nonoverlapping(key.as_ptr(), key.len()) };
        Ok(())
    }

    /// The key that was copied last.
    pub(crate) fn get(&self) -> &[u8] {
        let place = match self.longest {
            Some(memory) if self.len > SHORT_BYTES => memory.as_ptr(),
            _ => self.short.as_ptr().cast(),
        };
        // SAFETY: as many bytes were copied there.
        unsafe { slice::from_raw_parts(place, self.len) }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        if let Some(memory) = self.longest {
            // SAFETY: lent with this layout, and nobody uses it any more.
            unsafe { Kernel.deallocate(memory, LONGEST) }
        }
    }
}
