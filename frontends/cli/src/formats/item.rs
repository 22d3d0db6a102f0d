//! An item of a text file.

/// One item of a file, in reused memory.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}
