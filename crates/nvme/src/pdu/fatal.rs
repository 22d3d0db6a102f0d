//! What ends a connection.

use std::fmt;

/// Bytes of a header that a Terminate repeats.
const HEADER_BYTES_MAX: usize = 128;

/// Why a connection is ended (TCP transport specification, figures 27 and 28).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FatalCause {
    /// A field of a header has a value that is not allowed.
    InvalidHeader = 1,
    /// A PDU came that may not come now.
    Sequence = 2,
    /// A header does not have its digest.
    HeaderDigest = 3,
    /// Data came for a place that was not asked for.
    DataOutOfRange = 4,
    /// More data came than a PDU may have.
    DataLimit = 5,
    /// A parameter that is not supported.
    Unsupported = 6,
}

/// An error after which nothing of a connection can be believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fatal {
    /// Why.
    pub cause: FatalCause,
    /// Where in the header the fault lies, in bytes; what the header digest was, for that cause.
    pub information: u32,
    /// The header, or what is there of it.
    pub header: Vec<u8>,
}

impl Fatal {
    /// The fault of a PDU that begins with `bytes`.
    #[must_use]
    pub fn new(cause: FatalCause, information: u32, bytes: &[u8]) -> Fatal {
        Fatal { cause, information, header: bytes[..bytes.len().min(HEADER_BYTES_MAX)].to_vec() }
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.information;
        match self.cause {
            FatalCause::InvalidHeader => write!(f, "byte {at} of a PDU's header is wrong"),
            FatalCause::Sequence => f.write_str("a PDU came that may not come now"),
            FatalCause::HeaderDigest => f.write_str("a PDU's header does not have its digest"),
            FatalCause::DataOutOfRange => f.write_str("data came that was not asked for"),
            FatalCause::DataLimit => f.write_str("a PDU has more data than it may have"),
            FatalCause::Unsupported => write!(f, "byte {at} of a PDU's header asks for what there is not"),
        }
    }
}

impl std::error::Error for Fatal {}
