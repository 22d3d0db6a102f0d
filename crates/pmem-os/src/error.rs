//! Why a file or device could not be mapped.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use pmem::MediumError;
use rustix::io::Errno;

/// Why a file or device could not be mapped.
#[derive(Debug)]
#[non_exhaustive]
pub enum MapError {
    /// The operating system refused.
    Io {
        /// The file or device.
        path: PathBuf,
        /// What it answered.
        source: io::Error,
        /// What was being done, to follow 'cannot'.
        doing: &'static str,
    },
    /// The file system has no room for the region.
    Full {
        /// The file.
        path: PathBuf,
        /// The size that was asked for.
        wanted_bytes: u64,
    },
    /// The region is larger than a file or the address range may be.
    Limit {
        /// The file.
        path: PathBuf,
        /// The size that was asked for.
        wanted_bytes: u64,
        /// The largest it can be.
        limit_bytes: u64,
    },
    /// The process has no range of addresses left for the region.
    Addresses {
        /// The file or device.
        path: PathBuf,
        /// How many are wanted, all in a row.
        wanted_bytes: u64,
        /// What the operating system answered.
        source: io::Error,
    },
    /// The file or device does not hold a single page.
    TooSmall {
        /// The file or device.
        path: PathBuf,
        /// Its size.
        len_bytes: u64,
        /// The size of a page there.
        page_bytes: u64,
    },
    /// The path names something other than a regular file.
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The path names something other than a device-DAX character device.
    NotADevice {
        /// The path.
        path: PathBuf,
    },
}

impl MapError {
    /// The operating system refused to do `doing` with `path`.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> MapError {
        move |errno| MapError::Io { path: path.to_owned(), source: errno.into(), doing }
    }

    /// There is no range of addresses that could be kept for a region of `len_bytes`.
    pub(crate) fn addresses(path: &Path, kept_bytes: u64, len_bytes: u64) -> impl FnOnce(Errno) -> MapError {
        let wanted_bytes = kept_bytes.max(len_bytes);
        move |errno| MapError::Addresses { path: path.to_owned(), wanted_bytes, source: errno.into() }
    }

    /// As [`MapError::io`], where the refusal may mean that there is no space for `wanted_bytes`.
    pub(crate) fn space(path: &Path, doing: &'static str, wanted_bytes: u64) -> impl FnOnce(Errno) -> MapError {
        move |errno| match errno {
            errno if is_full(errno) => MapError::Full { path: path.to_owned(), wanted_bytes },
            errno => MapError::io(path, doing)(errno),
        }
    }
}

/// What [`pmem::Space::grow`] answers when the operating system refuses `wanted_bytes`.
pub(crate) fn growth_error(errno: Errno, wanted_bytes: u64) -> MediumError {
    if is_full(errno) { MediumError::Full { wanted_bytes } } else { MediumError::Os { errno: errno.raw_os_error() } }
}

/// True for every way to say 'no space left': on the file system, in a quota, in memory or its huge pages, or below the longest that a file may be.
fn is_full(errno: Errno) -> bool {
    matches!(errno, Errno::NOSPC | Errno::DQUOT | Errno::NOMEM | Errno::FBIG)
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::Io { path, source, doing } => write!(f, "cannot {doing} {}: {source}", path.display()),
            MapError::Full { path, wanted_bytes } => {
                write!(f, "the file system of {} has no room for {wanted_bytes} bytes", path.display())
            }
            MapError::Limit { path, wanted_bytes, limit_bytes } => {
                write!(f, "{} cannot be {wanted_bytes} bytes long: its limit is {limit_bytes}", path.display())
            }
            MapError::Addresses { path, wanted_bytes, source } => {
                write!(f, "this process has no {wanted_bytes} addresses in a row left for {}: {source}", path.display())
            }
            MapError::TooSmall { path, len_bytes, page_bytes } => {
                write!(f, "{} has {len_bytes} bytes, less than one page of {page_bytes}", path.display())
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

    /// What waits for room may be given some where there is no more of a file, for whatever reason.
    #[test]
    fn file_at_size_limit_is_full() {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::NOMEM, Errno::FBIG] {
            assert!(growth_error(errno, 1 << 30).is_full(), "{errno}");
        }
        assert!(!growth_error(Errno::IO, 1 << 30).is_full());
    }
}
