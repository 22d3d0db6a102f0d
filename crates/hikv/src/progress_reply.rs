//! Return values of progress callbacks.

use std::ops::ControlFlow;

/// The return value of a progress callback: `()` to continue, or a [`ControlFlow`], which can stop the operation.
pub trait ProgressReply {
    /// Returns true if the operation continues.
    fn goes_on(self) -> bool;
}

impl ProgressReply for () {
    fn goes_on(self) -> bool {
        true
    }
}

impl ProgressReply for ControlFlow<()> {
    fn goes_on(self) -> bool {
        self.is_continue()
    }
}
