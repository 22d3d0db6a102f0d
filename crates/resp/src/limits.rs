/// What a request may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    bulk_bytes_max: usize,
}

impl Limits {
    /// The most arguments of one request, as in Redis.
    pub const ARGUMENT_COUNT_MAX: usize = 1_048_576;
    /// The longest line: an inline command, or the number after `*` or `$`. As in Redis: 64 KiB.
    pub const LINE_BYTES_MAX: usize = 64 << 10;
    /// The largest value that the bulk limit can be raised to: 1 GiB, the longest value of a store.
    pub const BULK_BYTES_MAX: usize = 1 << 30;
    /// The largest request, all arguments and their framing together: the longest value, and 1 MiB for the rest.
    pub const REQUEST_BYTES_MAX: usize = Limits::BULK_BYTES_MAX + (1 << 20);

    /// Limits with arguments of at most `bulk_bytes_max`, itself cut to [`Limits::BULK_BYTES_MAX`].
    pub fn with_bulk_bytes_max(bulk_bytes_max: usize) -> Limits {
        Limits { bulk_bytes_max: bulk_bytes_max.min(Limits::BULK_BYTES_MAX) }
    }

    /// The longest argument in bytes (`proto-max-bulk-len` in Redis).
    pub fn bulk_bytes_max(&self) -> usize {
        self.bulk_bytes_max
    }
}

/// Requests keep their arguments' offsets in four bytes.
const _: () = assert!(Limits::REQUEST_BYTES_MAX <= u32::MAX as usize);

impl Default for Limits {
    /// Redis' defaults: arguments of at most 512 MiB.
    fn default() -> Limits {
        Limits { bulk_bytes_max: 512 << 20 }
    }
}
