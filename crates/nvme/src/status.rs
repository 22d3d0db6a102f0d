//! What a completion says: status code type and status code (base specification, figure 93).

use std::fmt;

/// Not to be tried again: the same command fails the same way.
const DO_NOT_RETRY: u16 = 1 << 14;

/// A status field, without the phase tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(u16);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Status = Status($number);)*

            /// All that are known here.
            pub const ALL: &[Status] = &[$(Status::$name),*];

            /// What it means, for those that are known here.
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
    /// No such command.
    INVALID_OPCODE = 0x001, "no such command";
    /// A field of the command has a value that is not allowed there.
    INVALID_FIELD = 0x002, "a field of the command is wrong";
    /// Another command of the queue has this identifier.
    COMMAND_ID_CONFLICT = 0x003, "the command's identifier is in use";
    /// Its data could not be transferred.
    DATA_TRANSFER_ERROR = 0x004, "its data could not be transferred";
    /// Something failed within the device.
    INTERNAL_ERROR = 0x006, "the device failed: see its health";
    /// It was given up because its queue was deleted.
    ABORTED_QUEUE_DELETED = 0x008, "the queue was deleted";
    /// There is no such namespace, or it is of another format.
    INVALID_NAMESPACE = 0x00b, "no such namespace";
    /// Commands came in an order that is not allowed.
    COMMAND_SEQUENCE_ERROR = 0x00c, "not at this time";
    /// The kind of a data descriptor is not allowed here.
    SGL_TYPE_INVALID = 0x011, "a data descriptor of a kind that is not taken";
    /// A data descriptor and a command do not have the same length.
    SGL_LENGTH_INVALID = 0x00f, "a data descriptor of a wrong length";
    /// Data in the capsule where there is none.
    SGL_OFFSET_INVALID = 0x016, "data at a place that the capsule does not have";
    /// The host's identifier differs from that of its first queue.
    HOST_ID_INCONSISTENT = 0x018, "the host's identifier differs from its first queue's";
    /// The keep-alive timer ran out.
    KEEP_ALIVE_EXPIRED = 0x019, "the keep-alive timer ran out";
    /// The keep-alive timer cannot be set like that.
    KEEP_ALIVE_INVALID = 0x01a, "no such keep-alive time";
    /// Nothing may be written to the namespace.
    WRITE_PROTECTED = 0x020, "the namespace is write protected";
    /// Its data was spoilt on the way. The same command may succeed.
    TRANSIENT_TRANSPORT_ERROR = 0x022, "its data was spoilt on the way";
    /// There is no room for the key and its value.
    CAPACITY_EXCEEDED = 0x081, "no room is left";
    /// The namespace takes no commands now.
    NAMESPACE_NOT_READY = 0x082, "the namespace is not ready";
    /// The value is longer than the namespace allows.
    INVALID_VALUE_SIZE = 0x085, "a value of such a length is not taken";
    /// The key is empty. One of more than 16 bytes is a wrong field.
    INVALID_KEY_SIZE = 0x086, "a key of such a length is not taken";
    /// There is no such key.
    KEY_NOT_FOUND = 0x087, "there is no such key";
    /// What is stored is damaged.
    UNRECOVERED_ERROR = 0x088, "what is stored is damaged";
    /// The key is there already.
    KEY_EXISTS = 0x089, "the key is there already";
    /// More asynchronous events are awaited than may be.
    ASYNC_LIMIT_EXCEEDED = 0x105, "too many asynchronous events are awaited";
    /// There is no such log page.
    INVALID_LOG_PAGE = 0x109, "no such log page";
    /// The feature cannot be saved.
    NOT_SAVEABLE = 0x10d, "the feature cannot be saved";
    /// The feature cannot be changed.
    NOT_CHANGEABLE = 0x10e, "the feature cannot be changed";
    /// Connect has a format that is not known.
    CONNECT_FORMAT = 0x180, "a format of Connect that is not known";
    /// The controller is in use, or there are as many as may be.
    CONNECT_BUSY = 0x181, "the controller is busy";
    /// A parameter of Connect is wrong.
    CONNECT_INVALID = 0x182, "a parameter of Connect is wrong";
    /// The host may not connect.
    CONNECT_INVALID_HOST = 0x184, "the host may not connect";
    /// The host must authenticate itself first.
    AUTHENTICATION_REQUIRED = 0x191, "the host must authenticate itself first";
}

impl Status {
    /// The status that a completion's field has, whatever its phase tag.
    #[must_use]
    pub fn from_field(field: u16) -> Status {
        Status(field >> 1)
    }

    /// The field of a completion, with phase tag 0 as on fabrics.
    #[must_use]
    pub fn field(self) -> u16 {
        self.0 << 1
    }

    /// Status code type and status code, as `nvme-cli` prints them.
    #[must_use]
    pub fn code(self) -> u16 {
        self.0 & 0x7ff
    }

    /// The same, marked as not to be tried again.
    #[must_use]
    pub const fn final_one(self) -> Status {
        Status(self.0 | DO_NOT_RETRY)
    }

    /// Whether the command was done.
    #[must_use]
    pub fn is_success(self) -> bool {
        self.code() == 0
    }

    /// Whether both say the same, marked as not to be tried again or not.
    #[must_use]
    pub fn is(self, other: Status) -> bool {
        self.code() == other.code()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {:#05x})", self.text().unwrap_or("a status that is not known here"), self.code())
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
