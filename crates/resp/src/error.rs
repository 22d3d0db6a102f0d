use std::fmt;

/// A breach of the protocol. The connection cannot be understood beyond it and is closed after the error reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// `*` is not followed by a number, or by one above [`crate::Limits::ARGUMENT_COUNT_MAX`].
    InvalidMultibulkLength,
    /// `$` is not followed by a number, or by a negative one, or by one above the configured limit.
    InvalidBulkLength,
    /// A client that has not said who it is announces more than [`crate::Limits::STRANGERS_ARGUMENT_COUNT_MAX`] arguments.
    StrangersMultibulkLength,
    /// A client that has not said who it is announces an argument above [`crate::Limits::STRANGERS_BULK_BYTES_MAX`].
    StrangersBulkLength,
    /// An argument does not begin with `$`.
    ExpectedBulk {
        /// The byte found in its place.
        found: u8,
    },
    /// The line after `*` does not end.
    TooBigMultibulkCount,
    /// The line after `$` does not end.
    TooBigBulkCount,
    /// An inline command is longer than [`crate::Limits::LINE_BYTES_MAX`].
    TooBigInline,
    /// All arguments of a request together exceed [`crate::Limits::REQUEST_BYTES_MAX`].
    TooBigRequest,
    /// An inline command's quotes do not match, or a closing quote is followed by something else than a space.
    UnbalancedQuotes,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            ProtocolError::InvalidMultibulkLength => f.write_str("invalid multibulk length"),
            ProtocolError::InvalidBulkLength => f.write_str("invalid bulk length"),
            ProtocolError::StrangersMultibulkLength => f.write_str("unauthenticated multibulk length"),
            ProtocolError::StrangersBulkLength => f.write_str("unauthenticated bulk length"),
            ProtocolError::ExpectedBulk { found } => write!(f, "expected '$', got '{}'", char::from(*found)),
            ProtocolError::TooBigMultibulkCount => f.write_str("too big mbulk count string"),
            ProtocolError::TooBigBulkCount => f.write_str("too big bulk count string"),
            ProtocolError::TooBigInline => f.write_str("too big inline request"),
            ProtocolError::TooBigRequest => f.write_str("too big request"),
            ProtocolError::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
        }
    }
}

impl std::error::Error for ProtocolError {}
