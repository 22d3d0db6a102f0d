//! Files of the operating system.

use std::fs::{File as StdFile, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::{Errno, retry_on_intr};

use crate::File;

/// Zeros are written in pieces of this size where space cannot be asked for: large enough to make calls rare.
const ZEROS_BYTES: usize = 1 << 20;

/// The unit of [`MetadataExt::blocks`], whatever the file system's own.
const STAT_BLOCK_BYTES: u64 = 512;

/// An open file of the operating system.
#[derive(Debug)]
pub struct OsFile(StdFile);

impl OsFile {
    /// Creates the file `path`, which must not exist, for its owner alone.
    ///
    /// # Errors
    /// The operating system's.
    pub fn create(path: &Path) -> io::Result<OsFile> {
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path).map(OsFile)
    }

    /// Opens the file `path`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(path: &Path, writable: bool) -> io::Result<OsFile> {
        OpenOptions::new().read(true).write(writable).open(path).map(OsFile)
    }

    /// What the file lies on, as in stats.
    ///
    /// # Errors
    /// If the file system does not say.
    pub fn medium_name(&self) -> io::Result<&'static str> {
        pmem_os::medium_name(&self.0)
    }

    fn write_zeros(&self, from_bytes: u64, to_bytes: u64) -> io::Result<()> {
        let zeros = vec![0; ZEROS_BYTES];
        let mut at = from_bytes;
        while at < to_bytes {
            let len = (to_bytes - at).min(ZEROS_BYTES as u64);
            self.0.write_all_at(&zeros[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }
}

impl File for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.0.read_exact_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        let len_bytes = range.end - range.start;
        match retry_on_intr(|| fallocate(&self.0, FallocateFlags::empty(), range.start, len_bytes)) {
            // What is there stays, holes among it: where space cannot be asked for none was given back.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(self.len()?, range.end),
            allocated => Ok(allocated?),
        }
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(retry_on_intr(|| fallocate(&self.0, how, range.start, range.end - range.start))?)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        Some(self.0.metadata().ok()?.blocks() * STAT_BLOCK_BYTES)
    }

    fn truncate(&self) -> io::Result<()> {
        self.0.set_len(0)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn forget_cached(&self) {
        let _ = fadvise(&self.0, 0, None, Advice::DontNeed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_taken_and_zero() {
        let directory = tempfile::tempdir().unwrap();
        let file = OsFile::create(&directory.path().join("file")).unwrap();
        file.allocate(0..3 << 20).unwrap();
        file.write_zeros(1 << 20, (3 << 20) + 7).unwrap();
        let mut bytes = vec![1; 4096];
        file.read_at(&mut bytes, (3 << 20) - 4089).unwrap();
        assert_eq!((file.len().unwrap(), bytes), ((3 << 20) + 7, vec![0; 4096]));
        assert_eq!(file.read_at(&mut [0; 8], 3 << 20).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
