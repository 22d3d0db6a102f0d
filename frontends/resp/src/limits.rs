use crate::ProtocolError;

/// Limits on requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    bulk_bytes_max: usize,
    argument_count_max: usize,
    is_unauthenticated: bool,
}

impl Limits {
    /// Maximum number of arguments of one request, as in Redis up to 6.2.
    pub const ARGUMENT_COUNT_MAX: usize = 1_048_576;
    /// Maximum number of arguments for a client that is not logged in, as in Redis: enough to log in.
    pub const UNAUTHENTICATED_ARGUMENT_COUNT_MAX: usize = 10;
    /// The longest argument of a client that is not logged in, as in Redis: 16 KiB.
    pub const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16 << 10;
    /// The longest line: an inline command, or the number after `*` or `$`. As in Redis: 64 KiB.
    pub const LINE_BYTES_MAX: usize = 64 << 10;
    /// The maximum of the bulk limit: 1 GiB, the longest value of a store.
    pub const BULK_BYTES_MAX: usize = 1 << 30;
    /// The largest request, all arguments and their framing together: the longest value, and 1 MiB for everything else.
    pub const REQUEST_BYTES_MAX: usize = Limits::BULK_BYTES_MAX + (1 << 20);

    /// Creates limits with arguments of at most `bulk_bytes_max`, capped at [`Limits::BULK_BYTES_MAX`].
    pub fn with_bulk_bytes_max(bulk_bytes_max: usize) -> Limits {
        Limits { bulk_bytes_max: bulk_bytes_max.min(Limits::BULK_BYTES_MAX), ..Limits::default() }
    }

    /// Creates limits for clients that are not logged in. Their violation has its own errors.
    pub fn unauthenticated() -> Limits {
        Limits {
            bulk_bytes_max: Limits::UNAUTHENTICATED_BULK_BYTES_MAX,
            argument_count_max: Limits::UNAUTHENTICATED_ARGUMENT_COUNT_MAX,
            is_unauthenticated: true,
        }
    }

    /// Returns the longest argument in bytes (`proto-max-bulk-len` in Redis).
    pub fn bulk_bytes_max(&self) -> usize {
        self.bulk_bytes_max
    }

    /// Checks the number of arguments of a request.
    pub(crate) fn check_count(&self, count: i64) -> Result<(), ProtocolError> {
        if count > Limits::ARGUMENT_COUNT_MAX as i64 {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        // Only the limits for clients that are not logged in are lower.
        if count > self.argument_count_max as i64 {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        Ok(())
    }

    /// Checks the length of an argument.
    pub(crate) fn check_bulk(&self, len_bytes: usize) -> Result<(), ProtocolError> {
        match len_bytes <= self.bulk_bytes_max {
            true => Ok(()),
            false if self.is_unauthenticated => Err(ProtocolError::UnauthenticatedBulkLength),
            false => Err(ProtocolError::InvalidBulkLength),
        }
    }
}

/// Requests store their arguments' offsets in four bytes.
const _: () = assert!(Limits::REQUEST_BYTES_MAX <= u32::MAX as usize);

impl Default for Limits {
    /// Returns Redis' defaults: arguments of at most 512 MiB.
    fn default() -> Limits {
        Limits { bulk_bytes_max: 512 << 20, argument_count_max: Limits::ARGUMENT_COUNT_MAX, is_unauthenticated: false }
    }
}
