use crate::ProtocolError;

/// What a request may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    bulk_bytes_max: usize,
    argument_count_max: usize,
    is_for_strangers: bool,
}

impl Limits {
    /// The most arguments of one request, as in Redis up to 6.2.
    pub const ARGUMENT_COUNT_MAX: usize = 1_048_576;
    /// The most arguments of a client that has not said who it is, as in Redis: enough to say so.
    pub const STRANGERS_ARGUMENT_COUNT_MAX: usize = 10;
    /// The longest argument of a client that has not said who it is, as in Redis: 16 KiB.
    pub const STRANGERS_BULK_BYTES_MAX: usize = 16 << 10;
    /// The longest line: an inline command, or the number after `*` or `$`. As in Redis: 64 KiB.
    pub const LINE_BYTES_MAX: usize = 64 << 10;
    /// The largest value that the bulk limit can be raised to: 1 GiB, the longest value of a store.
    pub const BULK_BYTES_MAX: usize = 1 << 30;
    /// The largest request, all arguments and their framing together: the longest value, and 1 MiB for the rest.
    pub const REQUEST_BYTES_MAX: usize = Limits::BULK_BYTES_MAX + (1 << 20);

    /// Limits with arguments of at most `bulk_bytes_max`, itself cut to [`Limits::BULK_BYTES_MAX`].
    pub fn with_bulk_bytes_max(bulk_bytes_max: usize) -> Limits {
        Limits { bulk_bytes_max: bulk_bytes_max.min(Limits::BULK_BYTES_MAX), ..Limits::default() }
    }

    /// Limits for clients that have not said who they are. A breach of these is told as such.
    pub fn for_strangers() -> Limits {
        Limits {
            bulk_bytes_max: Limits::STRANGERS_BULK_BYTES_MAX,
            argument_count_max: Limits::STRANGERS_ARGUMENT_COUNT_MAX,
            is_for_strangers: true,
        }
    }

    /// The longest argument in bytes (`proto-max-bulk-len` in Redis).
    pub fn bulk_bytes_max(&self) -> usize {
        self.bulk_bytes_max
    }

    /// What is wrong with a request of so many arguments; nothing if it may be.
    pub(crate) fn check_count(&self, count: i64) -> Result<(), ProtocolError> {
        if count > Limits::ARGUMENT_COUNT_MAX as i64 {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        // Only those for strangers are lower.
        if count > self.argument_count_max as i64 {
            return Err(ProtocolError::StrangersMultibulkLength);
        }
        Ok(())
    }

    /// What is wrong with an argument of so many bytes; nothing if it may be.
    pub(crate) fn check_bulk(&self, len_bytes: usize) -> Result<(), ProtocolError> {
        match len_bytes <= self.bulk_bytes_max {
            true => Ok(()),
            false if self.is_for_strangers => Err(ProtocolError::StrangersBulkLength),
            false => Err(ProtocolError::InvalidBulkLength),
        }
    }
}

/// Requests keep their arguments' offsets in four bytes.
const _: () = assert!(Limits::REQUEST_BYTES_MAX <= u32::MAX as usize);

impl Default for Limits {
    /// Redis' defaults: arguments of at most 512 MiB.
    fn default() -> Limits {
        Limits { bulk_bytes_max: 512 << 20, argument_count_max: Limits::ARGUMENT_COUNT_MAX, is_for_strangers: false }
    }
}
