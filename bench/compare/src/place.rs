//! The directories of the stores: on a disk, or in tmpfs for systems whose names end in `-tmpfs`.

use std::ffi::CString;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::system::System;

/// The directories; see the module.
#[derive(Debug)]
pub(crate) struct Place {
    disk: PathBuf,
    tmpfs: PathBuf,
    /// Major and minor number of the disk's device.
    pub(crate) device: (u32, u32),
}

impl Place {
    /// # Errors
    /// If `disk` is in memory, or `tmpfs` is not.
    pub(crate) fn new(disk: &Path, tmpfs: &Path) -> Result<Place, Error> {
        fs::create_dir_all(disk).map_err(|error| format!("cannot create {}: {error}", disk.display()))?;
        if is_in_memory(disk)? {
            return Err(format!("{} is in memory, where a sync makes nothing durable", disk.display()).into());
        }
        if !is_in_memory(tmpfs)? {
            return Err(format!("{} is not a tmpfs", tmpfs.display()).into());
        }
        let device = fs::metadata(disk)?.dev();
        let device = (libc::major(device), libc::minor(device));
        Ok(Place { disk: disk.to_owned(), tmpfs: tmpfs.to_owned(), device })
    }

    /// Returns the directory of a system's store.
    pub(crate) fn of(&self, system: System) -> PathBuf {
        if system.is_in_memory() {
            self.tmpfs.join(format!("bench-compare-{system}"))
        } else {
            self.disk.join(system.to_string())
        }
    }
}

fn is_in_memory(directory: &Path) -> Result<bool, Error> {
    let path = CString::new(directory.as_os_str().as_bytes())?;
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path ends in a zero byte, and `found` has space for the answer.
    if unsafe { libc::statfs(path.as_ptr(), found.as_mut_ptr()) } != 0 {
        return Err(format!("cannot examine {}: {}", directory.display(), io::Error::last_os_error()).into());
    }
    // SAFETY: the call filled it in.
    let kind = unsafe { found.assume_init() }.f_type;
    Ok(kind == libc::TMPFS_MAGIC || kind == libc::HUGETLBFS_MAGIC || kind == RAMFS_MAGIC)
}

/// From `linux/magic.h`; libc does not define it.
const RAMFS_MAGIC: libc::__fsword_t = 0x8584_58f6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_medium_is_refused() {
        let memory = Path::new("/dev/shm");
        let refused = Place::new(memory, memory).unwrap_err().to_string();
        assert!(refused.contains("/dev/shm is in memory"), "{refused}");
    }
}
