//! Byte streams in both directions between a device and a host on the same machine, through shared memory.
//!
//! ```text
//! +0     to the device: tail 8, its line; head 8, its line; reader 8, its line; writer 8, its line
//! +256   to the host: the same
//! +4096  the ring to the device, RING_BYTES
//!        the ring to the host, RING_BYTES
//! ```
//!
//! The device creates the memory for each connection accepted on a Unix socket (`handover`) and seals the length, so
//! that no host can truncate it. The socket's permissions decide which users may connect.
//!
//! # Rules
//! - Neither side trusts the other: an end keeps a private copy of the position and never reads the shared one back.
//!   The other's position is accepted only within the ring's length; otherwise the connection is over ([`Broken`]).
//! - Bytes are copied out of a ring before they are interpreted. Later changes by the other side have no effect.
//! - An end without data polls for a bounded time (`poll_budget`). Then the end sets a word to announce the sleep,
//!   polls once more, and sleeps. The other end moves its position and then checks the word (`ring`). So two awake ends
//!   exchange only bytes, without system calls.
//! - The device never waits for a host. A host is woken by a futex, which does not block; a host wakes the device by an
//!   eventfd that only hosts write to. A loop of the device polls all of its awake ends in turn.
//! - A device checks the socket when the poller reports that the other side has closed; a host checks the socket when
//!   woken without reason. So an exchange of messages needs no system call for that.
//! - The Unix socket stays open as long as the connection: when it is closed or shut down, the other side is gone.
//! - Hosts that do not receive their files use a bounded number of the device user's files (`unclaimed`).

mod end;
mod handover;
mod memory;
mod poll_budget;
mod ring;
mod unclaimed;

pub use end::{DeviceEnd, HostEnd, Readiness};
pub use handover::{ListenError, Listener};
pub use poll_budget::PollBudget;
pub use ring::Broken;

/// The length of each ring.
pub const RING_BYTES: usize = 128 << 10;
