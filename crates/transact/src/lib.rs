//! Windows and gates: how a transaction gets a moment in which no other thread writes to a tree, while writes outside
//! of such moments pay neither a locked instruction nor a fence.
//!
//! Every write happens inside a [`Window`] of its thread, which names the tree. A transaction that needs the moment
//! takes the [`GateLock`] of the store, closes the tree's [`Gate`], and waits until no window names the tree. A thread
//! that opens a window and finds the gate closed shuts the window again and waits for the gate lock.
//!
//! Module `protocol` contains the steps and the argument why they are sound; a model checker runs it.
//!
//! # Who waits for whom
//! Threads wait in this order: gate lock, windows, then whatever a write of the engine waits for (batch slots, locks).
//! No thread waits for the gate lock with a window open: [`GateLock::enter`] and [`GateLock::lock`] return an
//! error instead. So a holder of the gate lock waits only for writes under way, which end.
//!
//! A thread inside a write runs no code of a caller that may write: callbacks wait until [`is_writing`] is false.
//!
//! The gate lock is first come, first served. So a writer that was shut out passes before the gate is closed again.

mod gate;
mod protocol;
mod window;

pub use gate::{Busy, Gate, GateLock, Holder};
pub use window::{Body, Inside, Window, is_writing};
