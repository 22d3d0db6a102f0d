use std::fmt;

/// A protocol error. The following input cannot be parsed, and the connection is closed after the error reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// `*` is not followed by a number, or by one above [`crate::Limits::ARGUMENT_COUNT_MAX`].
    InvalidMultibulkLength,
    /// `$` is not followed by a number, or by a negative one, or by one above the configured limit.
    InvalidBulkLength,
    /// A client that is not logged in announces more than [`crate::Limits::UNAUTHENTICATED_ARGUMENT_COUNT_MAX`]
    /// arguments.
    UnauthenticatedMultibulkLength,
    /// A client that is not logged in announces an argument longer than
    /// [`crate::Limits::UNAUTHENTICATED_BULK_BYTES_MAX`].
    UnauthenticatedBulkLength,
    /// An argument does not begin with `$`.
    ExpectedBulk {
        /// The byte found instead.
        found: u8,
    },
    /// The line after `*` is too long.
    TooBigMultibulkCount,
    /// The line after `$` is too long.
    TooBigBulkCount,
    /// An inline command is longer than [`crate::Limits::LINE_BYTES_MAX`].
    TooBigInline,
    /// All arguments of a request together exceed [`crate::Limits::REQUEST_BYTES_MAX`].
    TooBigRequest,
    /// An inline command's quotes do not match, or a closing quote is not followed by a space.
    UnbalancedQuotes,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            ProtocolError::InvalidMultibulkLength => f.write_str("invalid multibulk length"),
            ProtocolError::InvalidBulkLength => f.write_str("invalid bulk length"),
            ProtocolError::UnauthenticatedMultibulkLength => f.write_str("unauthenticated multibulk length"),
            ProtocolError::UnauthenticatedBulkLength => f.write_str("unauthenticated bulk length"),
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
