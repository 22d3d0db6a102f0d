//! How far a walk over all keys has come.

/// Where a walk in no order goes on. It holds nothing of the engine, and is good for the store that it comes from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Cursor {
    /// At the beginning.
    #[default]
    Start,
    /// At the engine's number, which is not 0, and stays good when the store is opened again.
    Number(u64),
    /// Behind this key, in the order of keys.
    After(Vec<u8>),
    /// Nowhere: everything was visited.
    End,
}

impl Cursor {
    /// True when everything was visited.
    #[must_use]
    pub fn is_done(&self) -> bool {
        *self == Cursor::End
    }
}
