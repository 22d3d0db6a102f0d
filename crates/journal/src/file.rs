//! The interface to a file on a disk, which a simulated disk can replace.

use std::io;
use std::ops::Range;

use pmem::Canary;

/// An open file. Several threads may call all methods at the same time.
///
/// Written data is durable after the next successful [`File::sync`], unless a sync failed in between: data that a
/// failed sync should have made durable may be lost, and a later success does not change that. Before that, each
/// sector of 512 bytes shows after a crash any content that it had since it was last surely durable.
pub trait File: Send + Sync + 'static {
    /// Returns the length.
    ///
    /// # Errors
    /// The operating system's.
    fn len(&self) -> io::Result<u64>;

    /// Returns true for a file of length 0.
    ///
    /// # Errors
    /// As for [`File::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `into` with the bytes at `at`.
    ///
    /// # Errors
    /// The operating system's; of the kind `UnexpectedEof` if the file ends before.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;

    /// Reads like [`File::read_at`], for a caller that keeps `pages`: they need not be in the operating system's
    /// cache as well. `pages` are complete pages of 4096 bytes, in memory as well as in the file.
    ///
    /// # Errors
    /// As for [`File::read_at`].
    fn read_pages(&self, pages: &mut [u8], at: u64) -> io::Result<()> {
        self.read_at(pages, at)
    }

    /// Fills `pages`, complete ones, with those from `at` on that are in the operating system's cache, up to the
    /// first that is not. Returns the number of bytes filled. The other pages are only on the disk. On systems that
    /// cannot report this, all pages count as cached.
    ///
    /// # Errors
    /// As for [`File::read_at`].
    fn read_cached_at(&self, pages: &mut [u8], at: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `at`.
    ///
    /// # Errors
    /// The operating system's; a part may be written.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Returns true if [`File::write_through`] bypasses the operating system's cache.
    fn has_way_past_cache(&self) -> bool {
        false
    }

    /// Writes like [`File::write_at`], for a caller that syncs immediately. `pages` are complete pages of 4096
    /// bytes, in memory as well as in the file.
    ///
    /// # Errors
    /// As for [`File::write_at`].
    fn write_through(&self, pages: &[u8], at: u64) -> io::Result<()> {
        self.write_at(pages, at)
    }

    /// Allocates space for `range`, if it has none, and makes the file that long. New bytes are zero; existing
    /// bytes stay.
    ///
    /// # Errors
    /// The operating system's, for example if there is no space. The file may have become longer.
    fn allocate(&self, range: Range<u64>) -> io::Result<()>;

    /// Frees the space of `range`, complete pages, which then reads as zeros. As durable as a write.
    ///
    /// # Errors
    /// The operating system's, for example if the file system does not support it; the space stays.
    fn punch(&self, range: Range<u64>) -> io::Result<()>;

    /// Returns the space that the file uses, if the operating system reports it.
    fn allocated_bytes(&self) -> Option<u64> {
        None
    }

    /// Returns the first byte from `at` on for which the file may have no space; `past` if there is none before it,
    /// `at` if that is unknown. On systems that cannot report it, the file counts as having all its space.
    fn spaced_up_to(&self, _at: u64, past: u64) -> u64 {
        past
    }

    /// Makes the file this long: shorter, or longer by bytes that are zero and have no space yet.
    ///
    /// # Errors
    /// The operating system's.
    fn truncate(&self, to_bytes: u64) -> io::Result<()>;

    /// Makes earlier writes, and the length, durable. Of several concurrent callers, each receives the error of a
    /// failure.
    ///
    /// # Errors
    /// The operating system's. Never call it again after an error: see the trait's head.
    fn sync(&self) -> io::Result<()>;

    /// Checks that the file still has a name and its whole length: otherwise other programs have removed or truncated
    /// it, and its content is lost when it is closed. [`File::sync`] includes this check.
    ///
    /// # Errors
    /// If it was removed or truncated, or the operating system's.
    fn check_in_place(&self) -> io::Result<()> {
        Ok(())
    }

    /// Begins to write `range` to the disk, and does not wait. A hint: only [`File::sync`] makes it durable.
    fn begin_write_back(&self, _range: Range<u64>) {}

    /// Writes `range` to the disk, and waits. A hint, like [`File::begin_write_back`].
    fn write_back(&self, _range: Range<u64>) {}

    /// Announces a read of `range`. A hint.
    fn will_read(&self, _range: Range<u64>) {}

    /// Allows the operating system to drop the file's pages from its cache. A hint.
    fn forget_cached(&self) {}

    /// Returns true on a simulated disk that was configured to break this step; see [`Canary`].
    #[inline(always)]
    fn breaks(&self, _canary: Canary) -> bool {
        false
    }
}

/// The two files of a journal.
#[derive(Debug)]
pub struct Files<F> {
    /// The region's bytes, as of a prefix of the log.
    pub base: F,
    /// The later entries.
    pub log: F,
}
