//! The change that a write notes in a queue.

use index::Position;

use super::ring;

/// The change that a write made to its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    /// The key.
    pub(crate) key: &'a [u8],
    /// The item that the key had before.
    pub(crate) old: Option<Position>,
    /// The item that the key has now.
    pub(crate) new: Option<Position>,
}

/// A place in a queue, to be filled; `None` while the order is off.
pub(crate) type Ticket<'a> = Option<ring::Ticket<'a>>;
