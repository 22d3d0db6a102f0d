//! The errors of mapping a file or DAX device.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use pmem::MediumError;
use rustix::io::Errno;

/// The errors of mapping a file or DAX device.
#[derive(Debug)]
#[non_exhaustive]
pub enum MapError {
    /// An operation of the operating system failed.
    Io {
        /// The file or device.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
        /// The operation, as a verb that follows 'cannot'.
        doing: &'static str,
    },
    /// The file system has no space for the region.
    Full {
        /// The file.
        path: PathBuf,
        /// The requested size.
        wanted_bytes: u64,
    },
    /// The region is larger than a file or the address range may be.
    Limit {
        /// The file.
        path: PathBuf,
        /// The requested size.
        wanted_bytes: u64,
        /// The largest possible size.
        limit_bytes: u64,
    },
    /// The process has no range of addresses left for the region.
    Addresses {
        /// The file or device.
        path: PathBuf,
        /// The wanted number of consecutive addresses.
        wanted_bytes: u64,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file or device is shorter than a page.
    TooSmall {
        /// The file or device.
        path: PathBuf,
        /// Its size.
        len_bytes: u64,
        /// The size of a page there.
        page_bytes: u64,
    },
    /// The path leads to something other than a regular file.
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The path leads to something other than a device-DAX character device.
    NotADevice {
        /// The path.
        path: PathBuf,
    },
}

impl MapError {
    /// Returns a function that makes the error of a failed operation `doing` on `path`.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> MapError {
        move |errno| MapError::Io { path: path.to_owned(), source: errno.into(), doing }
    }

    /// Returns a function that makes the error for a missing range of addresses for a region of `len_bytes`.
    pub(crate) fn addresses(path: &Path, kept_bytes: u64, len_bytes: u64) -> impl FnOnce(Errno) -> MapError {
        let wanted_bytes = kept_bytes.max(len_bytes);
        move |errno| MapError::Addresses { path: path.to_owned(), wanted_bytes, source: errno.into() }
    }

    /// Like [`MapError::io`], if the error may mean that there is no space for `wanted_bytes`.
    pub(crate) fn space(path: &Path, doing: &'static str, wanted_bytes: u64) -> impl FnOnce(Errno) -> MapError {
        move |errno| match errno {
            errno if is_full(errno) => MapError::Full { path: path.to_owned(), wanted_bytes },
            errno => MapError::io(path, doing)(errno),
        }
    }
}

/// Returns the error of [`pmem::Space::grow`] if the operating system refuses `wanted_bytes`.
pub(crate) fn growth_error(errno: Errno, wanted_bytes: u64) -> MediumError {
    if is_full(errno) { MediumError::Full { wanted_bytes } } else { MediumError::Os { errno: errno.raw_os_error() } }
}

/// Returns true for every error that means 'no space left': on the file system, in a quota, in memory or its huge
/// pages, or because of the limit on a file's length.
fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::NOMEM | Errno::FBIG)
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::Io { path, source, doing } => write!(f, "cannot {doing} {}: {source}", path.display()),
            MapError::Full { path, wanted_bytes } => {
                write!(f, "cannot allocate {wanted_bytes} bytes for {}: its file system is full", path.display())
            }
            MapError::Limit { path, wanted_bytes, limit_bytes } => {
                write!(f, "{} cannot be {wanted_bytes} bytes long: its limit is {limit_bytes}", path.display())
            }
            MapError::Addresses { path, wanted_bytes, source } => {
                write!(f, "cannot reserve {wanted_bytes} consecutive addresses for {}: {source}", path.display())
            }
            MapError::TooSmall { path, len_bytes, page_bytes } => {
                write!(f, "{} has {len_bytes} bytes, which is less than one page of {page_bytes}", path.display())
            }
            MapError::NotAFile { path } => write!(f, "{} is not a regular file", path.display()),
            MapError::NotADevice { path } => write!(f, "{} is not a device-DAX device", path.display()),
        }
    }
}

impl Error for MapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            MapError::Io { source, .. } | MapError::Addresses { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A caller that waits for free space may get some if the file cannot be made longer, for any of these reasons.
    #[test]
    fn file_at_size_limit_is_full() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::NOMEM, Errno::FBIG] {
            assert!(growth_error(errno, 1 << 30).is_full(), "{errno}");
        }
        assert!(!growth_error(Errno::IO, 1 << 30).is_full());
    }
}
