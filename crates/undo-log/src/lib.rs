//! Undo logs: a writer changes several words of a region as one atomic step, while other writers do the same.
//!
//! A writer holds a *lane*, which has a log and a number. Before a change it writes a *run*: the current content of
//! the words that it is about to change, sealed by the number and a checksum. A run whose number equals the lane's
//! number is *valid*: the change may have begun, and recovery undoes it. Raising the lane's number makes the run
//! void: the change is final.
//!
//! # Steps of a change
//! 1. The caller writes and flushes the new data, to which nothing refers yet. [`Lane::log`]: the run is written
//!    and flushed. Order. *Crash before:* the run is void, or it is valid and restores the words' present content.
//! 2. The caller changes the words in place and flushes them. *Crash:* the run is valid, and recovery restores
//!    every word.
//! 3. [`Lane::finish`]: order. *Crash:* as before.
//! 4. The number is raised by one store and flushed; commit. *Crash before it is durable:* undone. *After:* done.
//!
//! A change of one word needs none of these steps, because it either takes place or does not. Its writer records
//! the word in the lane ([`Lane::intend`]), for a process that is killed between the store and the flush: see
//! *Opening*.
//!
//! # Invariants
//! - All ranges of a run are read before the first word is changed, and a change has one run. So no word has two
//!   old values in a run, and the order in which ranges are restored does not matter.
//! - No word is in two open runs: the caller holds the locks of the words that it changes from step 1 until step 4
//!   has returned. So lanes may be recovered in any order.
//! - A lane's number only rises, by one per run, and never before the run's changes (or the words that recovery
//!   restored) are durable. So a run is valid only once.
//! - Space that becomes a log contains no run: the beginning is voided before the lane refers to the space. The
//!   earlier content may look like a run of this lane and number, because a writer chooses the bytes of its values,
//!   and because a DAX device of which only the beginning was wiped still holds the logs of the earlier store.
//!
//! # Opening
//! For each lane with a valid run: the words are restored and flushed, order, the number is raised and flushed,
//! order. After a crash during these steps, recovery repeats them: the run stays valid until everything that it
//! restores is durable.
//!
//! A region that is open for reading is not changed: the words are restored only in the memory of the reader's
//! process ([`Bytes::overlay`](pmem::Bytes::overlay)), and the run stays valid for the next opening.
//!
//! A killed process leaves its stores visible, durable or not. Opening flushes the lanes' lines as they are, with
//! the heap's head ([`heap::Heap::open`]); a raised number means that the change was durable before. For a change
//! of one word, the lane names the word by a plain store before the change. A process that sees the change also
//! sees that store, and makes the word durable before any thread relies on the change. A power loss takes both, so
//! the name is never flushed.
//!
//! This crate uses only `core`.
#![no_std]

mod broken;
pub mod canary;
mod holding;
mod lanes;
pub mod layout;
#[cfg(test)]
mod model;
mod recover;
mod run;

pub use lanes::{Lane, Lanes};
pub use recover::Recovered;
