//! The reasons why a value or a file cannot be read.

use std::{fmt, io};

use crate::VERSION_MAX;

/// The reason why the input cannot be read. Offsets are in bytes.
#[derive(Debug)]
pub enum Error {
    /// The input itself failed.
    Input(io::Error),
    /// The input ends within a value.
    CutOff {
        /// The length of the input.
        offset: u64,
    },
    /// The input does not have the format.
    Malformed {
        /// The end of the wrong part.
        offset: u64,
        /// A description with an article.
        what: &'static str,
    },
    /// A file does not begin as dumps of Redis do.
    NoDump,
    /// The version is not known.
    Version {
        /// As in the input.
        version: u32,
    },
    /// The checksum is that of other bytes.
    Checksum,
    /// A string is longer than the caller allows.
    TooLong {
        /// The beginning of the string.
        offset: u64,
        /// The announced length.
        len_bytes: u64,
        /// The limit.
        len_bytes_max: u64,
    },
    /// A value has a type that cannot be read.
    Unsupported {
        /// The end of the type.
        offset: u64,
        /// The type, with an article.
        what: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(error) => error.fmt(f),
            Error::CutOff { offset } => write!(f, "the input ends within a value, at offset {offset}"),
            Error::Malformed { offset, what } => write!(f, "{what} before offset {offset}"),
            Error::NoDump => f.write_str("it does not begin with REDIS and a version, at offset 0"),
            Error::Version { version } => {
                write!(f, "the format has version {version}; the newest that can be read is {VERSION_MAX}")
            }
            Error::Checksum => f.write_str("the checksum at the end is that of other bytes"),
            Error::TooLong { offset, len_bytes, len_bytes_max } => {
                write!(f, "a string of {len_bytes} bytes at offset {offset}; the limit is {len_bytes_max}")
            }
            Error::Unsupported { offset, what } => write!(f, "{what} before offset {offset}, which hikv does not have"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The text of an error of the input is its own.
        match self {
            Error::Input(error) => error.source(),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Input(error)
    }
}
