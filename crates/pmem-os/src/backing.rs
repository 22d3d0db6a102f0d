//! The file or DAX device behind a region: length, limit, and allocation of space.
//!
//! Space is allocated before any thread may store to it, because a store to a page that the file system cannot
//! provide ends in a signal. Holes in a file, punched or left by a copy, are filled before their first use for the
//! same reason.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use pmem::Durability;
use rustix::fs::{
    FallocateFlags, IFlags, SeekFrom, fallocate, fstatfs, fsync, ftruncate, ioctl_getflags, ioctl_setflags, seek,
};
use rustix::io::{Errno, pwrite, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::device_dax::DeviceDax;
use crate::durability::Kind;
use crate::{MapError, has_space, huge, persistence};

/// Zeros are written in pieces of this size if the file system cannot allocate: large enough to make calls rare.
const ZEROS_BYTES: usize = 1 << 20;

/// The unit of [`std::os::unix::fs::MetadataExt::blocks`], on every file system.
const STAT_BLOCK_BYTES: u64 = 512;

/// An open file or DAX device.
#[derive(Debug)]
pub(crate) struct Backing {
    file: File,
    kind: Kind,
    page_bytes: u64,
    /// The size of the largest page that the kernel may use for the file; the last such page may reach past the
    /// file's end.
    page_bytes_max: u64,
    device: Option<DeviceDax>,
}

impl Backing {
    /// Creates an empty file, which must not exist.
    pub(crate) fn create(path: &Path) -> Result<Backing, MapError> {
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|source| MapError::Io { path: path.to_owned(), source, doing: "create" })?;
        write_in_place(&file);
        Backing::of_file(file, path)
    }

    /// Opens an existing regular file.
    pub(crate) fn open(path: &Path, writable: bool) -> Result<Backing, MapError> {
        let file = open(path, writable)?.filter(|(_, status)| status.is_file());
        let (file, _) = file.ok_or_else(|| MapError::NotAFile { path: path.to_owned() })?;
        Backing::of_file(file, path)
    }

    /// Opens a device-DAX character device.
    pub(crate) fn open_device(path: &Path, writable: bool) -> Result<Backing, MapError> {
        let found = open(path, writable)?.filter(|(_, status)| status.file_type().is_char_device());
        let device = found.and_then(|(file, status)| Some((file, DeviceDax::of_device_number(status.rdev())?)));
        let (file, device) = device.ok_or_else(|| MapError::NotADevice { path: path.to_owned() })?;
        let page_bytes = device.align_bytes;
        Ok(Backing { file, kind: Kind::DeviceDax, page_bytes, page_bytes_max: page_bytes, device: Some(device) })
    }

    fn of_file(file: File, path: &Path) -> Result<Backing, MapError> {
        let kind = Kind::of_file(&file).map_err(MapError::io(path, "examine"))?;
        let page_bytes = match kind {
            Kind::Hugetlbfs => fstatfs(&file).map_err(MapError::io(path, "examine"))?.f_bsize as u64,
            _ => rustix::param::page_size() as u64,
        };
        let page_bytes_max = huge::page_bytes().map_or(page_bytes, |bytes| bytes.max(page_bytes));
        Ok(Backing { file, kind, page_bytes, page_bytes_max, device: None })
    }

    /// Returns the descriptor for mappings.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns the kind of file. A file that was mapped with MAP_SYNC is DAX, even if its attributes do not show
    /// it.
    pub(crate) fn kind(&self, map_sync: bool) -> Kind {
        if map_sync && self.device.is_none() { Kind::Dax } else { self.kind }
    }

    /// Returns the failures that a fenced store survives. On a file system, MAP_SYNC keeps the file's blocks, and
    /// the memory below has to keep the stores.
    pub(crate) fn durability(&self, map_sync: bool) -> Durability {
        let of_file = || map_sync && self.file.metadata().is_ok_and(|file| persistence::of_block_device(file.dev()));
        let survives = self.device.map_or_else(of_file, |device| device.survives_power_loss);
        if survives { Durability::Power } else { Durability::Process }
    }

    /// Returns the unit of lengths and offsets of mappings.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Returns the present length.
    pub(crate) fn len_bytes(&self) -> io::Result<u64> {
        match self.device {
            Some(device) => Ok(device.len_bytes),
            None => Ok(self.file.metadata()?.len()),
        }
    }

    /// Returns the largest length: a DAX device's own; for a file, the process' limit, past which the kernel sends
    /// a signal.
    pub(crate) fn limit_bytes(&self) -> u64 {
        match self.device {
            Some(device) => device.len_bytes,
            None => getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX),
        }
    }

    /// Changes the length without allocating space.
    pub(crate) fn set_len(&self, to_bytes: u64) -> Result<(), Errno> {
        retry_on_intr(|| ftruncate(&self.file, to_bytes))
    }

    /// Allocates space for `range`, which has no content yet.
    pub(crate) fn allocate(&self, range: Range<u64>) -> Result<(), Errno> {
        match self.reserve(&range) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(range),
            other => other,
        }
    }

    /// Returns the space that the file uses; `None` for a DAX device.
    pub(crate) fn allocated_bytes(&self) -> Option<u64> {
        let is_file = self.device.is_none();
        is_file.then(|| self.file.metadata().ok()).flatten().map(|status| status.blocks() * STAT_BLOCK_BYTES)
    }

    /// Allocates space for the holes in `range`, if the file has any and its file system supports that.
    pub(crate) fn fill_holes(&self, range: Range<u64>) -> Result<(), Errno> {
        if self.device.is_some() || self.is_surely_whole() {
            return Ok(());
        }
        let mut at = range.start;
        while let Some(hole) = self.hole(at..range.end) {
            match self.reserve(&hole) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                reserved => reserved?,
            }
            at = hole.end;
        }
        Ok(())
    }

    /// Returns true if there is surely no hole. On tmpfs, seeking a hole visits every page. There, blocks are
    /// pages, including those of a huge page that reaches past the file's end. Other file systems also count blocks
    /// for their own data.
    fn is_surely_whole(&self) -> bool {
        let is_whole = |status: std::fs::Metadata| {
            status.len().is_multiple_of(self.page_bytes_max) && status.blocks() * STAT_BLOCK_BYTES >= status.len()
        };
        self.kind == Kind::Tmpfs && self.file.metadata().is_ok_and(is_whole)
    }

    /// Returns the start of the first hole behind `from`, or `u64::MAX` if there is none.
    pub(crate) fn whole_until(&self, from: u64) -> u64 {
        if self.is_surely_whole() {
            return u64::MAX;
        }
        self.len_bytes().ok().and_then(|len_bytes| self.hole(from..len_bytes)).map_or(u64::MAX, |hole| hole.start)
    }

    /// Returns the first hole in `range`, or a range that may be one: space that was never written to looks the
    /// same.
    fn hole(&self, range: Range<u64>) -> Option<Range<u64>> {
        if range.is_empty() || self.kind == Kind::Hugetlbfs {
            // On hugetlbfs, holes cannot be sought; pages are few.
            return (!range.is_empty()).then_some(range);
        }
        let start = match seek(&self.file, SeekFrom::Hole(range.start)) {
            Ok(start) => start,
            Err(Errno::INVAL) => range.start,
            Err(_) => return None,
        };
        let past = seek(&self.file, SeekFrom::Data(start)).unwrap_or(range.end).min(range.end);
        let start = start - start % self.page_bytes;
        (start < past).then_some(start.max(range.start)..past)
    }

    /// Frees the space of `range`, complete pages; returns false if the file system cannot.
    pub(crate) fn punch(&self, range: Range<u64>) -> bool {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let len_bytes = range.end - range.start;
        self.device.is_none() && retry_on_intr(|| fallocate(&self.file, how, range.start, len_bytes)).is_ok()
    }

    /// Allocates one small page in every huge page of `range`, so that collapsing finds a page to collapse.
    pub(crate) fn seed(&self, range: Range<u64>, huge_page_bytes: u64) -> Result<(), Errno> {
        huge::whole_pages(range, huge_page_bytes)
            .step_by(huge_page_bytes as usize)
            .try_for_each(|start| self.reserve(&(start..start + self.page_bytes)))
    }

    /// Makes the file's bytes and its length durable.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        if self.device.is_some() { Ok(()) } else { retry_on_intr(|| fsync(&self.file)) }
    }

    fn reserve(&self, range: &Range<u64>) -> Result<(), Errno> {
        let len_bytes = range.end - range.start;
        match retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), range.start, len_bytes)) {
            Err(Errno::NOSPC) if has_space(&self.file, range.clone()) => Ok(()),
            reserved => reserved,
        }
    }

    fn write_zeros(&self, range: Range<u64>) -> Result<(), Errno> {
        let zeros = vec![0; ZEROS_BYTES];
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(ZEROS_BYTES as u64) as usize;
            at += retry_on_intr(|| pwrite(&self.file, &zeros[..len], at))? as u64;
        }
        Ok(())
    }
}

