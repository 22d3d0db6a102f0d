//! Answers of callbacks that are shown progress.

use std::ops::ControlFlow;

/// The answer of a callback that is shown progress: nothing, and the work goes on, or a [`ControlFlow`], by which a callback can stop it.
pub trait ProgressReply {
    /// True if the work goes on.
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
