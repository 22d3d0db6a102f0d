//! What a device takes. Beyond it there is a status or a closed connection, and never a hang.

use std::time::Duration;

/// Connections at a time, on all controllers. Further ones are closed at once.
pub const CONNECTION_COUNT_MAX: usize = 1024;
/// Queues of a controller beside the admin queue.
pub const QUEUE_COUNT_MAX: u16 = 64;
/// Commands that a queue takes at a time.
pub const QUEUE_ENTRIES_MAX: u16 = 128;
/// Asynchronous events that a controller's host may await at a time.
pub const EVENT_COUNT_MAX: usize = 4;
/// The most data of a command, as a power of two of 4 KiB: the longest value.
pub const TRANSFER_MAX: u8 = 8;
/// The longest value in bytes: 1 MiB.
pub const VALUE_BYTES_MAX: u32 = 4096 << TRANSFER_MAX;
/// Data that a command brings in its capsule. Longer values are asked for.
pub const CAPSULE_BYTES_MAX: usize = 8192;
/// The most data of one PDU to the device.
pub const DATA_BYTES_MAX: u32 = 64 << 10;
/// Values that a connection has on their way at a time, in bytes: one of the longest.
pub const TRANSFER_BYTES_MAX: usize = VALUE_BYTES_MAX as usize;
/// Unsent completions and data that stop a connection's execution, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 256 << 10;
/// Commands that an engine carries out together, as PMEKV does.
pub const GROUP_COUNT: usize = 16;
/// Items that a list or a range looks at in one turn of its connection.
pub const WALK_ITEM_COUNT_MAX: usize = 4096;
/// How often it begins a new search in one turn, behind keys that are too long for the command set.
pub const WALK_SEEK_COUNT_MAX: usize = 256;
/// Hosts that wait and are taken in one turn of their loop, before those that it has are served.
pub const ACCEPT_COUNT_MAX: usize = 64;
/// How long a connection may take to become a queue, or to take the reason why it is ended.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long a host may be silent that promised nothing, or promised less, before its controller ends where others need its place;
/// and a discovery controller in any case, as Linux' target has it.
pub const SILENCE_MAX: Duration = Duration::from_secs(120);
/// Below so much free room, in percent, hosts that want to know are told.
pub const SPARE_PERCENT_MIN: u8 = 10;
