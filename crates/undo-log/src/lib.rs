//! Undo logs: how a writer changes several words of a region as one step, beside other writers that do the same.
//!
//! A writer holds a *lane*, and with that a log of its own and a number. Before a change it writes a *run*: what the words
//! that it is about to change hold now, sealed by the number and a checksum. A run whose number is the lane's is *valid*: the
//! change may have been begun, and recovery takes it back. Raising the number makes the run void: the change stands.
//!
//! # Steps of a change
//! 1. The caller writes and flushes what is new, where nothing refers to it yet. [`Lane::log`]: the run is written and
//!    flushed. Order. *Crash before:* the run is void, or it is valid and restores what is there.
//! 2. The caller changes the words in place and flushes them. *Crash:* the run is valid, and every word is what it was.
//! 3. [`Lane::finish`]: order. *Crash:* as before.
//! 4. The number is raised by one store and flushed; commit. *Crash before it is durable:* undone. *After:* done.
//!
//! A change of one word needs none of this, since it takes place or not. Its writer tells the lane which word
//! ([`Lane::intend`]), for a process that is killed between the store and the flush: see *Opening*.
//!
//! # Invariants
//! - All ranges of a run are read before the first word is changed, and a change has one run. So no word has two old values
//!   in a run, and the order in which ranges are restored does not matter.
//! - No word is in two open runs: the caller holds the locks of what it changes from step 1 until step 4 has returned. So
//!   lanes may be recovered in any order.
//! - A lane's number only rises, by one a run, and never before what the run was for is durable: changed, or restored. So a
//!   run is valid once.
//! - Space that becomes a log has no run: where one begins is voided before the lane names it. What lay there may look like one
//!   of this lane and number: a value is its writer's choice, and on a device of which the beginning alone was wiped there are
//!   the logs of the store before.
//!
//! # Opening
//! For each lane with a valid run: the words are restored and flushed, order, the number is raised and flushed, order. A
//! crash of that is recovered by doing it again: the run stays valid until all it restores is durable.
//!
//! A region that is open for reading stays as it is: the words are restored in memory of the reader's process alone
//! ([`Bytes::overlay`](pmem::Bytes::overlay)), and the run stays valid for the next opening.
//!
//! A killed process leaves what it stored, durable or not. The lanes' lines are made durable as they stand (with the heap's
//! head, [`heap::Heap::open`]); a number that was raised says that the change was durable before. For changes of one word the
//! lane names the word, by a plain store before the change: the next process sees that store if the change is seen, and makes
//! the word durable before any thread relies on it. A loss of power takes both, so the name is never flushed.
//!
//! This crate uses `core` alone.
#![no_std]

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
