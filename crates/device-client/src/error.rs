//! Why a command was not done.

use std::{fmt, io};

use nvme::{Fatal, Status};

/// Why a command was not done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The key has no bytes, or more than a device takes.
    KeyLength {
        /// Its length.
        len_bytes: usize,
    },
    /// The device said no.
    Refused(Status),
    /// The device ended the connection, for a reason that is a number of the transport's.
    Terminated {
        /// The reason.
        cause: u16,
        /// More of it.
        information: u32,
    },
    /// What the device sends is not what the transport has.
    Protocol(Fatal),
    /// The device sends what was not asked for.
    Unexpected(&'static str),
    /// A side does not know what it should.
    Authentication(&'static str),
    /// The connection broke, and it is unknown whether the command was done.
    Unknown(io::Error),
    /// The connection broke, or could not be made.
    Io(io::Error),
}

impl Error {
    /// Whether another connection may do better.
    #[must_use]
    pub fn is_of_connection(&self) -> bool {
        matches!(
            self,
            Error::Io(_) | Error::Terminated { .. } | Error::Protocol(_) | Error::Unexpected(_) | Error::Unknown(_)
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::KeyLength { len_bytes } => {
                write!(f, "the key has {len_bytes} bytes; a device takes 1 to {}", nvme::Key::BYTES_MAX)
            }
            Error::Refused(status) => write!(f, "the device says: {status}"),
            Error::Terminated { cause, information } => {
                write!(f, "the device ended the connection: cause {cause}, at {information}")
            }
            Error::Protocol(fatal) => write!(f, "the device breaks the transport's rules: {fatal}"),
            Error::Unexpected(what) => write!(f, "the device breaks the transport's rules: {what}"),
            Error::Authentication(what) => f.write_str(what),
            Error::Unknown(error) => write!(f, "it is unknown whether that was done: {error}"),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

impl From<Fatal> for Error {
    fn from(fatal: Fatal) -> Error {
        Error::Protocol(fatal)
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Error {
        Error::Refused(status)
    }
}
