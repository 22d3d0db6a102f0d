//! Limits of a device. Requests beyond a limit get a status or a closed connection, and never hang.

use std::time::Duration;

/// Maximum number of connections, of all controllers together. Further ones are closed immediately.
pub const CONNECTION_COUNT_MAX: usize = 1024;
/// Maximum number of a controller's I/O queues.
pub const QUEUE_COUNT_MAX: u16 = 64;
/// Maximum number of commands in a queue.
pub const QUEUE_ENTRIES_MAX: u16 = 128;
/// Maximum number of outstanding asynchronous event commands of a controller.
pub const EVENT_COUNT_MAX: usize = 4;
/// Maximum data of a command, as a power of two of 4 KiB: the longest value.
pub const TRANSFER_MAX: u8 = 8;
/// The longest value in bytes: 1 MiB.
pub const VALUE_BYTES_MAX: u32 = 4096 << TRANSFER_MAX;
/// Maximum data in a command capsule. Longer values are requested from the host.
pub const CAPSULE_BYTES_MAX: usize = 8192;
/// Maximum data of one PDU to the device.
pub const DATA_BYTES_MAX: u32 = 64 << 10;
/// Maximum bytes of values in transfer on a connection: one of the longest values.
pub const TRANSFER_BYTES_MAX: usize = VALUE_BYTES_MAX as usize;
/// Unsent bytes at which a connection stops executing.
pub const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Number of commands that an engine executes as a group, as in PMEKV.
pub const GROUP_COUNT: usize = 16;
/// Maximum number of items that a list or range visits in one turn of its connection.
pub const WALK_ITEM_COUNT_MAX: usize = 4096;
/// Maximum number of new searches in one turn, to skip keys that are too long for the command set.
pub const WALK_SEEK_COUNT_MAX: usize = 256;
/// Maximum number of hosts accepted in one turn of their loop, before connected hosts are served.
pub const ACCEPT_COUNT_MAX: usize = 64;
/// Maximum time for a connection to become a queue, or to receive the reason why it is closed.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Maximum silence of a host without a keep-alive time, or with a longer one, before its controller ends if others need
/// its slot. For a discovery controller, the limit in any case, as in Linux' target.
pub const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Percentage of free space below which an event is reported.
pub const SPARE_PERCENT_MIN: u8 = 10;
