//! Bytes both ways between a device and a host on the same machine, through memory that they share.
//!
//! ```text
//! +0     to the device: tail 8, its line; head 8, its line; reader 8, its line; writer 8, its line
//! +256   to the host: the same
//! +4096  the ring to the device, RING_BYTES
//!        the ring to the host, RING_BYTES
//! ```
//!
//! The device makes the memory for each connection accepted on a Unix socket (`handover`) and seals the length, so that no host can
//! take it away. The socket's permissions say which users may connect.
//!
//! # Rules
//! - Neither side believes the other: an end keeps its own place privately and only writes that to the memory; of the other's place
//!   an end believes what lies within the ring's length of its own, and otherwise the connection is over ([`Broken`]).
//! - Bytes are copied out of a ring before anything is read from them. What the other side changes afterwards changes nothing.
//! - An end that finds nothing looks on for a bounded while (`poll_budget`). Then the end says in a word that it sleeps, looks once more, and sleeps.
//!   The other end moves its place and then looks at the word (`ring`). So between ends that are awake nothing goes but bytes: no call
//!   of the operating system.
//! - The device never waits for a host. A host is woken by a futex, which does not block, and the device through an eventfd that only hosts
//!   write to. A loop of the device looks at all of its ends that are awake, one after the other.
//! - A device looks at the socket when the poller tells that the other side is closed, a host when woken for nothing: what is sent and
//!   answered takes no call for that.
//! - The Unix socket stays open as long as the connection: when that closes, or is shut down, the other side is gone.
//! - Hosts that do not take what was handed to them cost the device's user a bounded number of files (`untaken`).

mod end;
mod handover;
mod memory;
mod poll_budget;
mod ring;
mod untaken;

pub use end::{DeviceEnd, HostEnd, Readiness};
pub use handover::{ListenError, Listener};
pub use poll_budget::PollBudget;
pub use ring::Broken;

/// Bytes of each ring.
pub const RING_BYTES: usize = 128 << 10;
