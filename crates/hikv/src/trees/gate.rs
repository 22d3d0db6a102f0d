//! The gate of a tree: operations that write its keys pass it together, and a change of the tree itself passes alone.
//!
//! A thread may pass the gate again within a callback of its own operation; it does not wait behind a change that
//! waits. A change waits for the operations under way, at most [`WAIT_MAX`]. It is refused within an operation's
//! callback, for whose end it would wait.

use std::cell::Cell;
use std::time::Duration;

use engine::Error;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The time for which a change waits for operations.
const WAIT_MAX: Duration = Duration::from_secs(10);

thread_local! {
    /// The number of gates that this thread's operations are passing.
    static PASSING: Cell<u32> = const { Cell::new(0) };
}

#[derive(Debug, Default)]
pub(crate) struct Gate(RwLock<()>);

/// A closed gate: operations wait until it is dropped.
pub(crate) type Closed<'g> = RwLockWriteGuard<'g, ()>;

/// An operation that passes a gate.
pub(crate) struct Pass<'g> {
    _counted: Passing,
    _open: RwLockReadGuard<'g, ()>,
}

/// Counts a pass of this thread.
struct Passing;

impl Drop for Passing {
    fn drop(&mut self) {
        PASSING.set(PASSING.get() - 1);
    }
}

impl Gate {
    /// Lets an operation pass until the guard is dropped.
    #[inline]
    pub(crate) fn pass(&self) -> Pass<'_> {
        // Only a thread that is passing a gate may overtake a change that waits: otherwise the change would starve.
        let open = if PASSING.get() > 0 { self.0.read_recursive() } else { self.0.read() };
        PASSING.set(PASSING.get() + 1);
        Pass { _counted: Passing, _open: open }
    }

    /// Closes the gate, once no operation is under way. `None` if one did not end in time.
    ///
    /// # Errors
    /// [`Error::InsideCallback`].
    pub(crate) fn close(&self) -> Result<Option<Closed<'_>>, Error> {
        if PASSING.get() > 0 { Err(Error::InsideCallback) } else { Ok(self.0.try_write_for(WAIT_MAX)) }
    }
}
