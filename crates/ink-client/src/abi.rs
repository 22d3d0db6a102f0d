//! What the kernel is told, as `kernel/ink/ink.h` has it.

/// The device.
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
/// Flag of [`Op::Scan`]: from behind the key.
pub const BEHIND: u32 = 1;
/// The most room that a scan's answer has: what the longest item takes.
pub const SCAN_BYTES_MAX: usize = ITEM_HEAD_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX;
/// Of [`Stat`]: a loss of power is survived. 0 of memory of which nobody knows what it is made of, and of a module that does not say.
pub const DURABILITY_POWER: u64 = 1;
/// A scan's item before its key: the lengths of key and value, 4 bytes each.
pub const ITEM_HEAD_BYTES: usize = 8;

/// `struct ink_request`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// Of the operation.
    pub flags: u32,
    /// The key's address.
    pub key: u64,
    /// The address of the value, or of the answer's room.
    pub value: u64,
    /// The key's length.
    pub key_len: u32,
    /// In a submission; else 0.
    pub op: u32,
    /// The length of the value, or of the answer's room.
    pub value_len: u64,
    /// Out.
    pub result: u64,
    /// Out; of a submission in, too.
    pub count: u64,
    /// Out, in a submission: 0, or an error's number.
    pub error: i32,
    /// 0.
    pub reserved: u32,
}

impl Request {
    /// One that names nothing.
    #[must_use]
    pub fn new() -> Request {
        Request { version: VERSION, ..Request::default() }
    }

    /// One that names a key.
    #[must_use]
    pub fn of_key(key: &[u8]) -> Request {
        // A length that does not fit is longer than any that the kernel takes.
        let key_len = u32::try_from(key.len()).unwrap_or(u32::MAX);
        Request { key: key.as_ptr() as u64, key_len, ..Request::new() }
    }

    /// One that names a key and a value.
    #[must_use]
    pub fn of_value(key: &[u8], value: &[u8], flags: u32) -> Request {
        Request { value: value.as_ptr() as u64, value_len: value.len() as u64, flags, ..Request::of_key(key) }
    }

    /// One that names a key and room for an answer.
    #[must_use]
    pub fn of_room(key: &[u8], room: &mut [u8], flags: u32) -> Request {
        Request { value: room.as_mut_ptr() as u64, value_len: room.len() as u64, flags, ..Request::of_key(key) }
    }

    /// One that names a key, and for an answer all the memory that a vector without bytes has.
    #[must_use]
    pub fn of_spare(key: &[u8], room: &mut Vec<u8>, flags: u32) -> Request {
        Request { value: room.as_mut_ptr() as u64, value_len: room.capacity() as u64, flags, ..Request::of_key(key) }
    }
}

/// `struct ink_stat`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stat {
    /// The region's length.
    pub region_bytes: u64,
    /// Up to the end of the last chunk.
    pub used_bytes: u64,
    /// In use.
    pub live_bytes: u64,
    /// What can be handed out.
    pub free_bytes: u64,
    /// The kernel's memory.
    pub dram_bytes: u64,
    /// Writers that can be under way at once.
    pub lanes: u64,
    /// 1 when all free space is known.
    pub swept: u64,
    /// Changes that opening took back.
    pub undone: u64,
    /// Nodes fewer since then, by merges of what deletes left low; 0 of a module that has no merges.
    pub merged: u64,
    /// What a call that has returned has written survives: [`DURABILITY_POWER`], or nobody knows.
    pub durability: u64,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Op {
    /// Puts a value.
    Insert = 1,
    /// Reads one.
    Read = 2,
    /// Deletes a key.
    Remove = 3,
    /// Copies items.
    Scan = 4,
    /// Several of the others.
    Submit = 5,
    /// Figures.
    Stat = 6,
    /// Reads everything.
    Check = 7,
    /// Deletes every key.
    Clear = 8,
}

impl Op {
    /// The number of the ioctl: `_IOWR(0xd7, op, struct ink_request)`.
    #[must_use]
    pub fn number(self) -> libc::Ioctl {
        (3 << 30 | (size_of::<Request>() as u32) << 16 | 0xd7 << 8 | self as u32) as libc::Ioctl
    }
}
