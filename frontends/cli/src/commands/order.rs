//! Builds the key order for the commands that need it.

use std::time::Duration;

use hikv::{Error, Ordered, Tree};

use crate::progress::Progress;

/// Builds the key order, and shows the progress until it is complete.
pub(super) fn put_in_order(tree: &Tree, every: Duration) -> Result<Ordered, Error> {
    let ordered = tree.ordered()?;
    let items = tree.len()?;
    // Two steps per key.
    let mut progress = Progress::new("ordered", Some(2 * items), every);
    ordered.wait_until_ready(|at| progress.set(at.done / 2, at.done))?;
    progress.set(items, 2 * items);
    progress.finish();
    Ok(ordered)
}
