//! Why a journal does not open.

use std::error::Error;
use std::{fmt, io};

use pmem::MediumError;

/// Which of a journal's two files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The region, as a prefix of the log left it.
    Base,
    /// What came after.
    Log,
}

/// Why a journal does not open, or cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// The log was never finished: the journal is to be made anew.
    Unfinished,
    /// A newer program made it.
    Version {
        /// Its version.
        found: u32,
    },
    /// The log contradicts itself.
    Damaged {
        /// Where, in the log file.
        at_bytes: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// Frames are missing that were durable.
    Gap {
        /// Where the first of them began, in the log file.
        at_bytes: u64,
        /// Its number.
        sequence: u64,
        /// How many whole frames come after it.
        frames_behind: u64,
    },
    /// The base is shorter than the region.
    Truncated {
        /// The base's length.
        base_bytes: u64,
        /// The region's, as far as the log was read.
        region_bytes: u64,
    },
    /// An option is outside its range.
    Option {
        /// Which, and what is wrong.
        what: &'static str,
    },
    /// The operating system refused.
    Io {
        /// The file.
        which: Which,
        /// What was tried, as a verb.
        doing: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// The process has no range of addresses left for the region.
    Addresses {
        /// How many are wanted, all in a row.
        wanted_bytes: u64,
        /// The operating system's answer.
        source: io::Error,
    },
    /// There is no memory for the region.
    Memory {
        /// How much was wanted.
        wanted_bytes: u64,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl JournalError {
    /// The file that it is about.
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
            JournalError::Unfinished => f.write_str("the log was never finished"),
            JournalError::Version { found } => {
                write!(
                    f,
                    "the journal has version {found}, and this program knows versions 1 to {}",
                    crate::layout::VERSION
                )
            }
            JournalError::Damaged { at_bytes, what } => {
                write!(f, "the log is damaged at byte {at_bytes:#x}: {what}")
            }
            JournalError::Gap { at_bytes, sequence, frames_behind } => {
                write!(
                    f,
                    "the log is damaged at byte {at_bytes:#x}: frame {sequence} was durable and is not whole; \
                     whole frames behind it: {frames_behind}"
                )
            }
            JournalError::Truncated { base_bytes, region_bytes } => {
                write!(f, "the store has {region_bytes} bytes, of which only {base_bytes} are left")
            }
            JournalError::Option { what } => f.write_str(what),
            JournalError::Io { which, doing, source } => write!(f, "cannot {doing} the {which}: {source}"),
            JournalError::Addresses { wanted_bytes, source } => {
                write!(f, "this process has no {wanted_bytes} addresses in a row left for the region: {source}")
            }
            JournalError::Memory { wanted_bytes, source } => {
                write!(f, "no memory for a region of {wanted_bytes} bytes: {source}")
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

/// True for every way to say 'no space left'.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
}

/// What a refusal to provide for a region of `wanted_bytes` means.
pub(crate) fn full_or_failed(wanted_bytes: u64) -> impl Fn(io::Error) -> MediumError + Copy {
    move |error| match error.raw_os_error() {
        _ if is_full(&error) => MediumError::Full { wanted_bytes },
        Some(libc::ENOMEM) => MediumError::Full { wanted_bytes },
        errno => MediumError::Os { errno: errno.unwrap_or(libc::EIO) },
    }
}
