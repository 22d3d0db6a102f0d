//! A key at which a walk resumes. Most keys are short and are stored in the fence itself; a longer key is stored in
//! memory allocated for the longest.

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
/// The longest key stored without allocating memory: a scan has two fences on its stack.
const SHORT_BYTES: usize = 256;

/// A copied key.
pub(crate) struct Fence {
    short: [MaybeUninit<u8>; SHORT_BYTES],
    /// Allocated when it is first needed.
    longest: Option<NonNull<u8>>,
    len: usize,
}

impl Fence {
    /// Creates an empty fence.
    pub(crate) fn new() -> Fence {
        Fence { short: [MaybeUninit::uninit(); SHORT_BYTES], longest: None, len: 0 }
    }

    /// Copies a key. If there is no memory for it, the fence is unchanged.
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
        // SAFETY: the place holds a key of this length, and only this value uses it.
        unsafe { place.copy_from_nonoverlapping(key.as_ptr(), key.len()) };
        Ok(())
    }

    /// Returns the key that was copied last.
    pub(crate) fn get(&self) -> &[u8] {
        let place = match self.longest {
            Some(memory) if self.len > SHORT_BYTES => memory.as_ptr(),
            _ => self.short.as_ptr().cast(),
        };
        // SAFETY: this many bytes were copied there.
        unsafe { slice::from_raw_parts(place, self.len) }
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        if let Some(memory) = self.longest {
            // SAFETY: allocated with this layout and no longer used.
            unsafe { Kernel.deallocate(memory, LONGEST) }
        }
    }
}
