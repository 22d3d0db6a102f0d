//! The options of a tree.

use crate::layout::ORDER_DEFAULT;

/// Parameters of making a tree and writing to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The number of pairs of a node, for a new tree: 7, 15, 31, 63, 127 or 255.
    pub order: usize,
    /// True if a value of the same length, up to [`Options::IN_PLACE_BYTES_MAX`], overwrites the old one, as in the
    /// paper.
    pub in_place: bool,
}

impl Options {
    /// The longest value that overwrites another one.
    pub const IN_PLACE_BYTES_MAX: u64 = 1024;
}

impl Default for Options {
    fn default() -> Options {
        Options { order: ORDER_DEFAULT, in_place: false }
    }
}
