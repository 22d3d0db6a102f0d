//! The order of a store's keys, for the commands that need it.

use std::time::Duration;

use hikv::{Error, Ordered, Store};

use crate::progress::Progress;

/// Waits until the store's keys are in order, and shows how far they are.
pub(super) fn put_in_order(store: &Store, every: Duration) -> Result<Ordered, Error> {
    let ordered = store.ordered()?;
    let items = store.len()?;
    // Each key takes two steps.
    let mut progress = Progress::new("ordered", Some(2 * items), every);
    ordered.wait_until_ready(|at| progress.set(at.done / 2, at.done))?;
    progress.set(items, 2 * items);
    progress.finish();
    Ok(ordered)
}
