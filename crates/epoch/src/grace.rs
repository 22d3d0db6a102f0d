//! Waiting until everybody has seen a change.

use crate::pins::{advance, tag};
use crate::protocol::is_free;

/// The time from a store until every operation that may not have seen it has ended.
///
/// Operations are what runs between a pin and its end: one that pinned itself later sees what was stored before
/// [`Grace::start`].
#[derive(Clone, Copy, Debug)]
pub struct Grace {
    tag: u64,
}

impl Grace {
    /// Starts now.
    #[must_use]
    pub fn start() -> Grace {
        Grace { tag: tag() }
    }

    /// True once it is over. Never, while the caller itself stays pinned. Costs a system call.
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
    fn it_is_over_when_who_was_pinned_is_not() {
        let pin = pin();
        let grace = Grace::start();
        assert!((0..4).all(|_| !grace.is_over()));
        drop(pin);
        // Other tests pin, too, and let go.
        while !grace.is_over() {
            std::thread::yield_now();
        }
    }
}
