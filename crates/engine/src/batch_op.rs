//! What a batch consists of.

/// One operation of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchOp<'a> {
    /// Puts or replaces.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// Deletes, if the key is there.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

impl<'a> BatchOp<'a> {
    /// The key.
    #[must_use]
    pub const fn key(&self) -> &'a [u8] {
        match *self {
            BatchOp::Put { key, .. } | BatchOp::Delete { key } => key,
        }
    }

    /// The value, `None` if the key is deleted.
    #[must_use]
    pub const fn value(&self) -> Option<&'a [u8]> {
        match *self {
            BatchOp::Put { value, .. } => Some(value),
            BatchOp::Delete { .. } => None,
        }
    }
}
