//! Pages of a scan, and the direction in which it goes.

use crate::value::Value;

/// The direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Towards greater keys.
    Forward,
    /// Towards smaller keys.
    Backward,
}

/// Receives the contents of a leaf. Runs under locks, so it should only copy.
pub trait Page {
    /// Receives a key and its value, in the scan's order.
    fn item(&mut self, key: &[u8], value: &Value<'_>);

    /// Receives the end of the page's leaf. Going forward, all keys of the leaf are below `fence`; going backward,
    /// none is. The last call counts, for this page or an earlier one.
    fn ends_at(&mut self, fence: &[u8]);
}

/// The end of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Behind the item that was passed last: the page was full, and the leaf may have more items.
    Within,
    /// At the leaf's end: the next page is from `Included(fence)` going forward, from `Excluded(fence)` going
    /// backward.
    AtFence,
    /// At the end of the last leaf.
    AtEnd,
}
