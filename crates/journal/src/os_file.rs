//! Files of the operating system.

use std::fs::{File as StdFile, Metadata, OpenOptions};
use std::io::{self, IoSliceMut};
use std::num::NonZero;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use pmem::TRUNCATED_ERRNO;
use pmem_os::{LockError, StoreLock};
use rustix::fs::{Advice, AtFlags, FallocateFlags, OFlags, SeekFrom, StatxFlags, fadvise, fallocate, seek, statx};
use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::File;
use crate::pages::PAGE_BYTES;

/// Zeros are written in pieces of this size if the file system cannot allocate: large enough to make calls rare.
const ZEROS_BYTES: usize = 1 << 20;

/// The unit of [`MetadataExt::blocks`], on every file system.
const STAT_BLOCK_BYTES: u64 = 512;

/// Number of handles for syncing: as many as threads that sync at the same time.
const SYNC_HANDLE_COUNT: usize = crate::turns::LANE_COUNT as usize;

/// An open file of the operating system.
#[derive(Debug)]
pub struct OsFile {
    file: StdFile,
    /// A handle that bypasses the cache, if the file supports that.
    direct: Option<StdFile>,
    /// Opened separately: the kernel reports a write failure to each handle, but only once.
    to_sync: [Mutex<StdFile>; SYNC_HANDLE_COUNT],
    writable: bool,
    /// The file is at least this long, unless another program has truncated it.
    len_bytes_min: AtomicU64,
}

impl OsFile {
    /// Creates the file `path`, which must not exist, with access only for its owner.
    ///
    /// # Errors
    /// The operating system's.
    pub fn create(path: &Path) -> io::Result<OsFile> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        pmem_os::write_in_place(&file);
        OsFile::of_opened(file, path, true)
    }

    /// Opens the file `path`.
    ///
    /// # Errors
    /// The operating system's; an error if `path` leads to something else than a file, or to another file while it
    /// is opened.
    pub fn open(path: &Path, writable: bool) -> io::Result<OsFile> {
        OsFile::of_opened(reopened(path, writable)?, path, writable)
    }

    /// Opens the other handles of the same file: a write through one handle is synced through another.
    fn of_opened(file: StdFile, path: &Path, writable: bool) -> io::Result<OsFile> {
        let examined = file.metadata()?;
        if !examined.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        if writable {
            within_limit(examined.len())?;
        }
        let is_same = |other: &StdFile| {
            let other = other.metadata()?;
            Ok::<_, io::Error>((other.dev(), other.ino()) == (examined.dev(), examined.ino()))
        };
        let again = || match reopened(path, writable)? {
            other if is_same(&other)? => Ok(other),
            _ => Err(io::Error::other("another file took its place while it was opened")),
        };
        let direct = open_direct(path, &file, writable);
        let direct = direct.filter(|direct| is_same(direct).unwrap_or(false));
        let to_sync = [Mutex::new(again()?), Mutex::new(again()?)];
        Ok(OsFile { file, direct, to_sync, writable, len_bytes_min: AtomicU64::new(examined.len()) })
    }

    /// Locks the file, called `path`: for a writer, or for one of many readers if it was opened for reading.
    ///
    /// # Errors
    /// See [`LockError`].
    pub fn lock(&self, path: &Path) -> Result<StoreLock, LockError> {
        StoreLock::of_open(&self.file, path, self.writable)
    }

    /// Returns the kind of the file's storage, as in statistics.
    ///
    /// # Errors
    /// If the file system does not report it.
    pub fn medium_name(&self) -> io::Result<&'static str> {
        pmem_os::medium_name(&self.file)
    }

    /// Returns the file's metadata; an error if another program has truncated it.
    fn whole_metadata(&self) -> io::Result<Metadata> {
        // This process may change the length in between.
        let before = self.len_bytes_min.load(Ordering::SeqCst);
        let found = self.file.metadata()?;
        let len_bytes_min = before.min(self.len_bytes_min.load(Ordering::SeqCst));
        if found.len() < len_bytes_min { Err(io::Error::from_raw_os_error(TRUNCATED_ERRNO)) } else { Ok(found) }
    }

    /// Checks for truncation before the file's length may become `end`. Otherwise a truncated file would have its whole
    /// length again, with zeros, and no later check would notice.
    fn check_before_end(&self, end: u64) -> io::Result<()> {
        if end < self.len_bytes_min.load(Ordering::SeqCst) { Ok(()) } else { self.whole_metadata().map(drop) }
    }

    fn write_zeros(&self, from_bytes: u64, to_bytes: u64) -> io::Result<()> {
        let zeros = vec![0; ZEROS_BYTES];
        let mut at = from_bytes;
        while at < to_bytes {
            let len = (to_bytes - at).min(ZEROS_BYTES as u64);
            self.file.write_all_at(&zeros[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }
}

/// Returns an error if a file would exceed the process' limit on the length of files. Beyond the limit, a write, or
/// a longer file, ends the process by a signal. Files get longer only by `allocate`, so checks there and at opening
/// are enough.
fn within_limit(len_bytes: u64) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit_bytes) if len_bytes > limit_bytes => Err(Errno::FBIG.into()),
        _ => Ok(()),
    }
}

