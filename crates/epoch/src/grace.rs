//! Grace periods: waiting until every thread sees a change.

use crate::pins::{advance, tag};
use crate::protocol::is_free;

/// The time from a store until every operation that may not have seen it has ended.
///
/// An operation runs between a pin and its end. An operation that pins itself later sees everything stored before
/// [`Grace::start`].
#[derive(Clone, Copy, Debug)]
pub struct Grace {
    tag: u64,
}

impl Grace {
    /// Starts a grace period now.
    #[must_use]
    pub fn start() -> Grace {
        Grace { tag: tag() }
    }

    /// Returns true once the period is over. It never ends while the caller itself is pinned. Costs a system call.
    #[must_use]
    pub fn is_over(self) -> bool {
        is_free(self.tag, advance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pin;

    #[test]
    fn grace_period_ends_after_last_unpin() {
        let pin = pin();
        let grace = Grace::start();
        assert!((0..4).all(|_| !grace.is_over()));
        drop(pin);
        // Other tests also pin, but not permanently.
        while !grace.is_over() {
            std::thread::yield_now();
        }
    }
}
