//! Wakes the thread that deletes what is dead.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The time between two passes that nothing has asked for: collections expire.
const PASS_INTERVAL: Duration = Duration::from_secs(1);

/// Wakes the thread.
#[derive(Default)]
pub(crate) struct Wake {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_asked: bool,
    is_stopped: bool,
    /// A program may have emptied a database itself.
    may_have_lost: bool,
}

impl Wake {
    /// Asks for a pass.
    pub(crate) fn wake(&self) {
        self.state.lock().is_asked = true;
        self.changed.notify_one();
    }

    /// Asks for a pass that looks for databases which a program has emptied itself.
    pub(crate) fn wake_for_lost(&self) {
        self.state.lock().may_have_lost = true;
        self.wake();
    }

    /// Returns whether such a pass was asked for.
    pub(crate) fn may_have_lost(&self) -> bool {
        self.state.lock().may_have_lost
    }

    /// Notes that the pass has looked.
    pub(crate) fn found_lost(&self) {
        self.state.lock().may_have_lost = false;
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_one();
    }

    /// Returns whether the thread is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Waits for the next pass, without a limit while there is no collection. Returns false at the end.
    pub(crate) fn await_pass(&self, has_collections: bool) -> bool {
        let mut state = self.state.lock();
        if !state.is_asked && !state.is_stopped {
            match has_collections {
                true => _ = self.changed.wait_for(&mut state, PASS_INTERVAL),
                false => self.changed.wait(&mut state),
            }
        }
        state.is_asked = false;
        !state.is_stopped
    }
}
