//! The agent that flushes and fences: a fence completes only the write-backs of its own thread.
//!
//! A visitor that an observer runs in between is on the observed thread but represents another one, so the depth of
//! observers is part of the identity.

use std::cell::Cell;
use std::thread::{self, ThreadId};

thread_local! {
    static OBSERVER_DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One independent instruction stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Agent {
    thread: ThreadId,
    observer_depth: u32,
}

impl Agent {
    /// Returns the agent that runs now.
    pub(crate) fn current() -> Agent {
        Agent { thread: thread::current().id(), observer_depth: OBSERVER_DEPTH.get() }
    }
}

/// Returns true if this thread runs inside an observer: between two steps of an operation that it has interrupted.
pub fn is_observing() -> bool {
    OBSERVER_DEPTH.get() > 0
}

/// A guard: while it lives, this thread runs inside an observer.
pub(crate) struct Interposed(());

impl Interposed {
    pub(crate) fn enter() -> Interposed {
        OBSERVER_DEPTH.set(OBSERVER_DEPTH.get() + 1);
        Interposed(())
    }
}

impl Drop for Interposed {
    fn drop(&mut self) {
        OBSERVER_DEPTH.set(OBSERVER_DEPTH.get() - 1);
    }
}
