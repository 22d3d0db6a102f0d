//! Execution time of commands.

use resp::Request;

/// The factors that determine a command's execution time, as far as they are known before the execution. In addition,
/// any request that is long itself takes long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Constant, whatever the sizes of the store and its values.
    Moment,
    /// The values of its keys.
    Values,
    /// The same, if this is among its options.
    ValuesIf(&'static str),
    /// The values of its keys, and the byte offset in this argument, up to which a value will extend.
    Bytes(usize),
    /// The same, with an offset in bits.
    Bits(usize),
    /// The product of the lengths of its two keys' values.
    Product,
    /// The values of its keys, or the elements if they are collections.
    Contents,
    /// The elements of the collections of its keys.
    Elements,
    /// The same, if it has more arguments than this, its name included.
    ElementsOver(usize),
    /// The same, or fewer if its arguments say that it needs only those near an end: ranks, `LIMIT`, a count.
    ElementsWithin,
    /// As many elements as the last argument says, if it has more arguments than this, its name included.
    Popped(usize),
    /// The elements of a list from the index in this argument to that in the next.
    Span(usize),
    /// The elements of a list that are not among these, or those that are, whichever are fewer.
    Trimmed(usize),
    /// All keys, or as many as it finds.
    Keys,
    /// The same, if more than one database was ever used.
    KeysOfDatabases,
    /// As many keys as its option `LIMIT` says; all keys without it.
    Ranges,
    /// Time outside the store; it also runs while a command has exclusive access.
    OwnThread,
    /// The same, if this is its first argument.
    OwnThreadIf(&'static str),
}

impl Cost {
    /// Returns whether a request runs on its own thread.
    pub fn needs_own_thread(self, request: &Request<'_>) -> bool {
        match self {
            Cost::OwnThread => true,
            Cost::OwnThreadIf(word) => request.len() > 1 && request.argument(1).eq_ignore_ascii_case(word.as_bytes()),
            _ => false,
        }
    }
}
