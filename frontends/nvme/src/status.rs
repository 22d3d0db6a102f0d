//! The status of a completion: status code type and status code (base specification, figure 93).

use std::fmt;

/// Do not retry: the same command would fail again.
const DO_NOT_RETRY: u16 = 1 << 14;

/// A status field, without the phase tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Status = Status($number);)*

            /// All statuses known here.
            pub const ALL: &[Status] = &[$(Status::$name),*];

            /// Returns the meaning of a status known here.
            #[must_use]
            pub fn text(self) -> Option<&'static str> {
                match self.code() {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

statuses! {
    /// It was done.
    SUCCESS = 0x000, "done";
    /// The opcode is unknown.
    INVALID_OPCODE = 0x001, "unknown command";
    /// A field of the command has an invalid value.
    INVALID_FIELD = 0x002, "invalid field in the command";
    /// Another command of the queue has this identifier.
    COMMAND_ID_CONFLICT = 0x003, "command identifier is in use";
    /// Its data could not be transferred.
    DATA_TRANSFER_ERROR = 0x004, "data transfer failed";
    /// The device failed internally.
    INTERNAL_ERROR = 0x006, "internal error of the device; see its health log";
    /// It was aborted because its queue was deleted.
    ABORTED_QUEUE_DELETED = 0x008, "aborted: the queue was deleted";
    /// The namespace does not exist, or has another format.
    INVALID_NAMESPACE = 0x00b, "invalid namespace";
    /// Commands arrived in an invalid order.
    COMMAND_SEQUENCE_ERROR = 0x00c, "command out of sequence";
    /// The type of a data descriptor is not allowed here.
    SGL_TYPE_INVALID = 0x011, "unsupported type of data descriptor";
    /// The lengths of a data descriptor and of its command differ.
    SGL_LENGTH_INVALID = 0x00f, "wrong length of the data descriptor";
    /// A descriptor refers to data outside the capsule.
    SGL_OFFSET_INVALID = 0x016, "data descriptor outside the capsule";
    /// The host's identifier differs from that of its first queue.
    HOST_ID_INCONSISTENT = 0x018, "host identifier differs from that of its first queue";
    /// The keep-alive timer expired.
    KEEP_ALIVE_EXPIRED = 0x019, "keep-alive timer expired";
    /// The keep-alive time is invalid.
    KEEP_ALIVE_INVALID = 0x01a, "invalid keep-alive time";
    /// The namespace is write protected.
    WRITE_PROTECTED = 0x020, "namespace is write protected";
    /// Its data was corrupted in transfer. The same command may succeed.
    TRANSIENT_TRANSPORT_ERROR = 0x022, "data was corrupted in transfer";
    /// There is no space for the key and its value.
    CAPACITY_EXCEEDED = 0x081, "no space left";
    /// The namespace is not ready for commands.
    NAMESPACE_NOT_READY = 0x082, "namespace is not ready";
    /// The value is longer than the namespace allows.
    INVALID_VALUE_SIZE = 0x085, "invalid value size";
    /// The key is empty. A key of more than 16 bytes is an invalid field.
    INVALID_KEY_SIZE = 0x086, "invalid key size";
    /// The key does not exist.
    KEY_NOT_FOUND = 0x087, "key not found";
    /// The stored data is damaged.
    UNRECOVERED_ERROR = 0x088, "stored data is damaged";
    /// The key already exists.
    KEY_EXISTS = 0x089, "key already exists";
    /// Too many asynchronous event commands are outstanding.
    ASYNC_LIMIT_EXCEEDED = 0x105, "too many outstanding asynchronous event requests";
    /// The log page does not exist.
    INVALID_LOG_PAGE = 0x109, "invalid log page";
    /// The feature cannot be saved.
    NOT_SAVEABLE = 0x10d, "feature cannot be saved";
    /// The feature cannot be changed.
    NOT_CHANGEABLE = 0x10e, "feature cannot be changed";
    /// Connect has an unknown format.
    CONNECT_FORMAT = 0x180, "unknown format of Connect";
    /// The controller is in use, or there are too many.
    CONNECT_BUSY = 0x181, "controller is busy";
    /// A parameter of Connect is invalid.
    CONNECT_INVALID = 0x182, "invalid parameter of Connect";
    /// The host may not connect.
    CONNECT_INVALID_HOST = 0x184, "host is not permitted to connect";
    /// The host must authenticate itself first.
    AUTHENTICATION_REQUIRED = 0x191, "authentication required";
}

impl Status {
    /// Decodes a completion's field, ignoring the phase tag.
    #[must_use]
    pub fn from_field(field: u16) -> Status {
        Status(field >> 1)
    }

    /// Encodes a completion's field, with phase tag 0 as in fabrics.
    #[must_use]
    pub fn field(self) -> u16 {
        self.0 << 1
    }

    /// Returns status code type and status code, as `nvme-cli` prints them.
    #[must_use]
    pub fn code(self) -> u16 {
        self.0 & 0x7ff
    }

    /// Returns the status with the do-not-retry bit.
    #[must_use]
    pub const fn final_one(self) -> Status {
        Status(self.0 | DO_NOT_RETRY)
    }

    /// Returns whether the command succeeded.
    #[must_use]
    pub fn is_success(self) -> bool {
        self.code() == 0
    }

    /// Returns whether both statuses are equal, apart from the do-not-retry bit.
    #[must_use]
    pub fn is(self, other: Status) -> bool {
        self.code() == other.code()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {:#05x})", self.text().unwrap_or("unknown status"), self.code())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_survives_its_field() {
        for status in Status::ALL {
            assert_eq!(Status::from_field(status.field()), *status);
            assert!(Status::from_field(status.final_one().field()).is(*status));
            assert!(status.text().is_some());
        }
        assert_eq!(Status::from_field(0xffff).code(), 0x7ff);
    }
}
