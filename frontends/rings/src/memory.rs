//! The memory of one connection: created and sealed by the device, mapped by both.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::RING_BYTES;
use crate::ring::Ring;

const LINE_WORDS: usize = 8;
const HEAD_BYTES: usize = 4096;
const BYTES: usize = HEAD_BYTES + 2 * RING_BYTES;
const RING_WORDS: usize = RING_BYTES / 8;
/// It cannot become shorter, which would kill a process that reads beyond the end, or longer, or get other seals.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

const _: () = assert!(RING_WORDS.is_power_of_two());

/// The direction of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
}

/// Mapped memory.
#[derive(Debug)]
pub(crate) struct Memory(NonNull<AtomicU64>);

// SAFETY: it consists of atomic words, from the mapping's first to its last.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Creates zeroed memory, and the file by which a host maps it.
    pub(crate) fn make() -> io::Result<(Memory, OwnedFd)> {
        let file = memfd_create("hikv-rings", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, BYTES as u64)?;
        fcntl_add_seals(&file, SEALS)?;
        Ok((Memory::map(&file)?, file))
    }

    /// Maps the memory that a device has created.
    pub(crate) fn of(file: impl AsFd) -> io::Result<Memory> {
        let is_sealed = fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
        if !is_sealed || fstat(&file)?.st_size != BYTES as i64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the device's memory has a wrong length or is not sealed",
            ));
        }
        Memory::map(&file)
    }

    fn map(file: impl AsFd) -> io::Result<Memory> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; the file has this length, and is sealed against
        // becoming shorter.
        let at = unsafe { mmap(ptr::null_mut(), BYTES, access, MapFlags::SHARED, file, 0) }?;
        NonNull::new(at.cast()).map(Memory).ok_or_else(|| io::Error::other("a mapping at 0"))
    }

    /// Returns all words.
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has this length, is page-aligned, and exists until `self` is dropped; concurrent writers,
        // in this process or the other, are harmless because any bytes are a valid word.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), BYTES / 8) }
    }

    pub(crate) fn ring(&self, direction: Direction) -> Ring<'_, AtomicU64> {
        let words = self.words();
        let (line, start) = match direction {
            Direction::ToDevice => (0, HEAD_BYTES / 8),
            Direction::ToHost => (4, HEAD_BYTES / 8 + RING_WORDS),
        };
        let place = |number: usize| &words[(line + number) * LINE_WORDS];
        Ring {
            tail: place(0),
            head: place(1),
            reader: place(2),
            writer: place(3),
            words: &words[start..start + RING_WORDS],
        }
    }
}

/// Returns the lower half of a word, on which the futex operates; numbers are little-endian.
pub(crate) fn futex_of(word: &AtomicU64) -> &AtomicU32 {
    // SAFETY: its first four bytes are aligned to eight, have the same lifetime, and are atomic.
    unsafe { &*ptr::from_ref(word).cast() }
}

#[cfg(not(target_endian = "little"))]
compile_error!("a futex is taken for the lower half of a word");

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no reference to it is left.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_cannot_shrink() {
        let (_memory, file) = Memory::make().expect("memory");
        for len_bytes in [0, 4096, BYTES as u64 + 4096] {
            assert_eq!(ftruncate(&file, len_bytes), Err(rustix::io::Errno::PERM));
        }
        assert_eq!(fcntl_add_seals(&file, SealFlags::WRITE), Err(rustix::io::Errno::PERM));
        let short = memfd_create("short", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("memory");
        assert!(Memory::of(&short).is_err());
        ftruncate(&short, BYTES as u64).expect("it is not sealed");
        assert!(Memory::of(&short).is_err(), "it could become shorter");
    }
}
