//! Overlays: bytes that only one process sees in a region that it has open for reading.
//!
//! The pages that hold the bytes are replaced by copies in anonymous memory, at the same addresses. A private
//! mapping of the file would work on most file systems, but device-DAX allows none, and on hugetlbfs each page that
//! is written to needs one of the administrator's huge pages, or the write ends in a signal.

use pmem::{Bytes, MediumError, Offset};
use rustix::io::Errno;

use crate::Mapped;

impl Mapped {
    /// Shows `bytes` at `at`, in copies of the present pages.
    ///
    /// # Safety
    /// The bytes are in the region, which is open for reading, and only the caller's thread uses it.
    pub(crate) unsafe fn map_overlay(&self, at: Offset, bytes: &[u8]) -> Result<(), MediumError> {
        if self.writable {
            return Err(MediumError::ReadOnly);
        }
        let page_bytes = self.backing.page_bytes();
        let start = at.0 - at.0 % page_bytes;
        let end = (at.0 + bytes.len() as u64).next_multiple_of(page_bytes).min(self.len_bytes());
        // SAFETY: the pages are in the region, and no thread stores to a region that is open for reading.
        let mut copy = unsafe { self.bytes(Offset(start).span(end - start)) }?.to_vec();
        copy[(at.0 - start) as usize..][..bytes.len()].copy_from_slice(bytes);
        self.addresses.map_anonymous(start..end).map_err(refused)?;
        // SAFETY: the pages are now anonymous memory, as long as the copy, and nothing refers to them (the caller's
        // promise).
        unsafe { self.base().as_ptr().add(start as usize).copy_from_nonoverlapping(copy.as_ptr(), copy.len()) };
        Ok(())
    }
}

fn refused(error: Errno) -> MediumError {
    MediumError::Os { errno: error.raw_os_error() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::FileExt;

    use crate::MapOptions;

    use super::*;

    const PAGE_BYTES: usize = 4096;

    #[test]
    fn an_overlay_leaves_the_file_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("region");
        let before: Vec<u8> = (0..4 * PAGE_BYTES).map(|i| (i / 16) as u8).collect();
        fs::write(&path, &before).unwrap();
        let options = MapOptions {
            reserve_bytes: 1 << 30,
            kept_bytes: 1 << 30,
            writable: false,
            huge_pages: false,
            ..MapOptions::default()
        };
        let region = Mapped::open(&path, options).unwrap();
        let mut wanted = before.clone();
        // Within a page, across two, and in a page that was replaced before.
        for (at, value) in [(40, 1), (2 * PAGE_BYTES - 8, 2), (PAGE_BYTES + 16, 3)] {
            let new = [value; 24];
            // SAFETY: only this thread uses the region.
            unsafe { region.overlay(Offset(at as u64), &new) }.unwrap();
            wanted[at..at + new.len()].copy_from_slice(&new);
        }
        // SAFETY: as above.
        assert!(unsafe { region.bytes(Offset(0).span(wanted.len() as u64)) }.unwrap() == wanted);
        assert!(fs::read(&path).unwrap() == before);
        // Other pages still show the file.
        fs::File::options().write(true).open(&path).unwrap().write_all_at(&[7; 8], 3 * PAGE_BYTES as u64).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { region.bytes(Offset(3 * PAGE_BYTES as u64).span(8)) }.unwrap(), [7; 8]);
        // SAFETY: as above.
        assert!(unsafe { region.overlay(Offset(4 * PAGE_BYTES as u64 - 8), &[0; 16]) }.is_err());
    }

    #[test]
    fn writer_has_no_overlay() {
        let directory = tempfile::tempdir().unwrap();
        let options = MapOptions { reserve_bytes: 1 << 30, ..MapOptions::default() };
        let region = Mapped::create(&directory.path().join("region"), 4096, options).unwrap();
        // SAFETY: only this thread uses the region.
        assert_eq!(unsafe { region.overlay(Offset(0), &[0; 8]) }, Err(MediumError::ReadOnly));
    }
}
