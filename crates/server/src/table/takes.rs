//! How long commands may take.

use resp::Request;

/// What the time that a command takes depends on, as far as that can be told before it is executed. Any request that is long
/// itself takes long, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Takes {
    /// It takes a moment, however large the store is, and whatever its values are.
    Moment,
    /// On the values that its keys hold.
    Values,
    /// The same, if this is among its options.
    ValuesIf(&'static str),
    /// On the values that its keys hold, and on argument number so and so, up to which byte one will reach.
    Bytes(usize),
    /// The same in bits.
    Bits(usize),
    /// On the product of the lengths of the values of its two keys.
    Product,
    /// It looks at all keys, or at as many as it finds.
    Keys,
    /// The same, where more than one database was ever used.
    KeysOfDatabases,
    /// It looks at as many keys as its option `LIMIT` says; at all, without.
    Ranges,
    /// It takes as long as something else than the store does, and goes on beside a command that is alone.
    Apart,
    /// The same, if this is its first argument.
    ApartIf(&'static str),
}

impl Takes {
    /// Whether a request has a thread of its own.
    pub(crate) fn is_apart(self, request: &Request<'_>) -> bool {
        match self {
            Takes::Apart => true,
            Takes::ApartIf(word) => request.len() > 1 && request.argument(1).eq_ignore_ascii_case(word.as_bytes()),
            _ => false,
        }
    }
}
