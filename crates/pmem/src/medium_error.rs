//! The error type of media.

use core::fmt;

/// The error number of [`MediumError::Poisoned`] if another program has truncated a file. It is above all error numbers
/// of Linux, so that no failure of a disk looks like a truncation.
pub const TRUNCATED_ERRNO: i32 = 4096;

/// The errors of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MediumError {
    /// The region cannot grow to `wanted_bytes`, or its holes cannot be filled: the file system or DAX device is
    /// full.
    Full {
        /// The requested size of the region; the present one if a hole cannot be filled.
        wanted_bytes: u64,
    },
    /// The region cannot grow beyond its limit (`region_bytes_max`), or beyond the free addresses of the process
    /// behind it.
    Limit {
        /// The requested size of the region.
        wanted_bytes: u64,
        /// The largest possible size.
        limit_bytes: u64,
    },
    /// A span is outside the region: an offset in the store is damaged.
    OutOfBounds {
        /// The span's first byte.
        offset: u64,
        /// The span's length.
        len_bytes: u64,
        /// The region's size.
        region_bytes: u64,
    },
    /// A part of the region could not be read when it was needed: its bytes are unknown.
    Unreadable {
        /// The first byte of the part.
        offset: u64,
        /// The number as in `errno.h`.
        errno: i32,
    },
    /// The operating system returned an error.
    Os {
        /// The number as in `errno.h`.
        errno: i32,
    },
    /// The medium was opened for reading.
    ReadOnly,
    /// The log could not be written or synced, so nothing more can become durable.
    Poisoned {
        /// The number as in `errno.h`.
        errno: i32,
    },
    /// The region's file, or its log, has no name any more: writes to it are lost when it is closed.
    Removed,
}

impl MediumError {
    /// Returns true if there is no space for more. Operations that need no space may still succeed; the failed one
    /// may succeed once space is free.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, MediumError::Full { .. } | MediumError::Limit { .. })
    }
}

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MediumError::Full { wanted_bytes } => {
                write!(f, "cannot grow the store to {wanted_bytes} bytes: no space left on the disk; free some")
            }
            MediumError::Limit { wanted_bytes, limit_bytes } => {
                write!(
                    f,
                    "cannot grow the store to {wanted_bytes} bytes: its limit (region_bytes_max) is {limit_bytes}; open it \
                     again with a higher limit"
                )
            }
            MediumError::OutOfBounds { offset, len_bytes, region_bytes } => {
                write!(f, "{len_bytes} bytes at offset {offset:#x} lie outside the region of {region_bytes} bytes")
            }
            MediumError::Unreadable { offset, errno } => write!(
                f,
                "cannot read the store's bytes at offset {offset:#x} from the disk (error number {errno}); check the disk, \
                 and restore a backup if the error remains"
            ),
            MediumError::Os { errno } => write!(f, "a system call failed with error number {errno}"),
            MediumError::ReadOnly => f.write_str("the store is open for reading only"),
            MediumError::Poisoned { errno: TRUNCATED_ERRNO } => f.write_str(
                "a file of the store was truncated while it is open: no more writes are accepted; read the data that \
                 you need before you close it",
            ),
            MediumError::Poisoned { errno } => write!(
                f,
                "writing to the disk failed (error number {errno}): acknowledged writes are safe, but no more are \
                 accepted; open the store again"
            ),
            MediumError::Removed => f.write_str(
                "the store's files were removed while it is open: no more writes are accepted; back the store up to \
                 another place before you close it",
            ),
        }
    }
}

impl core::error::Error for MediumError {}
