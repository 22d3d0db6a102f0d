//! An item of a text file.

/// One item of a file, in reused memory.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// The name of the tree, if the line has one.
    pub(crate) tree: Option<String>,
}