/// Opens `path`. Does not wait for the other end of a pipe.
fn reopened(path: &Path, writable: bool) -> io::Result<StdFile> {
    OpenOptions::new().read(true).write(writable).custom_flags(libc::O_NONBLOCK).open(path)
}

/// Opens a handle that reads and writes complete pages past the cache. A file that does not report its block size may
/// support writing pages; if it does not, it is written through the cache.
fn open_direct(path: &Path, file: &StdFile, writable: bool) -> Option<StdFile> {
    let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let says = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN);
    let block_bytes = found.stx_dio_offset_align.max(found.stx_dio_mem_align) as usize;
    let takes_pages = !says || (1..=PAGE_BYTES).contains(&block_bytes);
    let open =
        || OpenOptions::new().read(true).write(writable).custom_flags(OFlags::DIRECT.bits() as i32).open(path).ok();
    takes_pages.then(open)?
}

fn sync_range(file: &StdFile, range: Range<u64>, flags: libc::c_uint) {
    let (offset, len) = (range.start as libc::off64_t, (range.end - range.start) as libc::off64_t);
    // SAFETY: the descriptor is open. The kernel accesses no memory of this process.
    let _ = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
}

impl File for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }

    fn read_pages(&self, pages: &mut [u8], at: u64) -> io::Result<()> {
        match &self.direct {
            Some(direct) => direct.read_exact_at(pages, at),
            None => {
                self.read_at(pages, at)?;
                let _ = fadvise(&self.file, at, NonZero::new(pages.len() as u64), Advice::DontNeed);
                Ok(())
            }
        }
    }

    fn read_cached_at(&self, pages: &mut [u8], at: u64) -> io::Result<usize> {
        let read = retry_on_intr(|| preadv2(&self.file, &mut [IoSliceMut::new(pages)], at, ReadWriteFlags::NOWAIT));
        match read {
            Ok(read_bytes) if read_bytes > 0 && read_bytes.is_multiple_of(PAGE_BYTES) => Ok(read_bytes),
            Err(Errno::AGAIN) => Ok(0),
            _ => self.read_at(pages, at).map(|()| pages.len()),
        }
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.check_before_end(at + bytes.len() as u64)?;
        self.file.write_all_at(bytes, at)
    }

    fn has_way_past_cache(&self) -> bool {
        self.direct.is_some()
    }

    fn write_through(&self, pages: &[u8], at: u64) -> io::Result<()> {
        self.check_before_end(at + pages.len() as u64)?;
        self.direct.as_ref().unwrap_or(&self.file).write_all_at(pages, at)
    }

    fn allocate(&self, range: Range<u64>) -> io::Result<()> {
        within_limit(range.end)?;
        self.check_before_end(range.end)?;
        let len_bytes = range.end - range.start;
        match retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), range.start, len_bytes)) {
            // Existing content stays, including holes: a file system that cannot allocate has freed no space.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(self.len()?, range.end)?,
            // Space behind the file's end does not count: only a longer file may be written there.
            Err(Errno::NOSPC) if range.end <= self.len()? && pmem_os::has_space(&self.file, range.clone()) => {}
            allocated => allocated?,
        }
        self.len_bytes_min.fetch_max(range.end, Ordering::SeqCst);
        Ok(())
    }

    fn punch(&self, range: Range<u64>) -> io::Result<()> {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(retry_on_intr(|| fallocate(&self.file, how, range.start, range.end - range.start))?)
    }

    fn allocated_bytes(&self) -> Option<u64> {
        Some(self.file.metadata().ok()?.blocks() * STAT_BLOCK_BYTES)
    }

    fn spaced_up_to(&self, at: u64, past: u64) -> u64 {
        seek(&self.file, SeekFrom::Hole(at)).map_or(at, |hole| hole.min(past))
    }

    fn truncate(&self, to_bytes: u64) -> io::Result<()> {
        within_limit(to_bytes)?;
        // Also if the file gets shorter: another program may have made it shorter than that.
        self.whole_metadata()?;
        self.len_bytes_min.fetch_min(to_bytes, Ordering::SeqCst);
        self.file.set_len(to_bytes)?;
        self.len_bytes_min.fetch_max(to_bytes, Ordering::SeqCst);
        Ok(())
    }

    /// Syncs the file. A sync counts only if the file system still works afterwards. ext4 and XFS return success
    /// from a sync during a shutdown, although their own log, and with it the extents of the written data, is lost.
    /// A read of no bytes, which reaches no disk, fails then.
    fn sync(&self) -> io::Result<()> {
        let free = self.to_sync.iter().find_map(|handle| handle.try_lock());
        let handle = free.unwrap_or_else(|| self.to_sync[0].lock());
        handle.sync_data()?;
        handle.read_at(&mut [], 0)?;
        self.check_in_place()
    }

    fn check_in_place(&self) -> io::Result<()> {
        if self.whole_metadata()?.nlink() == 0 { Err(Errno::NOENT.into()) } else { Ok(()) }
    }

    fn begin_write_back(&self, range: Range<u64>) {
        sync_range(&self.file, range, libc::SYNC_FILE_RANGE_WRITE);
    }

    fn write_back(&self, range: Range<u64>) {
        sync_range(&self.file, range, libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER);
    }

    fn will_read(&self, range: Range<u64>) {
        let _ = fadvise(&self.file, range.start, NonZero::new(range.end - range.start), Advice::WillNeed);
    }

    fn forget_cached(&self) {
        let _ = fadvise(&self.file, 0, None, Advice::DontNeed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_from_the_cache_alone() {
        let directory = tempfile::tempdir().unwrap();
        let file = OsFile::create(&directory.path().join("file")).unwrap();
        let written: Vec<u8> = (0..3 * PAGE_BYTES).map(|i| (i / 7) as u8).collect();
        file.write_at(&written, 0).unwrap();
        let mut found = vec![0; written.len()];
        assert_eq!(file.read_cached_at(&mut found, 0).unwrap(), written.len(), "what was not synced is in the cache");
        assert_eq!(found, written);
        file.sync().unwrap();
        file.forget_cached();
        // If the request is only a hint, the pages may still be there.
        let cached_bytes = file.read_cached_at(&mut found, 0).unwrap();
        assert!(cached_bytes.is_multiple_of(PAGE_BYTES), "{cached_bytes}");
        assert_eq!(found[..cached_bytes], written[..cached_bytes]);
    }

    /// A write through one handle must not be synced through a handle of another file.
    #[test]
    fn replaced_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        drop([OsFile::create(&first).unwrap(), OsFile::create(&second).unwrap()]);
        for writable in [true, false] {
            let refused = OsFile::of_opened(reopened(&first, writable).unwrap(), &second, writable).unwrap_err();
            assert!(refused.to_string().contains("another file took its place"), "{refused}");
            assert!(OsFile::open(directory.path(), false).unwrap_err().to_string().contains("not a regular file"));
        }
        OsFile::of_opened(reopened(&first, true).unwrap(), &first, true).unwrap();
    }

    #[test]
    fn removed_files_are_not_synced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = OsFile::create(&path).unwrap();
        file.write_at(&[1; 4096], 0).unwrap();
        file.sync().unwrap();
        std::fs::rename(&path, directory.path().join("other")).unwrap();
        file.sync().unwrap();
        std::fs::remove_file(directory.path().join("other")).unwrap();
        assert_eq!(file.sync().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn truncated_files_are_not_synced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = OsFile::create(&path).unwrap();
        file.allocate(0..8192).unwrap();
        file.truncate(4096).unwrap();
        file.sync().unwrap();
        file.truncate(1 << 20).unwrap();
        file.sync().unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len((1 << 20) - 1).unwrap();
        assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(TRUNCATED_ERRNO));
    }

    /// A truncated file that gets its length back has lost its content all the same.
    #[test]
    fn truncated_files_are_not_lengthened() {
        type Lengthen = fn(&OsFile) -> io::Result<()>;
        let ways: [Lengthen; 5] = [
            |file| file.allocate(8192..16384),
            |file| file.truncate(16384),
            |file| file.truncate(4096),
            |file| file.write_at(&[1; 4096], 4096),
            |file| file.write_through(&[1; 4096], 4096),
        ];
        for lengthen in ways {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("file");
            let file = OsFile::create(&path).unwrap();
            file.allocate(0..8192).unwrap();
            OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
            assert_eq!(lengthen(&file).unwrap_err().raw_os_error(), Some(TRUNCATED_ERRNO));
            file.write_at(&[1; 4096], 0).unwrap();
            assert_eq!(file.sync().unwrap_err().raw_os_error(), Some(TRUNCATED_ERRNO));
        }
    }

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
