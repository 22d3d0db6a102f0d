//! What a medium can fail with.

use core::fmt;

/// What a medium can fail with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MediumError {
    /// The region cannot grow to `wanted_bytes`, or have its holes filled: the file system or device is full.
    Full {
        /// The region's size that was asked for; its present one where a hole cannot be filled.
        wanted_bytes: u64,
    },
    /// The region cannot grow beyond its limit (`region_bytes_max`), or beyond the addresses that the process has free behind it.
    Limit {
        /// The region's size that was asked for.
        wanted_bytes: u64,
        /// The largest it can get.
        limit_bytes: u64,
    },
    /// A span that lies outside the region: an offset in the store is damaged.
    OutOfBounds {
        /// The span's first byte.
        offset: u64,
        /// The span's length.
        len_bytes: u64,
        /// The region's size.
        region_bytes: u64,
    },
    /// A part of the region that could not be read when it was needed: its bytes are unknown.
    Unreadable {
        /// Where it begins.
        offset: u64,
        /// The number as in `errno.h`.
        errno: i32,
    },
    /// The operating system refused; its error number.
    Os {
        /// The number as in `errno.h`.
        errno: i32,
    },
    /// The medium was opened for reading.
    ReadOnly,
    /// The log could not be written or synced, so nothing more can become durable; its error number.
    Poisoned {
        /// The number as in `errno.h`.
        errno: i32,
    },
    /// The region's file, or its log, has no name any more: what is written to it is gone when it is closed.
    Removed,
}

impl MediumError {
    /// True where there is no room for more: what needs none may still succeed, and so may the same once room has come free.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self, MediumError::Full { .. } | MediumError::Limit { .. })
    }
}

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            MediumError::Full { wanted_bytes } => {
                write!(f, "no space left to grow the region to {wanted_bytes} bytes")
            }
            MediumError::Limit { wanted_bytes, limit_bytes } => {
                write!(
                    f,
                    "the region cannot grow to {wanted_bytes} bytes: its limit (region_bytes_max) is {limit_bytes}"
                )
            }
            MediumError::OutOfBounds { offset, len_bytes, region_bytes } => {
                write!(f, "{len_bytes} bytes at offset {offset:#x} lie outside the region of {region_bytes} bytes")
            }
            MediumError::Unreadable { offset, errno } => write!(
                f,
                "the bytes at offset {offset:#x} could not be read from the disk (error number {errno}): what they held is \
                 unknown"
            ),
            MediumError::Os { errno } => write!(f, "the operating system answered with error number {errno}"),
            MediumError::ReadOnly => f.write_str("the store is open for reading only"),
            MediumError::Poisoned { errno } => write!(
                f,
                "writing to the disk failed (error number {errno}): the store takes no more writes until it is opened \
                 again; what was acknowledged is safe"
            ),
            MediumError::Removed => f.write_str(
                "the store's files were removed while it is open: it takes no more writes; what it holds can be read, and saved \
                 elsewhere by a backup, until it is closed",
            ),
        }
    }
}

impl core::error::Error for MediumError {}
