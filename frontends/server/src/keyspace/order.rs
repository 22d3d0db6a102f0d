//! The order of keys.

use std::sync::OnceLock;

use hikv::{Error, Ordered, Store};

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
}
