//! Reasons why a command failed.

use std::{fmt, io};

use nvme::{Fatal, Status};

/// Why a command failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The key is empty, or longer than devices accept.
    KeyLength {
        /// Its length.
        len_bytes: usize,
    },
    /// The device refused the command.
    Refused(Status),
    /// The device ended the connection, for a reason defined by the transport.
    Terminated {
        /// The reason.
        cause: u16,
        /// Details of it.
        information: u32,
    },
    /// The device's data violates the transport.
    Protocol(Fatal),
    /// The device sent data that was not requested.
    Unexpected(&'static str),
    /// Authentication failed.
    Authentication(&'static str),
    /// The connection broke, and it is unknown whether the command was executed.
    Unknown(io::Error),
    /// The connection broke, or could not be made.
    Io(io::Error),
}

impl Error {
    /// Returns whether a new connection may help.
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
                write!(f, "key has {len_bytes} bytes; devices accept 1 to {}", nvme::Key::BYTES_MAX)
            }
            Error::Refused(status) => write!(f, "the device refused the command: {status}"),
            Error::Terminated { cause, information } => {
                write!(f, "the device ended the connection: cause {cause}, at {information}")
            }
            Error::Protocol(fatal) => write!(f, "the device violated the transport protocol: {fatal}"),
            Error::Unexpected(what) => write!(f, "the device violated the transport protocol: {what}"),
            Error::Authentication(what) => f.write_str(what),
            Error::Unknown(error) => {
                write!(f, "connection lost, the command may or may not have been executed: {error}")
            }
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
