//! The order of keys.

use std::sync::OnceLock;

use hikv::{Error, Ordered, Store};

use crate::errors::Refusal;

/// Number of keys that are sorted within a few milliseconds: an early range query waits for them.
const AWAITED_COUNT_MAX: u64 = 1 << 14;

/// The ordered operations, created on first use: until then no write pays for the order.
#[derive(Default)]
pub(crate) struct Order(OnceLock<OrderHandles>);

/// Two handles: one for callers that wait until keys are in order, one for those that do not.
pub(crate) struct OrderHandles {
    pub(crate) waiting: Ordered,
    pub(crate) refusing: Ordered,
}

impl Order {
    /// Returns the handles. The first call starts building the order in the background.
    pub(crate) fn of(&self, store: &Store) -> Result<&OrderHandles, Error> {
        if let Some(asked) = self.0.get() {
            return Ok(asked);
        }
        let waiting = store.ordered()?;
        Ok(self.0.get_or_init(|| OrderHandles { refusing: waiting.clone().fail_if_not_ready(), waiting }))
    }

    /// Returns the ordered operations, waiting if there are few keys to sort. Sorting many keys takes long, and the
    /// other clients are served in that time; so a client that queries before the order is complete is refused.
    pub(crate) fn soon(&self, store: &Store) -> Result<&Ordered, Refusal> {
        let order = self.of(store)?;
        if order.refusing.is_ready()? || store.len()? <= AWAITED_COUNT_MAX {
            return Ok(&order.waiting);
        }
        Ok(&order.refusing)
    }
}
