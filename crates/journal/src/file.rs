//! The seam to the disk: what the journal asks of a file, so that a simulated disk can stand in.

use std::io;
use std::ops::Range;

use pmem::Canary;

/// An open file. All methods may be called by several threads at once.
///
/// What was written is durable after the next [`File::sync`] that succeeds, unless one failed in between: what a failed sync
/// should have made durable is lost or not, and a later success says nothing about it. Before that each sector of 512 bytes
/// shows after a crash any content that it had since it was last surely durable.
pub trait File: Send + Sync + 'static {
    /// The length.
    ///
    /// # Errors
    /// The operating system's.
    fn len(&self) -> io::Result<u64>;

    /// True for a file of no length.
    ///
    /// # Errors
    /// As for [`File::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `into` with what lies at `at`.
    ///
    /// # Errors
    /// The operating system's; of the kind `UnexpectedEof` if the file ends before.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;

    /// Fills `pages`, whole ones, with those from `at` on that are in the operating system's cache, up to the first that is
    /// not, and says how many bytes that are. A page that is not there is read from the disk. Some systems do not tell: then all of
    /// them are.
    ///
    /// # Errors
    /// As for [`File::read_at`].
    fn read_cached_at(&self, pages: &mut [u8], at: u64) -> io::Result<usize>;

    /// Writes all of `bytes` at `at`.
    ///
    /// # Errors
    /// The operating system's; some of it may be written.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// True where [`File::write_through`] goes past the operating system's cache.
    fn has_way_past_cache(&self) -> bool {
        false
    }

    /// Writes as [`File::write_at`] does, for a caller that syncs at once. `pages` are whole ones, of 4096 bytes, in memory as well
    /// as in the file.
    ///
    /// # Errors
    /// As for [`File::write_at`].
    fn write_through(&self, pages: &[u8], at: u64) -> io::Result<()> {
        self.write_at(pages, at)
    }

    /// Takes space for `range`, as far as it has none, and makes the file so long. New bytes are zero; others stay.
    ///
    /// # Errors
    /// The operating system's, such as that there is no space. The file may have become longer.
    fn allocate(&self, range: Range<u64>) -> io::Result<()>;

    /// Gives the space of `range`, whole pages, back: it reads as zeros. As durable as a write.
    ///
    /// # Errors
    /// The operating system's, such as that the file system cannot; the space stays.
    fn punch(&self, range: Range<u64>) -> io::Result<()>;

    /// The space that the file takes, if the operating system says.
    fn allocated_bytes(&self) -> Option<u64> {
        None
    }

    /// Where the first byte lies, from `at` on, for which the file may have no space; `past` if there is none before, `at` if nothing is known. Some systems
    /// do not tell: then they have it all.
    fn spaced_up_to(&self, _at: u64, past: u64) -> u64 {
        past
    }

    /// Makes the file this long: shorter, or longer by bytes that are zero and have no space yet.
    ///
    /// # Errors
    /// The operating system's.
    fn truncate(&self, to_bytes: u64) -> io::Result<()>;

    /// Makes what was written before, and the length, durable. Of several at once each is told of a failure.
    ///
    /// # Errors
    /// The operating system's. Never to be tried again: see the trait's head.
    fn sync(&self) -> io::Result<()>;

    /// Begins to write what lies in `range` to the disk, and does not wait. A hint: only [`File::sync`] makes it durable.
    fn begin_write_back(&self, _range: Range<u64>) {}

    /// Writes what lies in `range` to the disk, and waits. A hint, as [`File::begin_write_back`].
    fn write_back(&self, _range: Range<u64>) {}

    /// What lies in `range` is about to be read. A hint.
    fn will_read(&self, _range: Range<u64>) {}

    /// What was read and written need not stay in the operating system's cache. A hint.
    fn forget_cached(&self) {}

    /// True on a simulated disk that was asked to break this step; see [`Canary`].
    #[inline(always)]
    fn breaks(&self, _canary: Canary) -> bool {
        false
    }
}

/// The two files of a journal.
#[derive(Debug)]
pub struct Files<F> {
    /// The region, as a prefix of the log left it.
    pub base: F,
    /// What came after.
    pub log: F,
}
