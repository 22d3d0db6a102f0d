//! The file or device behind a region: how long it is, how long it may get, and how it gets its space.
//!
//! Space is taken before anybody may store to it, because a store to a page that the file system cannot provide ends in
//! a signal. A file that was left with holes is filled when it is opened, for the same reason.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use pmem::Durability;
use rustix::fs::{FallocateFlags, fallocate, fstatfs, fsync, ftruncate};
use rustix::io::{Errno, pwrite, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::device_dax::DeviceDax;
use crate::durability::Kind;
use crate::{MapError, huge};

/// Zeros are written in pieces of this size where space cannot be asked for: large enough to make calls rare.
const ZEROS_BYTES: usize = 1 << 20;

/// The unit of [`std::os::unix::fs::MetadataExt::blocks`], whatever the file system's own.
const STAT_BLOCK_BYTES: u64 = 512;

/// An open file or device.
#[derive(Debug)]
pub(crate) struct Backing {
    file: File,
    kind: Kind,
    page_bytes: u64,
    device: Option<DeviceDax>,
}

impl Backing {
    /// Creates an empty file that did not exist.
    pub(crate) fn create(path: &Path) -> Result<Backing, MapError> {
        let opened = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|source| MapError::Io { path: path.to_owned(), source, doing: "create" })?;
        Backing::of_file(file, path)
    }

    /// Opens a regular file that exists.
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
        Ok(Backing { file, kind: Kind::DeviceDax, page_bytes: device.align_bytes, device: Some(device) })
    }

    fn of_file(file: File, path: &Path) -> Result<Backing, MapError> {
        let kind = Kind::of_file(&file).map_err(MapError::io(path, "examine"))?;
        let page_bytes = match kind {
            Kind::Hugetlbfs => fstatfs(&file).map_err(MapError::io(path, "examine"))?.f_bsize as u64,
            _ => rustix::param::page_size() as u64,
        };
        Ok(Backing { file, kind, page_bytes, device: None })
    }

    /// What a mapping refers to.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// What this is; a file that was mapped with MAP_SYNC is DAX whatever its attributes say.
    pub(crate) fn kind(&self, map_sync: bool) -> Kind {
        if map_sync && self.device.is_none() { Kind::Dax } else { self.kind }
    }

    /// What a fence makes stores survive.
    pub(crate) fn durability(&self, map_sync: bool) -> Durability {
        let survives = self.device.map_or(map_sync, |device| device.survives_power_loss);
        if survives { Durability::Power } else { Durability::Process }
    }

    /// Lengths and offsets of mappings are multiples of this.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// The present length.
    pub(crate) fn len_bytes(&self) -> io::Result<u64> {
        match self.device {
            Some(device) => Ok(device.len_bytes),
            None => Ok(self.file.metadata()?.len()),
        }
    }

    /// The largest length: a device's own; a file's by the process's limit, past which the kernel sends a signal.
    pub(crate) fn limit_bytes(&self) -> u64 {
        match self.device {
            Some(device) => device.len_bytes,
            None => getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX),
        }
    }

    /// Changes the length without taking space.
    pub(crate) fn set_len(&self, to_bytes: u64) -> Result<(), Errno> {
        retry_on_intr(|| ftruncate(&self.file, to_bytes))
    }

    /// Takes space for `range`, which holds nothing yet.
    pub(crate) fn allocate(&self, range: Range<u64>) -> Result<(), Errno> {
        match self.reserve(&range) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(range),
            other => other,
        }
    }

    /// Takes space for holes among the first `len_bytes`, where the file has any and its file system knows how.
    pub(crate) fn fill_holes(&self, len_bytes: u64) -> Result<(), Errno> {
        let sparse = self.file.metadata().is_ok_and(|status| status.blocks() * STAT_BLOCK_BYTES < len_bytes);
        if !sparse || self.device.is_some() {
            return Ok(());
        }
        match self.reserve(&(0..len_bytes)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            other => other,
        }
    }

    /// Takes one small page in every huge page of `range`, so that collapsing finds something to collapse.
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
        retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), range.start, len_bytes))
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

/// Opens what `path` names, without waiting for the other end of a pipe; `None` where it is a directory.
fn open(path: &Path, writable: bool) -> Result<Option<(File, std::fs::Metadata)>, MapError> {
    let opened = OpenOptions::new().read(true).write(writable).custom_flags(libc::O_NONBLOCK).open(path);
    let examined = opened.and_then(|file| file.metadata().map(|status| Some((file, status))));
    match examined {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(None),
        other => other.map_err(|source| MapError::Io { path: path.to_owned(), source, doing: "open" }),
    }
}

/// Makes the names in the directory `path` durable: what was created there, or renamed.
///
/// # Errors
/// If the directory cannot be opened or synced.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_take_the_space_that_cannot_be_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let backing = Backing::create(&directory.path().join("region")).unwrap();
        let end = 2 * ZEROS_BYTES as u64 + 4096;
        backing.set_len(end).unwrap();
        backing.write_zeros(4096..end).unwrap();
        let status = backing.file.metadata().unwrap();
        assert_eq!(status.len(), end);
        assert!(status.blocks() * STAT_BLOCK_BYTES >= end - 4096);
    }

    #[test]
    fn holes_are_filled() {
        let directory = tempfile::tempdir().unwrap();
        let backing = Backing::create(&directory.path().join("region")).unwrap();
        backing.set_len(1 << 20).unwrap();
        backing.fill_holes(1 << 20).unwrap();
        assert!(backing.file.metadata().unwrap().blocks() * STAT_BLOCK_BYTES >= 1 << 20);
    }
}