/// Opens `path`, without waiting for the other end of a pipe; returns `None` if it is a directory.
fn open(path: &Path, writable: bool) -> Result<Option<(File, std::fs::Metadata)>, MapError> {
    let opened = OpenOptions::new().read(true).write(writable).custom_flags(libc::O_NONBLOCK).open(path);
    let examined = opened.and_then(|file| file.metadata().map(|status| Some((file, status))));
    match examined {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(None),
        other => other.map_err(|source| MapError::Io { path: path.to_owned(), source, doing: "open" }),
    }
}

/// Turns off copy-on-write for `file`, which is new and empty, on a file system that copies on write. Otherwise an
/// overwrite would need new space: on a full disk, the file system would refuse a write, and end a process that
/// stores to a mapped page, although all of the file has space. The file system then keeps no checksums for the
/// file; its content has its own. On other file systems, and for a file that a snapshot shares, nothing changes.
pub fn write_in_place(file: &File) {
    if let Ok(flags) = ioctl_getflags(file) {
        let _ = ioctl_setflags(file, flags | IFlags::NOCOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_replace_missing_fallocate() {
        let directory = tempfile::tempdir().unwrap();
        let backing = Backing::create(&directory.path().join("region")).unwrap();
        let end = 2 * ZEROS_BYTES as u64 + 4096;
        backing.set_len(end).unwrap();
        backing.write_zeros(4096..end).unwrap();
        let status = backing.file.metadata().unwrap();
        assert_eq!(status.len(), end);
        assert!(status.blocks() * STAT_BLOCK_BYTES >= end - 4096);
    }

    fn allocated(backing: &Backing) -> u64 {
        backing.allocated_bytes().unwrap()
    }

    #[test]
    fn holes_are_filled_on_request() {
        for place in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            let backing = Backing::create(&place.path().join("region")).unwrap();
            backing.set_len(1 << 20).unwrap();
            backing.fill_holes(65_536..131_072).unwrap();
            assert_eq!(allocated(&backing), 65_536);
            backing.fill_holes(0..1 << 20).unwrap();
            assert!(allocated(&backing) >= 1 << 20);
        }
    }

    #[test]
    fn punched_space_is_freed_and_reusable() {
        for place in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            let backing = Backing::create(&place.path().join("region")).unwrap();
            backing.set_len(1 << 20).unwrap();
            backing.write_zeros(0..1 << 20).unwrap();
            if backing.punch(4096..65_536) && backing.punch(131_072..1 << 20) {
                assert_eq!(allocated(&backing), 4096 + 65_536);
                backing.fill_holes(0..1 << 20).unwrap();
            }
            assert!(allocated(&backing) >= 1 << 20);
        }
    }
}
