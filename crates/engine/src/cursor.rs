//! The position of a walk over all keys.

/// The position of a walk in no order. It holds no engine resources, and is valid for the store that returned it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Cursor {
    /// At the beginning.
    #[default]
    Start,
    /// At a number of the engine. It is not 0, and stays valid when the store is opened again.
    Number(u64),
    /// After this key, in key order.
    After(Vec<u8>),
    /// At the end: every key was visited.
    End,
}

impl Cursor {
    /// Returns true if every key was visited.
    #[must_use]
    pub fn is_done(&self) -> bool {
        *self == Cursor::End
    }
}
