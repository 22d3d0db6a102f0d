//! The kernel's interface, as in `kernel/ink/ink.h`.

/// The path of the device.
pub const DEVICE: &str = "/dev/hikv-ink";
/// The version of [`Request`].
pub const VERSION: u32 = 1;
/// The longest key.
pub const KEY_BYTES_MAX: usize = 65_535;
/// The longest value.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// The most requests of one submission.
pub const SUBMIT_COUNT_MAX: usize = 64;
/// Flag of [`Op::Insert`]: the key must be absent.
pub const IF_ABSENT: u32 = 1;
/// Flag of [`Op::Insert`]: the key must be there.
pub const IF_PRESENT: u32 = 2;
/// Flag of [`Op::Scan`]: starts behind the key.
pub const BEHIND: u32 = 1;
/// The most bytes of a scan's answer: those of the longest item.
pub const SCAN_BYTES_MAX: usize = ITEM_HEAD_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX;
/// A value of [`Stat`]: writes survive a loss of power. 0 if the kind of memory is unknown, or the module does not
/// report it.
pub const DURABILITY_POWER: u64 = 1;
/// The size of a scan's item before its key: the lengths of key and value, 4 bytes each.
pub const ITEM_HEAD_BYTES: usize = 8;

/// The structure `ink_request`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// Flags of the operation.
    pub flags: u32,
    /// The key's address.
    pub key: u64,
    /// The address of the value, or of the answer's buffer.
    pub value: u64,
    /// The key's length.
    pub key_len: u32,
    /// The operation in a submission; otherwise 0.
    pub op: u32,
    /// The length of the value, or of the answer's buffer.
    pub value_len: u64,
    /// An output: the meaning depends on the operation.
    pub result: u64,
    /// An output; for a submission also an input.
    pub count: u64,
    /// An output of requests in a submission: 0, or an error's number.
    pub error: i32,
    /// Must be 0.
    pub reserved: u32,
}

impl Request {
    /// Creates a request without addresses.
    #[must_use]
    pub fn new() -> Request {
        Request { version: VERSION, ..Request::default() }
    }

    /// Creates a request with a key.
    #[must_use]
    pub fn of_key(key: &[u8]) -> Request {
        // A length that does not fit is longer than any that the kernel accepts.
        let key_len = u32::try_from(key.len()).unwrap_or(u32::MAX);
        Request { key: key.as_ptr() as u64, key_len, ..Request::new() }
    }

    /// Creates a request with a key and a value.
    #[must_use]
    pub fn of_value(key: &[u8], value: &[u8], flags: u32) -> Request {
        Request { value: value.as_ptr() as u64, value_len: value.len() as u64, flags, ..Request::of_key(key) }
    }

    /// Creates a request with a key and a buffer for an answer.
    #[must_use]
    pub fn of_buffer(key: &[u8], buffer: &mut [u8], flags: u32) -> Request {
        Request { value: buffer.as_mut_ptr() as u64, value_len: buffer.len() as u64, flags, ..Request::of_key(key) }
    }

    /// Creates a request with a key and, for an answer, the entire capacity of an empty vector.
    #[must_use]
    pub fn of_spare(key: &[u8], buffer: &mut Vec<u8>, flags: u32) -> Request {
        Request {
            value: buffer.as_mut_ptr() as u64,
            value_len: buffer.capacity() as u64,
            flags,
            ..Request::of_key(key)
        }
    }
}

/// The structure `ink_stat`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// The region's length.
    pub region_bytes: u64,
    /// The bytes up to the end of the last chunk.
    pub used_bytes: u64,
    /// The bytes in use.
    pub live_bytes: u64,
    /// The bytes that can be handed out.
    pub free_bytes: u64,
    /// The kernel memory in use.
    pub dram_bytes: u64,
    /// The most concurrent writers.
    pub lanes: u64,
    /// 1 once all free space is known.
    pub swept: u64,
    /// The number of changes that opening has undone.
    pub undone: u64,
    /// The number of nodes removed by merges since opening; 0 if the module does not merge.
    pub merged: u64,
    /// The durability of completed writes: [`DURABILITY_POWER`], or 0 if unknown.
    pub durability: u64,
}

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Op {
    /// Puts a value.
    Insert = 1,
    /// Reads a value.
    Read = 2,
    /// Deletes a key.
    Remove = 3,
    /// Copies items.
    Scan = 4,
    /// Carries out several of the other operations.
    Submit = 5,
    /// Returns statistics.
    Stat = 6,
    /// Checks everything.
    Check = 7,
    /// Deletes every key.
    Clear = 8,
}

impl Op {
    /// Returns the number of the ioctl: `_IOWR(0xd7, op, struct ink_request)`.
    #[must_use]
    pub fn number(self) -> libc::Ioctl {
        (3 << 30 | (size_of::<Request>() as u32) << 16 | 0xd7 << 8 | self as u32) as libc::Ioctl
    }
}
