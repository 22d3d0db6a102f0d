//! The order of keys.

use std::sync::OnceLock;

use hikv::{Error, Ordered, Store};

/// The ordered operations, once a client has asked for them: until then no write pays for the order of keys.
#[derive(Default)]
pub(crate) struct Order(OnceLock<Asked>);

/// One is for callers that wait until keys are in order, the other for those that do not.
pub(crate) struct Asked {
    pub(crate) waiting: Ordered,
    pub(crate) refusing: Ordered,
}

impl Order {
    /// The first call has the keys of `store` put in order, in the background.
    pub(crate) fn of(&self, store: &Store) -> Result<&Asked, Error> {
        if let Some(asked) = self.0.get() {
            return Ok(asked);
        }
        let waiting = store.ordered()?;
        Ok(self.0.get_or_init(|| Asked { refusing: waiting.clone().fail_if_not_ready(), waiting }))
    }
}
