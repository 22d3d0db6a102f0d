//! Fatal errors of a connection.

use std::fmt;

/// Maximum length of a header that a Terminate repeats.
const HEADER_BYTES_MAX: usize = 128;

/// The cause of a connection's end (TCP transport specification, figures 27 and 28).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FatalCause {
    /// A header field has an invalid value.
    InvalidHeader = 1,
    /// A PDU arrived out of sequence.
    Sequence = 2,
    /// A header has a wrong digest.
    HeaderDigest = 3,
    /// Data arrived for an offset that was not requested.
    DataOutOfRange = 4,
    /// More data arrived than a PDU may have.
    DataLimit = 5,
    /// A parameter is not supported.
    Unsupported = 6,
}

/// An error after which nothing on the connection can be trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fatal {
    /// The cause.
    pub cause: FatalCause,
    /// The byte offset of the invalid header field; for a wrong header digest, that digest.
    pub information: u32,
    /// The header, as far as it has arrived.
    pub header: Vec<u8>,
}

impl Fatal {
    /// Creates the error of a PDU that begins with `bytes`.
    #[must_use]
    pub fn new(cause: FatalCause, information: u32, bytes: &[u8]) -> Fatal {
        Fatal { cause, information, header: bytes[..bytes.len().min(HEADER_BYTES_MAX)].to_vec() }
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.information;
        match self.cause {
            FatalCause::InvalidHeader => write!(f, "invalid byte {at} of a PDU header"),
            FatalCause::Sequence => f.write_str("PDU out of sequence"),
            FatalCause::HeaderDigest => f.write_str("PDU header has a wrong digest"),
            FatalCause::DataOutOfRange => f.write_str("unrequested data"),
            FatalCause::DataLimit => f.write_str("PDU exceeds the maximum data length"),
            FatalCause::Unsupported => write!(f, "unsupported parameter at byte {at} of a PDU header"),
        }
    }
}

impl std::error::Error for Fatal {}
