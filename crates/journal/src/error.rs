//! The errors of opening a journal.

use std::error::Error;
use std::{fmt, io};

use pmem::MediumError;

/// One of a journal's two files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The file with the region's bytes, as of a prefix of the log.
    Base,
    /// The file with the later entries.
    Log,
}

/// The errors of opening or creating a journal.
#[derive(Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// The log has no header: creating the journal was interrupted, or the log is damaged.
    Unfinished,
    /// A newer program created the journal.
    Version {
        /// Its version.
        found: u32,
    },
    /// The log contradicts itself.
    Damaged {
        /// The position of the damage in the log file.
        at_bytes: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// Durable frames are missing.
    Gap {
        /// The position of the first missing frame in the log file.
        at_bytes: u64,
        /// Its number.
        sequence: u64,
        /// Number of intact frames behind it.
        frames_behind: u64,
    },
    /// The base is shorter than the region.
    Truncated {
        /// The base's length.
        base_bytes: u64,
        /// The region's length, as far as the log was read.
        region_bytes: u64,
    },
    /// An option is outside its range.
    Option {
        /// The option, and the problem with it.
        what: &'static str,
    },
    /// An operation of the operating system failed.
    Io {
        /// The file.
        which: Which,
        /// The operation, as a verb.
        doing: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// The process has no range of addresses left for the region.
    Addresses {
        /// The wanted number of consecutive addresses.
        wanted_bytes: u64,
        /// The operating system's answer.
        source: io::Error,
    },
    /// There is not enough memory for the region.
    Memory {
        /// The wanted number of bytes.
        wanted_bytes: u64,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl JournalError {
    /// Returns the file that the error is about.
    #[must_use]
    pub fn which(&self) -> Which {
        match self {
            JournalError::Truncated { .. } | JournalError::Addresses { .. } | JournalError::Memory { .. } => {
                Which::Base
            }
            JournalError::Io { which, .. } => *which,
            _ => Which::Log,
        }
    }

    pub(crate) fn io(which: Which, doing: &'static str) -> impl FnOnce(io::Error) -> JournalError {
        move |source| JournalError::Io { which, doing, source }
    }

    pub(crate) fn medium(which: Which, doing: &'static str) -> impl FnOnce(MediumError) -> JournalError {
        move |error| {
            let source = match error {
                MediumError::Poisoned { errno } => io::Error::from_raw_os_error(errno),
                other => io::Error::other(other),
            };
            JournalError::Io { which, doing, source }
        }
    }

    pub(crate) fn memory(wanted_bytes: u64) -> impl FnOnce(io::Error) -> JournalError {
        move |source| JournalError::Memory { wanted_bytes, source }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Which::Base => "base",
            Which::Log => "log",
        })
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalError::Unfinished => {
                f.write_str("the log has no header: creating the journal was interrupted, or the log is damaged")
            }
            JournalError::Version { found } => {
                write!(
                    f,
                    "the journal has version {found}, but this program reads only versions 1 to {}; use a newer program",
                    crate::layout::VERSION
                )
            }
            JournalError::Damaged { at_bytes, what } => {
                write!(f, "the log is damaged at byte {at_bytes:#x}: {what}")
            }
            JournalError::Gap { at_bytes, sequence, frames_behind } => {
                write!(
                    f,
                    "the log is damaged at byte {at_bytes:#x}: frame {sequence} was durable and is not intact; intact \
                     frames behind it: {frames_behind}"
                )
            }
            JournalError::Truncated { base_bytes, region_bytes } => {
                write!(f, "the store needs {region_bytes} bytes, but its file has only {base_bytes}")
            }
            JournalError::Option { what } => f.write_str(what),
            JournalError::Io { which, doing, source } => write!(f, "cannot {doing} the {which}: {source}"),
            JournalError::Addresses { wanted_bytes, source } => {
                write!(f, "cannot reserve {wanted_bytes} consecutive addresses for the store: {source}")
            }
            JournalError::Memory { wanted_bytes, source } => {
                write!(f, "cannot allocate {wanted_bytes} bytes of memory for the store: {source}")
            }
        }
    }
}

impl Error for JournalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            JournalError::Io { source, .. }
            | JournalError::Addresses { source, .. }
            | JournalError::Memory { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Returns true for every error that means 'no space left'.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}

/// Returns a function that maps the error of a failed allocation for a region of `wanted_bytes`.
pub(crate) fn full_or_failed(wanted_bytes: u64) -> impl Fn(io::Error) -> MediumError + Copy {
    move |error| match error.raw_os_error() {
        _ if is_full(&error) => MediumError::Full { wanted_bytes },
        Some(libc::ENOMEM) => MediumError::Full { wanted_bytes },
        errno => MediumError::Os { errno: errno.unwrap_or(libc::EIO) },
    }
}
